"""The registry of decompositions: how an operator that a target lacks is written with other operators of the same opset.

A decomposition is for operators that have no step down by which they end: those that opset 7 has already, and a few
whose step down avoids operators that a newer opset has. The decorator registers them in passes/decompositions.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from onnx_migrate.engine.steps.lowering_registry import LoweringAdapter
from onnx_migrate.opening.listing import submodules
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.spec.schema import is_onnx

__all__ = ["Decomposition", "decomposition", "decomposition_of", "decompositions"]


@dataclass(frozen=True)
class Decomposition:
    """What is done with a node of an operator that the target lacks; `adapt` writes nodes of the node's own opset."""

    domain: str
    operator: str
    adapt: LoweringAdapter
    reason: str
    exactness: Exactness = Exactness.EXACT

    @property
    def code(self) -> str:
        """The slug by which `onnx-migrate explain` finds the decomposition, such as "softplus-written-out"."""
        return f"{self.operator}-written-out".lower()

    @property
    def doc(self) -> str:
        """What the decomposition does and why: the docstring of the function."""
        return inspect.getdoc(self.adapt) or ""


_decompositions: dict[tuple[str, str], Decomposition] = {}


def decomposition(
    *operators: str, exactness: Exactness = Exactness.EXACT
) -> Callable[[LoweringAdapter], LoweringAdapter]:
    """Register the decorated function as the decomposition of these operators of ai.onnx.

    The node that it gets has the form of opset `rw.version`, and so has what it writes. The first paragraph of its
    docstring is the reason that reports give. Raises ValueError for a function without one, and for a second
    decomposition of an operator.
    """

    def register(function: LoweringAdapter) -> LoweringAdapter:
        reason = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
        if not reason:
            raise ValueError(
                f"{function.__name__} needs a docstring: its first paragraph is the reason that reports give"
            )
        for operator in operators:
            if ("", operator) in _decompositions:
                raise ValueError(f"{operator} has two decompositions")
            _decompositions["", operator] = Decomposition("", operator, function, reason, exactness)
        return function

    return register


@cache
def _load() -> dict[tuple[str, str], Decomposition]:
    package = importlib.import_module("onnx_migrate.passes.decompositions")
    for module in submodules(package):
        importlib.import_module(f"{package.__name__}.{module}")
    return _decompositions


def decompositions() -> list[Decomposition]:
    """Return all decompositions, by operator."""
    return [item for _, item in sorted(_load().items())]


@cache
def decomposition_of(domain: str, operator: str) -> Decomposition | None:
    """Return the decomposition of an operator, None if there is none."""
    return _load().get(("" if is_onnx(domain) else domain, operator))
