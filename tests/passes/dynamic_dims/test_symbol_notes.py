"""Notes on the axes that each symbol stands for, and those computed from it."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.output_dims import OutputDims
from onnx_migrate.passes.dynamic_dims.repair import RepairResult
from onnx_migrate.passes.dynamic_dims.symbol_notes import note_symbols

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.support.repairs import text

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
