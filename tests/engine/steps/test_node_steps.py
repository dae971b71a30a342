"""What the lift and the lowering share."""

from __future__ import annotations

import pytest
from onnx import helper

from onnx_migrate.engine.steps.node_steps import apply_adapter, is_of_domain, node_name
from onnx_migrate.errors import CannotMigrate, Where


def test_the_name_of_a_node_is_its_own_or_that_of_its_first_output() -> None:
    assert node_name(helper.make_node("Relu", ["x"], ["y"], name="act")) == "act"
    assert node_name(helper.make_node("Split", ["x"], ["", "z"])) == "z"


def test_both_spellings_of_the_standard_domain_are_one() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")
    assert is_of_domain(node, "")
    assert not is_of_domain(node, "ai.onnx.ml")


def test_an_exception_of_an_adapter_is_a_refusal_that_names_the_step() -> None:
    class Stub:
        node = None
        where = Where("graph", "n", "Relu", 1, 2)

    def broken(node: object, rw: object) -> None:
        raise KeyError("axis")

    with pytest.raises(CannotMigrate, match="relu-2 raised KeyError") as caught:
        apply_adapter(broken, "relu-2", Stub())  # type: ignore[type-var]
    assert caught.value.code == "adapter-failed"
