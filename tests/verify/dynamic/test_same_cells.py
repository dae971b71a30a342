"""The proof that cells keep their numbers: a grid in the wrong order for other sizes is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.verify import Runnable
from onnx_migrate.verify.dynamic.proof import prove_dynamic
from onnx_migrate.verify.dynamic.same_cells import require_same_cells
from onnx_migrate.verify.dynamic.sized_runs import SizedRunner
from onnx_migrate.verify.inputs import generate
from onnx_migrate.verify.kernel import Tolerance
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


def _runner(model: onnx.ModelProto) -> SizedRunner:
    runnable = Runnable(structure=model.SerializeToString())
    runner = SizedRunner(runnable, {"H": 64, "W": 64}, frozenset(), Tolerance(), 0)
    runner.run_frozen()
    return runner


def test_inputs_that_are_too_large_at_the_sizes_of_this_check_are_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check chooses 96 and 160, so the model is not at fault if it would need too much memory there."""
    runner = _runner(_with_grid((64, 64)))
    monkeypatch.setattr(generate, "_LARGEST", 96 * 160 * 4 - 1)

    require_same_cells(runner, {"H": 96, "W": 96})

    (note,) = runner.notes
    assert note == (
        "the numbers of single cells were not compared at other sizes: at H = 96, W = 160, inputs of these sizes would take"
        " more than 256 MB each, or 1 GB together"
    )


def test_inputs_are_generated_once_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, generated = _runner(_with_grid((64, 64))), list[object]()
    feed = runner.feed
    monkeypatch.setattr(runner, "feed", lambda sizes: generated.append(sizes) or feed(sizes))

    require_same_cells(runner, {"H": 96, "W": 96})

    assert not runner.notes
    assert generated == [{}, {"H": 96, "W": 160}]


def test_a_sparse_initializer_belongs_to_the_part_that_decodes_cells() -> None:
    model = _numbered("height")
    model.graph.node[-1].output[0] = "before"
    model.graph.node.append(helper.make_node("Add", ["before", "half"], ["y"]))
    values = numpy_helper.from_array(np.array([0.5], np.float32), "half")
    indices = numpy_helper.from_array(np.array([[0, 0, 0]], np.int64), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1, 1, 1]))

    holds, reason, notes = _proof(model, keeps_cells=True)

    assert not holds, notes
    assert "cells of output 'y' have other numbers at" in reason
