"""Writes docs/operators.md from the registry's steps. `python -m tools.pages.operators_page`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from onnx.defs import get_all_schemas_with_history

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.standard.schema import newest_opset
from tests.support.paths import ROOT
from tools.pages.step_pages import adapters_section, by_adapter, cell, kind_cell, operator_of

PAGE = ROOT / "docs" / "operators.md"

HEAD = """# Operators

This page lists the steps of each operator to newer opsets, up to {newest}. A step is an operator and its new version.
There are {standard} steps of ai.onnx, {left} of operators that ONNX removed in 2019, and {other} of ai.onnx.ml, which
changes only on request:

- {adapted} are *adapted*: onnx-migrate rewrites the node.
- {compatible} are *compatible*: a test shows that a valid node of the previous version is valid and computes the same.
- {refused} are *refused*, because the standard cannot express the node.

Without a remark, results are bit-identical. *Equivalent* steps compute the same up to rounding.
`onnx-migrate explain CODE` prints one step. [Older opsets](operators-down.md) have their own page.

- [Operators that are rewritten or refused](#operators-that-are-rewritten-or-refused), with all their steps
- [Operators that only gained](#operators-that-only-gained), by the reason why nothing has to change
- [Adapters](#adapters): what each changes, and why the result is the same
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the registry as it is."""
    every = sorted(steps(Direction.UP), key=lambda step: (step.domain, step.operator.lower(), step.version))
    kinds = [step.kind for step in every]
    operators: dict[str, list[Step]] = defaultdict(list)
    for step in every:
        operators[operator_of(step)].append(step)
    moved = [
        own
        for own in operators.values()
        if any(step.kind != "compatible" or step.exactness.value != "exact" for step in own)
    ]
    claims = [step for own in operators.values() if own not in moved for step in own]
    first: dict[str, int] = {}
    for form in get_all_schemas_with_history():
        if not form.domain:
            first[form.name] = min(form.since_version, first.get(form.name, form.since_version))
    own = [step for step in every if not step.domain]
    # A step to the first version of an operator starts at an operator that was removed.
    standard = sum(step.version > first.get(step.operator, newest_opset()) for step in own)
    head = HEAD.format(
        newest=newest_opset(),
        standard=standard,
        left=len(own) - standard,
        other=len(every) - len(own),
        **{kind: kinds.count(kind) for kind in set(kinds)},
    )
    adapters = adapters_section(every, lambda step: f"{step.older or 1} → {step.version}")
    return "\n".join([head, _moved(moved, every), _claims(claims), adapters])


def _moved(operators: Iterable[list[Step]], every: Iterable[Step]) -> str:
    lines = ["## Operators that are rewritten or refused\n", "| operator | to | | |", "|---|---|---|---|"]
    homes: dict[object, str] = {step.adapt: own[0].code for own in by_adapter(every) for step in own}
    for own in operators:
        name = operator_of(own[0])
        for step in own:
            text = step.refusal or step.reason
            text += f". Instead: {step.hint}" if step.hint else ""
            lines.append(f"| {name} | {step.version} | {kind_cell(step, homes)} | {cell(text)} |")
            name = ""
    return "\n".join(lines) + "\n"


def _claims(claims: Iterable[Step]) -> str:
    reasons: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for step in claims:
        reasons[step.reason][operator_of(step)].append(step.version)
    lines = ["## Operators that only gained\n", "| what the new version changes | steps |", "|---|---|"]
    for reason, found in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        names = (f"{name} {', '.join(map(str, versions))}" for name, versions in found.items())
        lines.append(f"| {cell(reason)} | {'; '.join(names)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
