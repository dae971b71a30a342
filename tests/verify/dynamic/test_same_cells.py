"""The proof that cells keep their numbers: a grid in the wrong order for other sizes is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_migrate.verify import Runnable
from onnx_migrate.verify.dynamic.proof import prove_dynamic
from tests.support.feature_maps import cells, detector, opened
from tests.support.repairs import text


def _with_grid(size: tuple[int, int]) -> onnx.ModelProto:
    parts = [np.stack((x * s, y * s), 1) for s, y, x in cells(size, (8, 16))]
    result, _ = opened(detector(size, np.concatenate(parts)[None].astype(np.float32)))
    del result.graph.output[0].type.tensor_type.shape.dim[:]
    result.graph.output[0].type.tensor_type.ClearField("shape")
    return result


def _proof(model: onnx.ModelProto, **options: Any) -> tuple[bool, str, tuple[str, ...]]:
    proof = prove_dynamic(Runnable(structure=model.SerializeToString()), {"H": 64, "W": 64}, **options)
    return proof.holds, proof.reason, proof.notes


def test_cells_of_a_right_grid_keep_their_numbers() -> None:
    holds, reason, notes = _proof(_with_grid((64, 64)), keeps_cells=True)

    assert holds, reason
    assert not any("cells" in note for note in notes)


def _numbered(divisor: str) -> onnx.ModelProto:
    """Return a model that adds to the features of each cell its column: its number modulo `divisor`."""
    source = text(
        "float[1,1,H,W] x", "float[1,cells,1] y",
        f"""f = MaxPool<kernel_shape=[8,8], strides=[8,8]>(x) r = Reshape(f, rows) s = Shape(f) height = Gather(s, two)
        width = Gather(s, three) area = Mul(height, width) n = Range(zero, area, one) c = Mod(n, {divisor})
        d = Cast<to=1>(c) g = Reshape(d, rows) y = Add(r, g)""",
        "int64[3] rows = {1,-1,1}, int64 two = {2}, int64 three = {3}, int64 zero = {0}, int64 one = {1}, int64 eight = {8}",
    )  # fmt: skip
    return onnx.parser.parse_model(source)


@pytest.mark.parametrize("divisor", ["height", "eight"])
def test_a_wrong_grid_is_found(divisor: str) -> None:
    """Both give the right numbers at the original size, which is square, and the right shapes at all sizes."""
    assert _proof(_numbered("width"), keeps_cells=True)[0]
    assert _proof(_numbered(divisor))[0]

    holds, reason, _ = _proof(_numbered(divisor), keeps_cells=True)

    assert not holds
    assert "cells of output 'y' have other numbers at" in reason


def test_a_model_that_mixes_cells_is_not_compared() -> None:
    model = _with_grid((64, 64))
    next(node for node in model.graph.node if node.name == "decode").output[0] = "before"
    model.graph.node.append(helper.make_node("Softmax", ["before"], ["y"], axis=1))

    holds, reason, notes = _proof(model, keeps_cells=True)

    assert holds, reason
    assert any("not compared" in note and "across cells" in note for note in notes)


def test_bounds_of_tables_are_conditions_on_the_sizes() -> None:
    model = _with_grid((64, 64))

    proof = prove_dynamic(Runnable(structure=model.SerializeToString()), {"H": 64, "W": 64}, bounds=(16, 48))

    assert [(each.symbol, each.text) for each in proof.conditions] == [
        ("H", "a multiple of 16 and at least 48"),
        ("W", "a multiple of 16 and at least 48"),
    ]
