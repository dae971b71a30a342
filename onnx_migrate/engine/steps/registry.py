"""The table of all steps, and the walk along the steps of an operator between two opsets. There is no default step.

The modules of passes/steps and of plug-ins register the steps (`registration.py`); the first question imports them.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.engine.steps.step_modules import import_package, load_plugins
from onnx_migrate.standard.schema import forget_schemas, is_onnx, schema_cache, versions

__all__ = ["StepTable", "decomposition_of", "foreign_domains", "next_step", "register", "step_at", "steps"]

_STANDARD = ("", "ai.onnx.ml")

_FAMILIES = "onnx_migrate.passes.steps"
_PACKAGES = {
    Direction.UP: (_FAMILIES,),
    Direction.DOWN: (_FAMILIES,),
    Direction.WITHOUT: (
        _FAMILIES,
        f"{_FAMILIES}.contrib",
    ),  # a lift does not load the operators of other domains
}
"""The packages whose modules register the steps of a direction."""


class StepTable:
    """The steps that the modules of packages register; without packages only those that are registered by hand."""

    def __init__(self, packages: dict[Direction, tuple[str, ...]]) -> None:
        self._packages = dict(packages)
        self._steps: dict[tuple[Direction, str, str, int], Step] = {}

    def register(self, step: Step) -> None:
        """Add a step. Raises ValueError for a step that is registered already.

        A step of a custom domain may be registered again by the same function, for example when a notebook cell runs again.
        """
        key = step.direction, step.domain, step.operator, step.version
        registered = self._steps.get(key)
        if registered is not None and (step.domain in _STANDARD or _origin(registered) != _origin(step)):
            raise ValueError(f"{step.code} is registered twice")
        self._steps[key] = step
        if step.domain not in _STANDARD:
            forget_schemas()  # a plug-in may have registered schemas too

    def get(self, direction: Direction, domain: str, operator: str, version: int) -> Step | None:
        """Return the step of an operator at a version, None if none is registered."""
        self._load(direction)
        return self._steps.get((direction, domain, operator, version))

    def all(self, direction: Direction) -> list[Step]:
        """Return every step of a direction, by domain, operator and version."""
        self._load(direction)
        own = (step for step in self._steps.values() if step.direction is direction)
        return sorted(own, key=lambda step: (step.domain, step.operator, step.version))

    def _load(self, direction: Direction) -> None:
        if not (packages := self._packages.get(direction)):
            return
        for package in packages:
            import_package(package)
        load_plugins()
        self._packages.pop(direction, None)  # only now: another thread must not see a part of the table


def _origin(step: Step) -> tuple[str, str, str, str]:
    """Return the source of a step: its function's module and name, or its claim or refusal."""
    function = step.adapt
    return (
        getattr(function, "__module__", ""), getattr(function, "__qualname__", ""), step.reason if function is None else "",
        step.refusal,
    )  # fmt: skip


_table = StepTable(_PACKAGES)


def register(step: Step) -> None:
    """Add a step to the table of all steps. Raises ValueError for a step that is registered already."""
    _table.register(step)


def steps(*directions: Direction) -> list[Step]:
    """Return every registered step of the directions (of all, if none is given), by domain, operator and version."""
    return [step for direction in directions or Direction for step in _table.all(direction)]


def step_at(direction: Direction, domain: str, operator: str, version: int) -> Step | None:
    """Return the step of an operator at a version, None if none is registered."""
    return _table.get(direction, _key(domain), operator, version)


def decomposition_of(domain: str, operator: str) -> Step | None:
    """Return the step for a target that lacks an operator, None if there is none."""
    return step_at(Direction.WITHOUT, domain, operator, 0) or _table.get(Direction.WITHOUT, domain, "*", 0)


def foreign_domains() -> tuple[str, ...]:
    """Return the domains other than ai.onnx whose operators have decompositions, or refusals of their own."""
    return tuple(sorted({step.domain for step in steps(Direction.WITHOUT)} - {""}))


def next_step(
    direction: Direction,
    domain: str,
    operator: str,
    version: int,
    end: int,
    changes: Callable[[Step], bool] = lambda step: False,
) -> Step | int | None:
    """Return the first step from opset `version` to opset `end` that acts, or that `changes` the node at hand.

    Returns None if there is none, and the since_version as an int if no step is registered for it.
    """
    for step in _passed(direction, domain, operator, version, end):
        if isinstance(step, int) or step.acts or changes(step):
            return step
    return None


@schema_cache
def _passed(
    direction: Direction, domain: str, operator: str, version: int, end: int
) -> tuple[Step | int, ...]:
    """Return the steps between two opsets in their order; for a version without a step, the version."""
    operator_versions = versions(_key(domain), operator)
    if direction is Direction.UP:
        numbers = [number for number in operator_versions if version < number <= end]
    else:
        numbers = [number for number in reversed(operator_versions) if end < number <= version]
    return tuple(step_at(direction, domain, operator, number) or number for number in numbers)


def _key(domain: str) -> str:
    return "" if is_onnx(domain) else domain
