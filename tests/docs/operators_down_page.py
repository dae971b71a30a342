"""Writes docs/operators-down.md from the registry of downward steps. `python -m tests.docs.operators_down_page`."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.lowering_registry import LostTypes, Lowering, lowerings
from tests.docs.operators_page import _cell, _slug
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "operators-down.md"

HEAD = """# Operators on the way down

What happens to each operator below each of its versions, down to opset {oldest}; [operators.md](operators.md) is the way up.
There are {count} steps, {ml} of them of ai.onnx.ml. {adapted} are *adapted*: the node is rewritten, by other operators where its
own ends. {unchanged} are *unchanged*: a tested claim that the node is valid in the version before and computes the same.
{refused} are *refused*, because no older operator computes the same. Without a remark, results are bit-identical;
*equivalent* steps compute the same up to rounding, *assumed* ones under a condition that the report states.

A node whose element types the version before does not take computes in a wider type between Casts, where the bits stay the
same (*types: exact*) or where float16 and bfloat16 may round differently (*types: rounded*); else it is refused.

`python -m tests.docs.operators_down_page` writes this page from the code; `onnx-migrate explain CODE` prints one step.

- [Steps that rewrite or refuse](#steps-that-rewrite-or-refuse)
- [Steps that leave the node unchanged](#steps-that-leave-the-node-unchanged)
- [Adapters](#adapters): what each changes, and why the result is the same
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the registry as it is."""
    every = sorted(lowerings(), key=lambda step: (step.domain, step.operator.lower(), step.leaves))
    kinds = [step.kind for step in every]
    head = HEAD.format(
        oldest=OLDEST,
        count=len(every),
        ml=sum(bool(step.domain) for step in every),
        **{kind: kinds.count(kind) for kind in ("adapted", "unchanged", "refused")},
    )
    return "\n".join([head, _rewritten(every), _unchanged(every), _adapters(every)])


def _operator(step: Lowering) -> str:
    return f"{step.domain}.{step.operator}" if step.domain else step.operator


def _rewritten(every: Iterable[Lowering]) -> str:
    lines = ["## Steps that rewrite or refuse\n", "| operator | below | | |", "|---|---|---|---|"]
    homes = {step.adapt: own[0].code for own in _functions(every) for step in own}
    for step in every:
        if step.kind == "unchanged" and step.exactness.value == "exact":
            continue
        kind = f"[adapted](#{_slug(homes[step.adapt])})" if step.adapt else step.kind
        if step.exactness.value != "exact":
            kind += f", {step.exactness.value}"
        text = (step.refusal or step.reason) + (f". Instead: {step.hint}" if step.hint else "")
        lines.append(f"| {_operator(step)} | {step.leaves} | {kind} | {_cell(text)} |")
    return "\n".join(lines) + "\n"


def _unchanged(every: Iterable[Lowering]) -> str:
    reasons: dict[tuple[str, LostTypes], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for step in every:
        if step.kind == "unchanged" and step.exactness.value == "exact":
            reasons[step.reason, step.types][_operator(step)].append(step.leaves)
    lines = [
        "## Steps that leave the node unchanged\n",
        "| the version before | types | steps |",
        "|---|---|---|",
    ]
    for (reason, types), found in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0][0])):
        names = (f"{name} {', '.join(map(str, versions))}" for name, versions in found.items())
        lines.append(f"| {_cell(reason)} | {types.value} | {'; '.join(names)} |")
    return "\n".join(lines) + "\n"


def _functions(every: Iterable[Lowering]) -> list[list[Lowering]]:
    """Return the steps of each adapter, by the name of its first operator."""
    found: dict[object, list[Lowering]] = defaultdict(list)
    for step in every:
        if step.adapt:
            found[step.adapt].append(step)
    return list(found.values())


def _adapters(every: Iterable[Lowering]) -> str:
    parts = ["## Adapters\n"]
    for own in _functions(every):
        adapt = own[0].adapt
        names = ", ".join(f"{_operator(step)} below {step.leaves}" for step in own)
        file = inspect.getfile(adapt).rpartition("/")[2] if adapt else ""
        parts.append(f"### {own[0].code}\n\n{names}; {own[0].exactness.value}; {file}\n\n{own[0].doc}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
