"""The releases at which a table says something new."""

from __future__ import annotations

import pytest

from onnx_migrate.spec.targets import milestones, resolve, shipped, tables
from tests.support.targets import targets_of

TEXT = """newest = "3.1"
[[release]]
from = "1.0"
opset = 9
[[release]]
from = "2.0"
opset = 11
[[operator]]
names = ["Gelu"]
from = "1.10"
until = "1.2"
[[operator]]
names = ["Relu"]
from = "0.5"
[[fault]]
operator = "Add"
text = "adds wrongly"
from = "2.0"
until = "2.10.0"
"""


def test_rows_of_all_kinds_and_the_newest_release_in_the_order_of_numbers() -> None:
    (target,) = targets_of(TEXT)
    found = milestones(target.table)

    assert [item.release for item in found] == ["1.0", "1.2", "1.10", "2.0", "2.10.0", "3.1"]
    assert [item.opset for item in found] == [9, 9, 9, 11, 11, 11]
    assert not any(item.later for item in found)


def test_a_runtime_without_releases_is_one() -> None:
    assert [str(item) for item in milestones(shipped("caffe2"))] == ["Caffe2"]


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.name)
def test_each_is_what_its_request_resolves_to(table) -> None:  # type: ignore[no-untyped-def]
    for item in milestones(table):
        (resolved,) = resolve([item.request])
        assert (resolved.row, resolved.number) == (item.row, item.number)
