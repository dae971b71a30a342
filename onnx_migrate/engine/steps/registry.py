"""The registry of steps: for each operator and version, an adapter, a claim of compatibility or a refusal.

The decorators and functions here register them in passes/steps. A step is keyed by (domain, operator,
since_version that it leads to); the version it starts from follows from the schemas. There is no default step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import onnx

from onnx_migrate.advice import Hint
from onnx_migrate.engine.steps.step_table import AnyStep, StepTable, names, reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.schema import is_onnx, schema_cache, versions

__all__ = ["Adapter", "Step", "adapter", "compatible", "next_step", "steps", "unsupported"]

Adapter = Callable[[onnx.NodeProto, Rewriter], None]


@dataclass(frozen=True, eq=False)
class Step(AnyStep):
    """The step that a lift takes to convert a node of an operator to version `to`.

    There are three kinds. `adapt` rewrites the node. `refusal` says why no rewrite exists. With neither, a valid node of the
    version before is a valid node of this version and computes the same.
    """

    claim: ClassVar[str] = "compatible"
    slug: ClassVar[str] = "{0.operator}-{0.to}"
    domain: str
    operator: str
    to: int
    adapt: Adapter | None = None
    refusal: str = ""
    hint: Hint = ""
    reason: str = ""
    exactness: Exactness = Exactness.EXACT

    @property
    def from_version(self) -> int:
        """The version the step starts from: the since_version of the schema before `to`, 0 if there is none."""
        known = versions(self.domain, self.operator)
        return known[known.index(self.to) - 1] if self.to in known else 0


_table: StepTable[Step] = StepTable("onnx_migrate.passes.steps")


def adapter(
    *operators: str, to: int, domain: str = "", exactness: Exactness = Exactness.EXACT
) -> Callable[[Adapter], Adapter]:
    """Register the decorated function as the adapter that brings these operators to since_version `to`.

    Several names may stand in one text. The first paragraph of its docstring is the reason that reports give. Raises
    ValueError for a function without one, and for a step that is registered already.
    """

    def register(function: Adapter) -> Adapter:
        reason = reason_of(function)
        for operator in names(*operators):
            _table.register(Step(domain, operator, to, function, reason=reason, exactness=exactness), to)
        return function

    return register


def compatible(
    operators: str, *to: int, reason: str, domain: str = "", exactness: Exactness = Exactness.EXACT
) -> None:
    """Claim that a node valid just before each of the versions `to` of these operators is valid there and computes the same.

    Tests run every claim. `reason` is what the standard's changelog says has changed. Exactness is EQUIVALENT where
    runtimes have another kernel for the new version, which rounds differently.
    """
    for operator, version in product(names(operators), to):
        _table.register(Step(domain, operator, version, reason=reason, exactness=exactness), version)


def unsupported(operators: str, *to: int, why: str, hint: Hint = "", domain: str = "") -> None:
    """Refuse every node of these operators whose lift leads through one of the versions `to`; `why` and `hint` are shown."""
    for operator, version in product(names(operators), to):
        _table.register(Step(domain, operator, version, refusal=why, hint=hint), version)


def steps() -> list[Step]:
    """Return every registered step, by domain, operator and version."""
    return _table.all()


@schema_cache
def next_step(domain: str, operator: str, version: int, target: int) -> Step | int | None:
    """Return the first step between two opsets that does more than claim exact compatibility.

    Returns None when there is none, and the since_version as an int when no step is registered for it.
    """
    name = "" if is_onnx(domain) else domain
    for to in versions(name, operator):
        if not version < to <= target:
            continue
        step = _table.get(name, operator, to)
        if step is None:
            return to
        if step.adapt or step.refusal or step.exactness is not Exactness.EXACT:
            return step
    return None
