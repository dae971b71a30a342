"""The registry of decompositions, which replace an operator that a target lacks by others of the same opset.

A decomposition is for operators that no step down removes. These are operators that opset 7
has already and those of other domains. A few others have a step down that avoids newer operators. passes/steps registers them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.advice import Hint
from onnx_migrate.engine.steps.lowering_registry import LoweringAdapter
from onnx_migrate.engine.steps.step_table import AnyStep, StepTable, names, reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "Decomposition",
    "decomposition_of",
    "decompositions",
    "foreign_domains",
    "not_written",
    "register_decomposition",
]


@dataclass(frozen=True)
class Decomposition(AnyStep):
    """The action for a node of an operator that the target lacks; `adapt` writes nodes of the node's own opset.

    Without `adapt`, `refusal` gives the reason, and `hint` a remedy.
    """

    slug: ClassVar[str] = "{0.operator}-written-out"
    domain: str
    operator: str
    """Its name; "*" for all of a domain that have no decomposition of their own."""
    adapt: LoweringAdapter | None
    reason: str
    exactness: Exactness = Exactness.EXACT
    refusal: str = ""
    hint: Hint = ""
    direct: int = 0
    """The first opset in which it writes its best form; 0 if the form is the same at all opsets."""


_table: StepTable[Decomposition] = StepTable("onnx_migrate.passes.steps", "onnx_migrate.passes.steps.contrib")


def register_decomposition(
    domain: str, operator: str, function: LoweringAdapter, exactness: Exactness, direct: int = 0
) -> None:
    """Register a function as the decomposition of an operator.

    The function gets a node in the form of opset `rw.version`, and writes nodes of that form too. The first paragraph of its
    docstring is the reason that reports give. Raises ValueError for a function without a docstring, and for a second
    decomposition of an operator.
    """
    reason = reason_of(function)
    _table.register(Decomposition(domain, operator, function, reason, exactness, direct=direct))


def not_written(operators: str, *, why: str, hint: Hint) -> None:
    """Refuse to write these operators of another domain with standard ones, "domain::*" for all others of a domain.

    `why` and `hint`, the way out, are shown.
    """
    for name in names(operators):
        domain, _, operator = name.rpartition("::")
        _table.register(Decomposition(domain, operator, None, why, refusal=why, hint=hint))


def decompositions() -> list[Decomposition]:
    """Return all decompositions, by operator."""
    return _table.all()


def decomposition_of(domain: str, operator: str) -> Decomposition | None:
    """Return the decomposition of an operator, None if there is none."""
    return _table.get("" if is_onnx(domain) else domain, operator) or _table.get(domain, "*")


def foreign_domains() -> tuple[str, ...]:
    """Return the domains other than ai.onnx whose operators have decompositions, or refusals of their own."""
    return tuple(sorted({item.domain for item in decompositions()} - {""}))
