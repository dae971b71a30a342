"""Writes docs/operators-down.md from the registry of downward steps. `python -m tools.pages.operators_down_page`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction, LostTypes, Step
from tests.support.paths import ROOT
from tools.pages.step_pages import adapters_section, by_adapter, cell, kind_cell, operator_of

PAGE = ROOT / "docs" / "operators-down.md"

HEAD = """# Operators on the way to older opsets

This page lists the step of each operator below each of its versions, down to opset {oldest}. [Operators](operators.md)
lists the steps to newer opsets. There are {count} steps, {ml} of them for ai.onnx.ml:

- {adapted} are *adapted*: other nodes or another form replace the node.
- {unchanged} are *unchanged*: a test shows that the node is valid in the older version and computes the same.
- {refused} are *refused*, because no older operator computes the same.

Without a remark, results are bit-identical. *Equivalent* steps compute the same up to rounding. *Assumed* steps need a
condition that the report names.

If the older version does not support the element type, the node computes in a wider type between Casts. The bits then
stay the same (*types: exact*), or float16 and bfloat16 may round differently (*types: rounded*).

The page shows short formulas as code: `op.Exp(x)` writes an Exp, and `x + 1` an Add. onnx-migrate computes constants
and fixed dims at once. `onnx-migrate explain CODE` prints one step.

- [Steps that rewrite or refuse](#steps-that-rewrite-or-refuse)
- [Steps that leave the node unchanged](#steps-that-leave-the-node-unchanged)
- [Adapters](#adapters): what each changes, and why the result is the same
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the registry as it is."""
    every = sorted(steps(Direction.DOWN), key=lambda step: (step.domain, step.operator.lower(), step.version))
    kinds = [step.kind for step in every]
    head = HEAD.format(
        oldest=OLDEST,
        count=len(every),
        ml=sum(bool(step.domain) for step in every),
        **{kind: kinds.count(kind) for kind in ("adapted", "unchanged", "refused")},
    )
    adapters = adapters_section(every, lambda step: f"below {step.version}")
    return "\n".join([head, _rewritten(every), _unchanged(every), adapters])


def _rewritten(every: Iterable[Step]) -> str:
    lines = ["## Steps that rewrite or refuse\n", "| operator | below | | |", "|---|---|---|---|"]
    homes: dict[object, str] = {step.adapt: own[0].code for own in by_adapter(every) for step in own}
    for step in every:
        if step.kind == "unchanged" and step.exactness.value == "exact":
            continue
        text = (step.refusal or step.reason) + (f". Instead: {step.hint}" if step.hint else "")
        lines.append(f"| {operator_of(step)} | {step.version} | {kind_cell(step, homes)} | {cell(text)} |")
    return "\n".join(lines) + "\n"


def _unchanged(every: Iterable[Step]) -> str:
    reasons: dict[tuple[str, LostTypes], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for step in every:
        if step.kind == "unchanged" and step.exactness.value == "exact":
            reasons[step.reason, step.types][operator_of(step)].append(step.version)
    lines = [
        "## Steps that leave the node unchanged\n",
        "| the version before | types | steps |",
        "|---|---|---|",
    ]
    for (reason, types), found in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0][0])):
        names = (f"{name} {', '.join(map(str, versions))}" for name, versions in found.items())
        lines.append(f"| {cell(reason)} | {types.value} | {'; '.join(names)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
