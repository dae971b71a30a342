"""One runtime at one release."""

from __future__ import annotations

import pytest

from onnx_migrate.json_form import json_of
from onnx_migrate.standard.targets import milestones, resolve, shipped, tables
from onnx_migrate.standard.targets.target import Target
from tests.support.targets import targets_of

CHIP = """name = "chip"
title = "Chip"
operators = "{operators}"
[[release]]
from = "2.0"
opset = 13
source = "the manual"
[[operator]]
names = ["Add", "Clip"]
newest = 12
[[operator]]
names = ["Clip"]
newest = 11
types = ["float32"]
[[operator]]
names = ["Mod"]
from = "2.1"
[[operator]]
names = ["Gelu"]
domain = "com.microsoft"
source = "the wiki"
[[operator]]
names = ["Loop", "If"]
until = "2.0"
"""


def chip(operators: str, more: str = "") -> Target:
    (target,) = targets_of(CHIP.format(operators=operators) + more)
    return target


def test_of_a_listed_runtime_an_operator_without_a_row_is_missing() -> None:
    target = chip("listed")

    names = ("Add", "Clip", "Mod", "Loop", "Relu")
    assert [target.has("", name) for name in names] == [True, True, False, False, False]
    assert target.has("ai.onnx", "Add")
    assert target.has("com.microsoft", "Gelu")
    assert not target.has("", "Gelu")


def test_of_another_only_what_is_said_to_lack() -> None:
    target = chip("any", '[[operator]]\nnames = ["Relu", "Add"]\nlacking = true\n')

    names = ("Add", "Clip", "Mod", "Loop", "Relu", "Tan")
    assert [target.has("", name) for name in names] == [False, True, True, True, False, True]


def test_how_an_operator_is_known() -> None:
    measured = '[[operator]]\nnames = ["Add"]\nmeasured = true\n'
    asked = [
        ("", "Add"),
        ("", "Clip"),
        ("ai.onnx", "Tan"),
        ("com.microsoft", "Gelu"),
        ("com.microsoft", "Crop"),
    ]

    known = [[chip(extent, measured).knowledge(*one).value for one in asked] for extent in ("any", "unknown")]

    assert known == [
        ["measured", "read", "read", "read", "not known"],
        ["measured", "read", "not known", "read", "not known"],
    ]


def test_what_was_measured_outranks_what_was_read() -> None:
    target = chip("listed", '[[operator]]\nnames = ["Clip"]\nnewest = 13\noldest = 6\nmeasured = true\n')

    assert (target.newest_version("", "Clip"), target.oldest_version("", "Clip")) == (13, 6)
    assert not any(row.types for row in target.rows_of("", "Clip"))


@pytest.mark.parametrize(("newer", "oldest"), [("tried", None), ("refused", 13)])
def test_a_version_that_models_never_come_with_is_no_bound_where_newer_ones_are_tried(newer, oldest) -> None:
    row = '[[release]]\nopset = 9\n[[operator]]\nnames = ["Greater"]\noldest = 13\n'
    (target,) = targets_of(f'newer = "{newer}"\n{row}')

    assert target.oldest_version("", "Greater") == oldest


def test_versions_and_sources() -> None:
    target = chip("any")

    assert [target.newest_version("", name) for name in ("Add", "Clip", "Mod")] == [12, 11, None]
    (gelu,) = target.rows_of("com.microsoft", "Gelu")
    (add,) = target.rows_of("", "Add")
    assert (target.source_of(gelu), target.source_of(add)) == ("the wiki", "the manual")


def test_a_report_says_that_a_row_was_only_read() -> None:
    target = chip("any")

    assert (str(target), target.qualified) == (
        "Chip 2.0",
        "Chip 2.0 (by its documentation, not tested by us)",
    )
    found = json_of(target)
    assert (found["name"], found["release"], found["opset"], found["measured"]) == ("chip", "2.0", 13, False)
    assert len(found["table_sha256"]) == 64


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
names = ["Add"]
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
