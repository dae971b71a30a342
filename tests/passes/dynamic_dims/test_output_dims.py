"""Dims of outputs, measured by shape inference at several sizes."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.output_dims import OutputDims, note_symbols, symbolic_outputs
from onnx_migrate.passes.dynamic_dims.repair import RepairResult

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.support.repairs import text

POOLED = text(
    "float[N,1,H] x", "float[p,q,r] y, float[s,t,u] z",
    """p = Shape(x) a = Reshape(x, p) y = Relu(a) z = MaxPool<kernel_shape=[2], strides=[2]>(y)""",
)  # fmt: skip


def test_an_axis_as_long_as_one_symbol_at_all_sizes_is_that_symbol() -> None:
    found = symbolic_outputs(model(POOLED), {"N": 1, "H": 8}, {"N"})

    assert found.dims["y"] == ("N", 1, "H")


def test_an_axis_computed_from_a_symbol_is_unknown() -> None:
    found = symbolic_outputs(model(POOLED), {"N": 1, "H": 8}, {"N"})

    assert found.dims["z"] == ("N", 1, "H//2")
    assert found.computed == {"H": [("z", 2)]}


def test_a_size_that_the_network_does_not_take_is_left_out() -> None:
    """Split into 2 equal parts takes even lengths only; the odd samples fail."""
    source = text(
        "float[H] x", "float[p] y",
        """s = Shape(x) w = Reshape(x, k) r = Transpose<perm=[1,0]>(w) y = Reshape(r, s)""",
        "int64[2] k = {2, -1}",
    )  # fmt: skip

    assert symbolic_outputs(model(source), {"H": 8}, set()).dims == {"y": ("H",)}


SOURCE = model(text("float[N,H] x", "float[N,a] y, float[b] z", "y = Relu(x) z = Abs(x)"))


def notes(outputs: OutputDims, output_symbols: dict[str, list[list[str] | None]]) -> list[str]:
    log = ChangeLog()
    result = RepairResult(Model(SOURCE), {}, output_symbols, {"N": (2, 3), "H": (1, 3)})
    note_symbols(result, outputs, log, "dynamic_dims")
    return [note.message for note in log.notes]


def test_an_output_axis_that_is_computed_from_a_symbol_is_named() -> None:
    found = notes(OutputDims({}, {"H": [("y", 1)]}, []), {})

    assert found == [
        "N: x[0] → y[0]; the outputs of 2 of 3 nodes change with it",
        "H: x[1] → y[1] (computed from H); the outputs of 1 of 3 nodes change with it",
    ]


def test_what_inference_of_the_whole_leaves_open_comes_from_the_interpretation_of_the_nodes() -> None:
    found = notes(OutputDims({}, {}, [("z", 0)]), {"y": [["N"], []], "z": [["N", "H"]]})

    assert "N: x[0] → y[0], z[0] (computed from N);" in found[0]
    assert "H: x[1] → z[0] (computed from H);" in found[1]


def test_without_any_knowledge_of_an_axis_no_claim_is_made_of_it() -> None:
    assert "H: x[1] → no output axis;" in notes(OutputDims({}), {})[1]
    assert "no output axis, as far as shape inference shows;" in notes(OutputDims({}, {}, [("z", 0)]), {})[1]
