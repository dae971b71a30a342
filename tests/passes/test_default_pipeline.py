"""Which passes the options ask for, in which order and with which options of their own."""

from __future__ import annotations

from typing import Any

import pytest

from onnx_migrate import UsageError, default_pipeline
from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.standard.schema import newest_opset


def passes(**options: Any) -> dict[str, Pass]:
    return {item.name: item for item in default_pipeline(**options)}


def test_the_order_with_everything_asked_for() -> None:
    found = passes(opset="17,ai.onnx.ml=3", dynamic={"x": [0]}, fix={"N": 1}, resize_intent=True)
    assert list(found) == [
        "fix_dims",
        "migrate_opset",
        "migrate_ml",
        "resize_intent",
        "resize_form",
        "declared_shapes",
        "open_dims",
        "dynamic_dims",
        "lower_ml",
        "lower_opset",
        "cleanup",
        "simplify",
    ]


def test_what_is_not_asked_for_is_not_there() -> None:
    left = {"fix_dims", "migrate_ml", "resize_intent", "dynamic_dims", "simplify"}
    assert not left & set(passes(simplify=False))
    assert "migrate_opset" not in passes(opset={"ai.onnx.ml": 3})


@pytest.mark.parametrize(
    ("asked", "opset", "newer"),
    [(13, 13, "lower"), ("13", 13, "lower"), ("13+", 13, "keep"), ("latest", newest_opset(), "lower")],
)
@pytest.mark.parametrize("domain", ["", "ai.onnx="])
def test_an_opset_in_every_form(asked: int | str, opset: int, newer: str, domain: str) -> None:
    for found in (passes(opset=f"{domain}{asked}"), passes(opset={domain.rstrip("="): asked})):
        item: Any = found["migrate_opset"]
        assert (item.opset, item.newer) == (opset, newer)


def test_ml_nodes_come_to_stand_beside_the_opset_asked_for() -> None:
    both: Any = passes(opset="15,ai.onnx.ml=latest")["migrate_ml"]
    alone: Any = passes(opset="ai.onnx.ml=2+")["migrate_ml"]
    assert (both.opset, both.beside) == (newest_opset("ai.onnx.ml"), 15)
    assert (alone.opset, alone.newer, alone.beside) == (2, "keep", type(alone).beside)


@pytest.mark.parametrize("opset", ["soon", "17,own=2", {}, {"own": 1}, "17++"])
def test_no_opset(opset: Any) -> None:
    with pytest.raises(UsageError):
        default_pipeline(opset=opset)


def test_options_reach_their_passes() -> None:
    found: dict[str, Any] = dict(
        passes(
            dynamic_batch=True, keep=["tf_half_pixel_for_nn"], keep_initializers_as_inputs=True,
            resize_form="sizes", isolated=False,
        )
    )  # fmt: skip
    assert found["dynamic_dims"].batch == "N"
    assert passes(dynamic_batch="B")["dynamic_dims"].batch == "B"  # type: ignore[attr-defined]
    assert found["migrate_opset"].keep == {"tf_half_pixel_for_nn"}
    assert not found["migrate_opset"].unlist
    assert found["resize_form"].form == "sizes"
    assert not found["simplify"].isolated
