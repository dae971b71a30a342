"""Entries of a diff: their lines, and their JSON."""

from __future__ import annotations

from onnx import TensorProto, helper

from onnx_migrate.report.diff_nodes import DiffEntry, changed_lines, node_changes
from onnx_migrate.report.json_form import json_of
from onnx_migrate.report.matching import match_nodes


def test_the_old_value_comes_before_the_new_one() -> None:
    entry = DiffEntry("graph", "node y", ("axis = 0", "p = 1"), ("axis = 1", "q = 2"), "y = Op")

    assert list(entry.lines()) == [" y = Op", "-  axis = 0", "+  axis = 1", "-  p = 1", "+  q = 2"]
    assert list(DiffEntry("graph", "s", ("a", "b"), ("c",)).lines()) == ["-a", "-b", "+c"]
    assert json_of(entry) == {
        "body": "graph",
        "subject": "node y",
        "title": "y = Op",
        "removed": ["axis = 0", "p = 1"],
        "added": ["axis = 1", "q = 2"],
    }


def test_lines_by_key() -> None:
    found = list(changed_lines("model", {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}))

    assert [(entry.removed, entry.added) for entry in found] == [(("2",), ("4",)), (("3",), ()), ((), ("5",))]


def test_tensors_in_attributes_are_compared_by_value() -> None:
    def shape(*sizes: int, name: str = "") -> list:  # type: ignore[type-arg]
        tensor = helper.make_tensor(name, TensorProto.INT64, [len(sizes)], sizes)
        return [helper.make_node("ConstantOfShape", ["s"], ["y"], value=tensor)]

    def changes(old: list, new: list) -> list:  # type: ignore[type-arg]
        found = match_nodes(old, new, {})
        return [
            (entry.removed, entry.added) for entry in node_changes(old, new, "graph", found, (None, None))
        ]

    assert changes(shape(2), shape(2, name="other")) == []
    assert changes(shape(2), shape(3)) == [(("value = int64[1] [2]",), ("value = int64[1] [3]",))]


def test_long_lists_that_differ_at_their_end_differ_in_text() -> None:
    lists = [[1] * 20 + [last] for last in (0, 1)]
    old, new = ([helper.make_node("Pad", ["x"], ["y"], pads=pads)] for pads in lists)

    (entry,) = node_changes(old, new, "graph", match_nodes(old, new, {}), (None, None))

    assert entry.removed != entry.added
