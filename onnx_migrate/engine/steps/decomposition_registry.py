"""The registry of decompositions: how an operator that a target lacks is written with other operators of the same opset.

A decomposition is for operators that have no step down by which they end: those that opset 7 has already, a few
whose step down avoids operators that a newer opset has, and those of other domains. passes/steps registers them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from onnx_migrate.engine.steps.lowering_registry import LoweringAdapter
from onnx_migrate.engine.steps.step_table import doc_of, import_package, load_installed, names, reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "Decomposition",
    "decomposition",
    "decomposition_of",
    "decompositions",
    "foreign_domains",
    "not_written",
    "register_decomposition",
]


@dataclass(frozen=True)
class Decomposition:
    """What is done with a node of an operator that the target lacks; `adapt` writes nodes of the node's own opset.

    Without `adapt`, `refusal` says why nothing is, and `hint` what would help.
    """

    domain: str
    operator: str
    """Its name; "*" for all of a domain that have no decomposition of their own."""
    adapt: LoweringAdapter | None
    reason: str
    exactness: Exactness = Exactness.EXACT
    refusal: str = ""
    hint: str = ""
    direct: int = 0
    """The opset from which on it is written in its best form, 0 for one that is the same at all opsets."""

    @property
    def code(self) -> str:
        """The slug by which `onnx-migrate explain` finds the decomposition, such as "softplus-written-out"."""
        prefix = f"{self.domain}." if self.domain else ""
        return f"{prefix}{self.operator}-written-out".lower()

    @property
    def doc(self) -> str:
        """What the decomposition does and why: the docstring of the function, and the code of a formula."""
        return doc_of(self.adapt) if self.adapt else self.refusal


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
    domain: str, operator: str, function: LoweringAdapter, exactness: Exactness, direct: int = 0
) -> None:
    """Register a function as the decomposition of an operator; see `decomposition`."""
    reason = reason_of(function)
    _register(Decomposition(domain, operator, function, reason, exactness, direct=direct))


def not_written(operators: str, *, why: str, hint: str) -> None:
    """Refuse to write these operators of another domain with standard ones, "domain::*" for all others of a domain.

    `why` and `hint`, the way out, are shown.
    """
    for name in names(operators):
        domain, _, operator = name.rpartition("::")
        _register(Decomposition(domain, operator, None, why, refusal=why, hint=hint))


def _register(item: Decomposition) -> None:
    known = _decompositions.get((item.domain, item.operator))
    if known is not None and (item.domain in ("", "com.microsoft") or _origin(known) != _origin(item)):
        raise ValueError(f"{item.operator} has two decompositions")
    _decompositions[item.domain, item.operator] = item
    decomposition_of.cache_clear()


def _origin(item: Decomposition) -> tuple[str, str]:
    """Return the module and the name of the function, which a cell of a notebook may define again."""
    return getattr(item.adapt, "__module__", ""), getattr(item.adapt, "__qualname__", "")


@cache
def _load() -> dict[tuple[str, str], Decomposition]:
    import_package("onnx_migrate.passes.steps")
    load_installed()
    return _decompositions


def decompositions() -> list[Decomposition]:
    """Return all decompositions, by operator."""
    return [item for _, item in sorted(_load().items())]


@cache
def decomposition_of(domain: str, operator: str) -> Decomposition | None:
    """Return the decomposition of an operator, None if there is none."""
    known = _load()
    return known.get(("" if is_onnx(domain) else domain, operator)) or known.get((domain, "*"))


def foreign_domains() -> tuple[str, ...]:
    """Return the domains besides the standard's of which operators have decompositions, or are refused by name."""
    return tuple(sorted({domain for domain, _ in _load()} - {""}))
