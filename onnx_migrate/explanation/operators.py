"""Describes an operator: its versions, the steps between them, and its replacement for runtimes that lack it."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.explanation.operator_facts import canonical, operator_facts
from onnx_migrate.json_form import selects
from onnx_migrate.standard.schema import versions

__all__ = ["OperatorSteps", "StepLine", "operator_steps", "step_heading"]


@dataclass(frozen=True)
class StepLine:
    """One step of an operator in a line: the code that explains it, its versions, its kind and its reason."""

    code: str
    versions: str
    kind: str
    exactness: str
    reason: str


@dataclass(frozen=True)
class OperatorSteps:
    """The steps of an operator, oldest version first up and newest first down."""

    domain: str
    operator: str
    history: str
    versions: tuple[int, ...]
    up: tuple[StepLine, ...]
    down: tuple[StepLine, ...]
    written_out: tuple[StepLine, ...]

    @property
    def label(self) -> str:
        """The operator with its domain, if that is not ai.onnx."""
        return f"{self.domain}:{self.operator}" if self.domain else self.operator


def step_heading(step: Step) -> str:
    """Return the heading above the description of a step."""
    if step.direction is Direction.WITHOUT:
        return (
            f"{step.operator} where a runtime lacks it: {step.kind if step.refusal else step.exactness.value}"
        )
    grade = f", {step.exactness.value}" if step.adapt else ""
    return f"{step.operator} {_between(step)}: {step.kind}{grade}"


def operator_steps(name: str) -> OperatorSteps | None:
    """Return the steps of an operator, by its name in any case, with or without its domain; None if it has none."""
    key = canonical(name) or _of_plugin(name)
    if key is None:
        return None
    domain, operator = key
    own = [step for step in steps() if (step.domain, step.operator) == key]
    # Steps down are read from the newest version.
    down = sorted((step for step in own if step.direction is Direction.DOWN), key=lambda step: -step.version)
    return OperatorSteps(
        domain,
        operator,
        operator_facts(name, None).get("op_history", ""),
        versions(domain, operator),
        tuple(_line(step) for step in own if step.direction is Direction.UP),
        tuple(map(_line, down)),
        tuple(_line(step) for step in own if step.direction is Direction.WITHOUT),
    )


def _of_plugin(name: str) -> tuple[str, str] | None:
    """Return domain and operator of a name like com.example.Swish, if a plug-in has steps for it."""
    wanted = name.replace(":", ".").lower()
    keys = ((step.domain, step.operator) for step in steps())
    return next((key for key in keys if key[0] and ".".join(key).lower() == wanted), None)


def _between(step: Step) -> str:
    if step.direction is Direction.WITHOUT:
        return ""
    if step.direction is Direction.DOWN:
        return f"{step.version} → {step.older or f'other operators, of opset {step.version - 1}'}"
    return f"{step.older} → {step.version}"


def _line(step: Step) -> StepLine:
    reason = step.reason or step.refusal
    return StepLine(
        step.code, _between(step), step.kind, "" if step.refusal else step.exactness.value, reason
    )


def _domain(operator: OperatorSteps) -> str:
    return operator.domain or "ai.onnx"


selects(StepLine, "code versions kind exactness? reason")
selects(OperatorSteps, "domain operator history versions up down written_out", domain=_domain)
