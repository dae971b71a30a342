"""The operator for which ONNX Runtime ends the process is found, and keeps its type."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx_migrate.passes.precision import crashes
from onnx_migrate.passes.precision.precision import Precision

from onnx_migrate import process
from onnx_migrate.facts.typed_graph import Step, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify import Runnable, Settings
from tests.harness import model
from tests.passes.precision.test_precision import F16, F32, SEARCH, types

SOURCE = """17 (float[2,4] x, float[4,4] w) => (float[2,4] y) {
    a = Exp(x)  b = MatMul(a, w)  c = Sin(b)  d = MatMul(c, w)  y = Neg(d) }"""


def test_all_nodes_of_the_operator_are_named_and_the_likely_are_tried_first() -> None:
    proto = model(SOURCE)
    graph = frames_of(proto, TypeTable(proto))[0]
    tried: list[str] = []

    def runs_without(steps: Sequence[Step]) -> bool:
        tried.append(steps[0].node.op_type)
        return steps[0].node.op_type == "Sin"

    assert [step.node.output[0] for step in crashes.crashing_nodes(graph, runs_without)] == ["c"]
    assert tried == ["MatMul", "Exp", "Sin"]
    assert crashes.crashing_nodes(graph, lambda steps: False) == []


@pytest.mark.parametrize("original_runs", [True, False])
def test_what_ends_the_process_stays_float32_unless_the_original_ends_it(
    original_runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that compares ends while a result has a MatMul in float16 and runs with optimisation."""
    call = Settings.call

    def ends(settings: Settings, function: str, *given: object) -> process.Ending:
        if function.endswith((":closeness", ":run_optimised")):
            result, strictly = given[1], given[6:7] == (True,)
            assert isinstance(result, Runnable)
            narrow = types(result.model).get("b") == F16
            if not strictly and (narrow or (not original_runs and function.endswith("run_optimised"))):
                return process.Crashed("SIGSEGV", stage="result: running")
        return call(settings, function, *given)

    monkeypatch.setattr(Settings, "call", ends)
    result = Precision(settings=SEARCH).run(Model(model(SOURCE)), ChangeLog()).proto

    assert types(result)["b"] == (F32 if original_runs else F16)
    assert types(result)["c"] == F16
