"""The registry of decompositions: how an operator that a target lacks is written with other operators of the same opset.

A decomposition is for operators that have no step down by which they end: those that opset 7 has already, and a few
whose step down avoids operators that a newer opset has. passes/steps registers them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from onnx_migrate.engine.steps.lowering_registry import LoweringAdapter
from onnx_migrate.engine.steps.step_table import doc_of, import_package, reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "Decomposition",
    "decomposition",
    "decomposition_of",
    "decompositions",
    "register_decomposition",
]


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
        prefix = f"{self.domain}." if self.domain else ""
        return f"{prefix}{self.operator}-written-out".lower()

    @property
    def doc(self) -> str:
        """What the decomposition does and why: the docstring of the function, and the code of a formula."""
        return doc_of(self.adapt)


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
        for operator in operators:
            register_decomposition("", operator, function, exactness)
        return function

    return register


def register_decomposition(
    domain: str, operator: str, function: LoweringAdapter, exactness: Exactness
) -> None:
    """Register a function as the decomposition of an operator; see `decomposition`."""
    reason = reason_of(function)
    if (domain, operator) in _decompositions:
        raise ValueError(f"{operator} has two decompositions")
    _decompositions[domain, operator] = Decomposition(domain, operator, function, reason, exactness)


@cache
def _load() -> dict[tuple[str, str], Decomposition]:
    import_package("onnx_migrate.passes.steps")
    return _decompositions


def decompositions() -> list[Decomposition]:
    """Return all decompositions, by operator."""
    return [item for _, item in sorted(_load().items())]


@cache
def decomposition_of(domain: str, operator: str) -> Decomposition | None:
    """Return the decomposition of an operator, None if there is none."""
    return _load().get(("" if is_onnx(domain) else domain, operator))
