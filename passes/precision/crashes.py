"""Finds the operator for which ONNX Runtime's optimiser ends the process in a narrow type, but not on the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx_migrate import process
from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.precision.closeness import RUNS

__all__ = ["crashing_nodes", "runs_optimised"]

_LIKELY = ("GRU", "LSTM", "RNN", "MatMul", "Gemm", "Conv")
"""The search tries these operators first: the optimiser fuses them with others, or lacks float16 kernels for them."""

_TRIES = 16
"""How many operators are tried."""


def runs_optimised(original: Runnable, model: Runnable, settings: Settings) -> bool:
    """Return whether ONNX Runtime runs a model with optimisation, on the inputs of an original, and does not end the process."""
    return isinstance(settings.call(RUNS, original, model, settings.for_child), process.Returned)


def crashing_nodes(graph: Frame, runs_without: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Return all nodes of the first operator without which, in the narrow type, the process does not end; none if that is none.

    `runs_without` returns whether the process survives if these nodes keep their type too.
    """
    steps: dict[str, list[Step]] = {}
    for step in graph.steps:
        if not step.is_a("Constant") and step.outputs:
            steps.setdefault(step.node.op_type, []).append(step)
    order = sorted(steps, key=lambda name: _LIKELY.index(name) if name in _LIKELY else len(_LIKELY))
    return next((steps[name] for name in order[:_TRIES] if runs_without(steps[name])), [])
