"""The registry of downward steps: for each operator and version, an adapter, a claim that nothing changes or a refusal.

The decorators and functions here register steps in passes/steps. The key of a step is (domain, operator, since_version
that it leaves). A step writes nodes in the form of the opset before that version. There is no default step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import ClassVar

import onnx

from onnx_migrate.advice import Hint
from onnx_migrate.engine.steps.step_table import AnyStep, StepTable, names, reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.schema import is_onnx, versions

__all__ = [
    "LostTypes",
    "Lowering",
    "LoweringAdapter",
    "impossible",
    "lowering",
    "lowering_from",
    "lowerings",
    "unchanged",
]

LoweringAdapter = Callable[[onnx.NodeProto, LoweringRewriter], None]


class LostTypes(Enum):
    """What happens to a node whose element types the older version does not take."""

    EXACT = "exact"
    """The node computes in a wider type between Casts, and every result has the same bits. The node moves or compares values,
    or computes integers modulo a power of two."""
    ROUNDED = "rounded"
    """float16 and bfloat16 compute in float32 between Casts, which may round differently; other types are an error."""
    REFUSED = "refused"
    """The lowering refuses the node."""
    OWN = "own"
    """The adapter of the step sees the types unchanged and handles them itself."""


@dataclass(frozen=True, eq=False)
class Lowering(AnyStep):
    """The step that takes a node of an operator whose form is version `leaves` below that version.

    There are three kinds. `adapt` rewrites the node. `refusal` says why no rewrite exists. With neither, a node of this
    version is valid in the version before and computes the same, once its types fit (see `types`).
    """

    claim: ClassVar[str] = "unchanged"
    slug: ClassVar[str] = "{0.operator}-{0.leaves}-down"
    domain: str
    operator: str
    leaves: int
    adapt: LoweringAdapter | None = None
    refusal: str = ""
    hint: Hint = ""
    reason: str = ""
    exactness: Exactness = Exactness.EXACT
    types: LostTypes = LostTypes.REFUSED

    @property
    def to_version(self) -> int:
        """The since_version of the operator before `leaves`, 0 if there is none: the operator does not exist below."""
        known = versions(self.domain, self.operator)
        at = known.index(self.leaves) if self.leaves in known else 0
        return known[at - 1] if at else 0


_table: StepTable[Lowering] = StepTable("onnx_migrate.passes.steps")


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

    def register(function: LoweringAdapter) -> LoweringAdapter:
        reason = reason_of(function)
        for operator in names(*operators):
            step = Lowering(
                domain, operator, leaves, function, reason=reason, exactness=exactness, types=types
            )
            _table.register(step, leaves)
        return function

    return register


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
    for operator, version in product(names(operators), leaves):
        step = Lowering(domain, operator, version, reason=reason, exactness=exactness, types=types)
        _table.register(step, version)


def impossible(operators: str, *leaves: int, why: str, hint: Hint = "", domain: str = "") -> None:
    """Refuse every node of these operators at the versions `leaves` for a target below; `why` and `hint` are shown."""
    for operator, version in product(names(operators), leaves):
        _table.register(Lowering(domain, operator, version, refusal=why, hint=hint), version)


def lowerings() -> list[Lowering]:
    """Return every registered step, by domain, operator and version."""
    return _table.all()


def lowering_from(domain: str, operator: str, leaves: int) -> Lowering | None:
    """Return the step of an operator that leaves this since_version, None if none is registered."""
    return _table.get("" if is_onnx(domain) else domain, operator, leaves)
