"""Which step of which operator is adapted, claimed compatible, or refused; filled by decorators in passes/adapters.

A step is keyed by (domain, operator, since_version it reaches). The version it comes from follows from the schemas.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import onnx

from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.schema import is_onnx, versions

__all__ = ["Adapter", "Step", "adapter", "compatible", "next_step", "steps", "unsupported"]

Adapter = Callable[[onnx.NodeProto, Rewriter], None]


@dataclass(frozen=True)
class Step:
    """What happens to an operator on the way to one version.

    Exactly one of three: `adapt` rewrites the node; `refusal` says why nothing can; neither claims that a node
    of the version before is a node of this one and means the same.
    """

    domain: str
    operator: str
    to: int
    adapt: Adapter | None = None
    refusal: str = ""
    hint: str = ""
    reason: str = ""
    exactness: Exactness = Exactness.EXACT

    @property
    def code(self) -> str:
        """The slug that `onnx-migrate explain` knows the step by."""
        prefix = f"{self.domain}." if self.domain else ""
        return f"{prefix}{self.operator}-{self.to}".lower()

    @property
    def from_version(self) -> int:
        """The version the step comes from: the schema before `to`."""
        known = versions(self.domain, self.operator)
        return known[known.index(self.to) - 1] if self.to in known else 0

    @property
    def kind(self) -> str:
        """Which of the three the step is: "adapted", "refused" or "compatible"."""
        return "adapted" if self.adapt else "refused" if self.refusal else "compatible"

    @property
    def doc(self) -> str:
        """What the step does and why, as its author wrote it."""
        return inspect.getdoc(self.adapt) or "" if self.adapt else self.reason or self.refusal


_steps: dict[tuple[str, str, int], Step] = {}


def _register(step: Step) -> None:
    key = (step.domain, step.operator, step.to)
    if key in _steps:
        raise ValueError(f"{step.code} is registered twice")
    _steps[key] = step


def adapter(
    *operators: str, to: int, domain: str = "", exactness: Exactness = Exactness.EXACT
) -> Callable[[Adapter], Adapter]:
    """Register the decorated function as what brings these operators to since_version `to`.

    The first line of its docstring is the reason the report gives.
    """

    def register(function: Adapter) -> Adapter:
        reason = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
        if not reason:
            raise ValueError(f"{function.__name__} says nothing of what it changes")
        for operator in operators:
            _register(Step(domain, operator, to, function, reason=reason, exactness=exactness))
        return function

    return register


def compatible(
    operator: str, *to: int, reason: str, domain: str = "", exactness: Exactness = Exactness.EXACT
) -> None:
    """Claim that a node valid before each of the versions `to` is valid there and means the same.

    A claim that tests run, never a default; `reason` is what the standard's changelog says has changed. EQUIVALENT
    where runtimes have another kernel for the new version, which rounds differently.
    """
    for version in to:
        _register(Step(domain, operator, version, reason=reason, exactness=exactness))


def unsupported(operator: str, *to: int, why: str, hint: str = "", domain: str = "") -> None:
    """Refuse every node of an operator that would have to reach one of the versions `to`."""
    for version in to:
        _register(Step(domain, operator, version, refusal=why, hint=hint))


@cache
def _load() -> dict[tuple[str, str, int], Step]:
    package = importlib.import_module("onnx_migrate.passes.adapters")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return _steps


def steps() -> list[Step]:
    """Return every registered step, by domain, operator and version."""
    return [step for _, step in sorted(_load().items())]


@cache
def next_step(domain: str, operator: str, version: int, target: int) -> Step | int | None:
    """Return the first step on an operator's way from an opset to another that is not just an exact claim.

    None when there is nothing left to do, and the missing version as an int when nobody has registered it.
    Other domains than ai.onnx have no steps unless some are registered for them.
    """
    table = _load()
    name = "" if is_onnx(domain) else domain
    for to in versions(name, operator):
        if not version < to <= target:
            continue
        step = table.get((name, operator, to))
        if step is None:
            return to
        if step.adapt or step.refusal or step.exactness is not Exactness.EXACT:
            return step
    return None
