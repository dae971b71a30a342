"""The log of changes and notes: attributes as text, and attempts that are rolled back."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.rewrite.change_log import Change, ChangeLog


def change(before: onnx.NodeProto, after: onnx.NodeProto | None) -> Change:
    serialised = None if after is None else after.SerializeToString()
    return Change("p", Where(), before.SerializeToString(), 1, serialised, 2, (), "because")


def relu(**attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Relu", ["x"], ["y"], **attributes)


def logged(log: ChangeLog, code: str) -> None:
    log.changes.append(change(relu(), relu(code=code)))
    log.note("p", code, "message")
    log.record_fact("graph", "y", code)


def give_up(log: ChangeLog) -> None:
    logged(log, "given-up")
    raise CannotMigrate("no equal")


def test_an_exception_rolls_back_changes_notes_and_facts_of_its_trial_only() -> None:
    log = ChangeLog()
    logged(log, "kept")

    with pytest.raises(CannotMigrate), log.trial():
        give_up(log)

    assert [note.code for note in log.notes] == ["kept"]
    assert [item.attributes[1] for item in log.changes] == [{"code": "kept"}]
    assert log.fact(str, "graph", "y") == "kept"


def test_a_trial_that_succeeds_stays_and_can_be_rolled_back_later() -> None:
    log = ChangeLog()
    logged(log, "before")

    with log.trial() as trial:
        logged(log, "tried")
    assert [item.attributes[1]["code"] for item in trial.changes] == ["tried"]
    assert (len(log.changes), len(log.notes)) == (2, 2)

    trial.roll_back()
    assert [note.code for note in log.notes] == ["before"]
    assert len(log.changes) == 1
    assert log.fact(str, "graph", "y") == "before"


def test_only_attributes_that_differ_are_listed() -> None:
    found = change(relu(a=1, b=[1.5, 2.0], c="x"), relu(a=1, b=[1.5, 3.0], d=0.25))

    assert found.attributes == ({"b": "[1.5, 2]", "c": "x"}, {"b": "[1.5, 3]", "d": "0.25"})
    assert found.kept_attributes == {"a": "1"}


def test_a_node_that_others_replaced_has_lost_all_attributes() -> None:
    found = change(relu(a=1), None)

    assert found.after is None
    assert found.attributes == ({"a": "1"}, {})


def test_large_values_are_shortened_and_tensors_described_by_type_and_shape() -> None:
    node = relu(many=list(range(20)), k=numpy_helper.from_array(np.zeros((2, 3), np.float32)))
    node.attribute.add(name="r", type=onnx.AttributeProto.INT).ref_attr_name = "outer"

    shown, _ = change(node, None).attributes

    assert shown["many"].endswith("14, 15, …]")
    assert shown["k"] == "FLOAT[2, 3]"
    assert shown["r"] == "@outer"
