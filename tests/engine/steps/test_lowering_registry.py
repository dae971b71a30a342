"""The registry of downward steps."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.steps.lowering_registry import (
    Lowering,
    lowering,
    lowering_from,
    lowerings,
    unchanged,
)


def test_a_step_is_found_by_the_version_it_leaves() -> None:
    step = lowering_from("ai.onnx", "Softmax", 13)

    assert step is not None
    assert (step.kind, step.code, step.to_version) == ("adapted", "softmax-13-down", 11)
    assert "axis" in step.doc
    assert lowering_from("", "Softmax", 12) is None


def test_an_operator_that_begins_leads_nowhere() -> None:
    assert Lowering("", "Mish", 18).to_version == 0


def test_a_step_is_registered_once() -> None:
    assert lowering_from("", "Softmax", 13)
    with pytest.raises(ValueError, match="twice"):
        unchanged("Softmax", 13, reason="again")


def test_an_adapter_says_why() -> None:
    def silent(node: object, rw: object) -> None: ...

    with pytest.raises(ValueError, match="docstring"):
        lowering("Softmax", leaves=99)(silent)


def test_steps_are_listed_in_order() -> None:
    keys = [(step.domain, step.operator, step.leaves) for step in lowerings()]
    assert keys == sorted(keys)
