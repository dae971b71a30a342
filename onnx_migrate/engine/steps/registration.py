"""The decorators and functions that register steps; the families in passes/steps and plug-ins call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, TypeVar

import onnx

from onnx_migrate.advice import Hint
from onnx_migrate.engine.steps.registry import register
from onnx_migrate.engine.steps.step import Direction, LostTypes, Step
from onnx_migrate.engine.steps.step_docs import reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.rewrite.rewriter import Rewriter

__all__ = [
    "Adapter",
    "LoweringAdapter",
    "adapter",
    "compatible",
    "decomposition",
    "impossible",
    "lowering",
    "names",
    "not_written",
    "types_only",
    "unchanged",
    "unsupported",
]

Adapter = Callable[[onnx.NodeProto, Rewriter], None]
LoweringAdapter = Callable[[onnx.NodeProto, LoweringRewriter], None]

FunctionT = TypeVar("FunctionT", bound=Callable[..., None])


def names(*operators: str) -> list[str]:
    """Return the names of operators; one text may contain several, with spaces between them."""
    return " ".join(operators).split()


def adapter(
    *operators: str, to: int, domain: str = "", exactness: Exactness = Exactness.EXACT
) -> Callable[[Adapter], Adapter]:
    """Register the decorated function as the adapter that brings these operators to since_version `to`.

    Several names may stand in one text. The first paragraph of its docstring is the reason that reports give. Raises
    ValueError for a function without one, and for a step that is registered already.
    """
    return _adapted(Direction.UP, operators, to, domain=domain, exactness=exactness)


def lowering(
    *operators: str,
    leaves: int,
    domain: str = "",
    exactness: Exactness = Exactness.EXACT,
    types: LostTypes = LostTypes.REFUSED,
) -> Callable[[LoweringAdapter], LoweringAdapter]:
    """Register the decorated function as the adapter that brings these operators below version `leaves`.

    The engine applies `types` to the node before the adapter sees it. The first paragraph of the docstring is the
    reason that reports give. Raises ValueError for a function without one, and for a step that is registered already.
    """
    return _adapted(Direction.DOWN, operators, leaves, domain=domain, exactness=exactness, types=types)


def decomposition(
    operator: str, *, domain: str = "", exactness: Exactness = Exactness.EXACT, direct: int = 0
) -> Callable[[LoweringAdapter], LoweringAdapter]:
    """Register the decorated function as the adapter for targets that lack an operator, although no step down removes it.

    The function gets a node in the form of opset `rw.version`, and writes nodes of that form too. The first paragraph of its
    docstring is the reason that reports give. Raises ValueError for a function without a docstring, and for a second
    decomposition of an operator.
    """
    return _adapted(Direction.WITHOUT, (operator,), 0, domain=domain, exactness=exactness, direct=direct)


def _adapted(
    direction: Direction, operators: Iterable[str], version: int, *, domain: str, **fields: Any
) -> Callable[[FunctionT], FunctionT]:
    def registered(function: FunctionT) -> FunctionT:
        reason = reason_of(function)
        for operator in names(*operators):
            register(Step(direction, domain, operator, version, function, reason=reason, **fields))
        return function

    return registered


def compatible(
    operators: str, *to: int, reason: str, domain: str = "", exactness: Exactness = Exactness.EXACT
) -> None:
    """Claim that a node valid just before each of the versions `to` of these operators is valid there and computes the same.

    Tests run every claim. `reason` is what the standard's changelog says has changed. Exactness is EQUIVALENT where
    runtimes have another kernel for the new version, which rounds differently.
    """
    _each(Direction.UP, operators, to, domain=domain, reason=reason, exactness=exactness)


def unchanged(
    operators: str,
    *leaves: int,
    reason: str,
    domain: str = "",
    exactness: Exactness = Exactness.EXACT,
    types: LostTypes = LostTypes.REFUSED,
) -> None:
    """Claim that a node of these operators, of a version in `leaves`, is valid before it and computes the same, if its types fit.

    Tests run every claim. `reason` says how the version before differs. Exactness is EQUIVALENT where runtimes have
    another kernel for the older version, which rounds differently.
    """
    _each(Direction.DOWN, operators, leaves, domain=domain, reason=reason, exactness=exactness, types=types)


def types_only(operators: str, *versions: int, lost: LostTypes) -> None:
    """Claim that each of these versions of the operators (one text with all names) differs from the one before in its types.

    Upward more types are allowed; downward, `lost` says how to handle a node whose types the older version does not support.
    """
    compatible(operators, *versions, reason="more types are allowed")
    unchanged(operators, *versions, reason="the version before takes fewer element types", types=lost)


def unsupported(operators: str, *to: int, why: str, hint: Hint = "", domain: str = "") -> None:
    """Refuse every node of these operators whose lift leads through one of the versions `to`; `why` and `hint` are shown."""
    _each(Direction.UP, operators, to, domain=domain, refusal=why, hint=hint)


def impossible(operators: str, *leaves: int, why: str, hint: Hint = "", domain: str = "") -> None:
    """Refuse every node of these operators at the versions `leaves` for a target below; `why` and `hint` are shown."""
    _each(Direction.DOWN, operators, leaves, domain=domain, refusal=why, hint=hint)


def not_written(operators: str, *, why: str, hint: Hint) -> None:
    """Refuse to write these operators of another domain with standard ones, "domain::*" for all others of a domain.

    `why` and `hint`, the way out, are shown.
    """
    for name in names(operators):
        domain, _, operator = name.rpartition("::")
        register(Step(Direction.WITHOUT, domain, operator, reason=why, refusal=why, hint=hint))


def _each(
    direction: Direction, operators: str, versions: Iterable[int], *, domain: str, **fields: Any
) -> None:
    for operator, version in product(names(operators), versions):
        register(Step(direction, domain, operator, version, **fields))
