"""Writes docs/conformance.md: every tool on every case, in one run. `python -m tests.campaigns.conformance.table`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from statistics import median

import onnx
import onnxruntime as ort

from onnx_migrate.standard.opsets import onnx_opset
from tests.campaigns.conformance.cases import RELEASES, Case, cases
from tests.campaigns.conformance.explained import EXPLAINED
from tests.campaigns.conformance.judge import SETTINGS, TOOLS, Outcome
from tests.campaigns.conformance.survey import Task, survey
from tests.harness import ONNX_NEWEST, ORT_NEWEST
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "conformance.md"

SHOWN = ("onnx-migrate", "onnx.version_converter", "changing the number alone", "the original")
"""The rows, in order; the original stays at its own opset."""

HEAD = """# Conformance

Each release of onnx carries small models with recorded inputs and outputs, for the tests of runtimes. We use the
{total:,} distinct ones of the {releases} releases {first} to {last}, of opsets {oldest} to {newest}. The run took
{minutes:.0f} minutes of processor time, with onnx {onnx} and ONNX Runtime {ort}.

Each tool converts each case to opset {low}, the newest of ONNX Runtime, and to {high}, the newest of onnx, in four
settings: as it was shipped, with symbolic dims, inside both branches of an If, and as the body of a local function.

A case *passes* under three conditions:

- Each node of the result is legal at the target.
- `onnx.checker` accepts the result as strictly as the original.
- ONNX Runtime without optimisation, or else onnx.reference, gives the recorded outputs within rtol 1e-3 and atol 1e-7.
  onnx's own tests use these limits.

A case *counts* if any row below passes it in that setting. Cases newer than the target do not count. ONNX Runtime
supports no opset above {low}. Results beyond it run there with the number {low}, if each of their nodes has that form
too.
"""


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="take each n-th case and print instead")
    options = parser.parse_args()

    every = cases()[:: options.every]
    opsets = {case: _opset(case) for case in every}
    tasks: list[Task] = []
    for target in (ORT_NEWEST, ONNX_NEWEST):
        fit = [case for case in every if opsets[case] <= target]
        tasks += [(case, setting, tool, target) for case in fit for setting in SETTINGS for tool in TOOLS]
    # The original is not moved, so one target's outcome stands for both.
    run = [task for task in tasks if task[2] != "the original" or task[3] == ONNX_NEWEST]
    run.sort(key=lambda task: task[2])
    outcomes = survey(run, workers=options.workers)
    for case, setting, tool, target in tasks:
        if tool == "the original" and target != ONNX_NEWEST:
            outcomes[case, setting, tool, target] = outcomes[case, setting, tool, ONNX_NEWEST]
    text = page(every, opsets, outcomes, _processor_seconds())
    if options.every == 1:
        PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


def _processor_seconds() -> float:
    """Return what this process and its children have taken so far."""
    return sum(os.times()[:4])


def _opset(case: Case) -> int:
    model = case.model()
    return onnx_opset(model.opset_import, ir_version=model.ir_version) or 1


def page(
    every: Collection[Case], opsets: dict[Case, int], outcomes: dict[Task, Outcome], seconds: float
) -> str:
    """Return the page of these outcomes."""
    parts = [
        HEAD.format(
            total=len(every),
            releases=len(RELEASES),
            first=next(iter(RELEASES)),
            last=list(RELEASES)[-1],
            oldest=min(opsets.values()),
            newest=max(opsets.values()),
            minutes=max(1, seconds / 60),
            onnx=onnx.__version__,
            ort=ort.__version__,
            low=ORT_NEWEST,
            high=ONNX_NEWEST,
        )
    ]
    counted: dict[tuple[str, int], set[Case]] = defaultdict(set)
    for (case, setting, _, target), outcome in outcomes.items():
        if outcome.passed:
            counted[setting, target].add(case)
    for target in (ORT_NEWEST, ONNX_NEWEST):
        parts.append(f"## To opset {target}\n")
        parts.append(_table(counted, outcomes, target))
    parts.append(_speed(outcomes))
    parts.append(_failures(counted, outcomes))
    parts.append(_endings(counted, outcomes))
    parts.append(_uncounted(every, counted, outcomes))
    return "\n".join(parts)


def _table(counted: dict[tuple[str, int], set[Case]], outcomes: dict[Task, Outcome], target: int) -> str:
    lines = ["| | " + " | ".join(SETTINGS) + " |", "|---" * (len(SETTINGS) + 1) + "|"]
    lines.append(
        "| cases that count | " + " | ".join(f"{len(counted[s, target]):,}" for s in SETTINGS) + " |"
    )
    for tool in SHOWN:
        row = []
        for setting in SETTINGS:
            passed = sum(outcomes[case, setting, tool, target].passed for case in counted[setting, target])
            row.append(f"**{passed:,}**" if passed == len(counted[setting, target]) else f"{passed:,}")
        name = "the original, where it stands" if tool == "the original" else tool
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def _speed(outcomes: dict[Task, Outcome]) -> str:
    times: dict[str, list[float]] = defaultdict(list)
    for (_, setting, tool, target), outcome in outcomes.items():
        if setting == "as shipped" and target == ORT_NEWEST and outcome.seconds:
            times[tool].append(outcome.seconds * 1000)
    told = [f"{tool} {median(times[tool]):.1f} ms" for tool in SHOWN[:2] if times[tool]]
    return f"One case as shipped, to {ORT_NEWEST}, in the median of processor time: {', '.join(told)}.\n"


def _failures(counted: dict[tuple[str, int], set[Case]], outcomes: dict[Task, Outcome]) -> str:
    failed: dict[str, list[str]] = defaultdict(list)
    for (setting, target), cases_ in counted.items():
        for case in cases_:
            outcome = outcomes[case, setting, "onnx-migrate", target]
            if not outcome.passed:
                reason = EXPLAINED.get(str(case), f"{outcome.kind}: {_one_line(outcome.text)}")
                failed[f"`{case}`: {reason}"].append(f"{setting}, {target}")
    lines = ["## What onnx-migrate does not pass\n"]
    lines += [f"- {text} ({'; '.join(where)})" for text, where in sorted(failed.items())] or ["Nothing."]
    return "\n".join(lines) + "\n"


def _endings(counted: dict[tuple[str, int], set[Case]], outcomes: dict[Task, Outcome]) -> str:
    rival, setting = "onnx.version_converter", "as shipped"
    kinds: dict[str, list[str]] = defaultdict(list)
    for case in counted[setting, ORT_NEWEST]:
        outcome = outcomes[case, setting, rival, ORT_NEWEST]
        if not outcome.passed:
            kinds[outcome.kind].append(_subject(case))
    lines = [f"## What {rival} does not pass\n", f"As shipped, to {ORT_NEWEST}:\n"]
    words = {
        "refused": "it raises",
        "no-evaluator": "its result does not run",
        "wrong": "its result gives other values",
        "illegal": "its result is not valid at the target",
        "crashed": "it ends the process",
        "hung": "it does not end",
    }
    lines += [
        f"- {words.get(kind, kind)} ({len(names)}): {_names(names)}" for kind, names in sorted(kinds.items())
    ]
    return "\n".join(lines) + "\n"


def _uncounted(
    every: Iterable[Case], counted: dict[tuple[str, int], set[Case]], outcomes: dict[Task, Outcome]
) -> str:
    setting, target = "as shipped", ONNX_NEWEST
    kinds: dict[str, list[str]] = defaultdict(list)
    for case in every:
        if case not in counted[setting, target]:
            outcome = outcomes[case, setting, "the original", target]
            kinds[outcome.kind].append(_subject(case))
    words = {
        "wrong": "the original gives other values than were recorded, or values of another type, in each evaluator that"
        " runs it: most of these records were corrected in a later release",
        "random": "random operators",
        "no-evaluator": "neither evaluator runs the original",
        "unreadable": "onnx cannot read the record",
    }
    lines = [
        "## What does not count\n",
        f"As shipped, {sum(map(len, kinds.values()))} cases, for nobody passes them:\n",
    ]
    lines += [
        f"- {words.get(kind, kind)} ({len(names)}): {_names(names)}" for kind, names in sorted(kinds.items())
    ]
    return "\n".join(lines) + "\n"


def _subject(case: Case) -> str:
    """Say what a case is about: its operator, or its name when it has several."""
    nodes = case.model().graph.node
    return str(nodes[0].op_type) if len(nodes) == 1 else case.name.removeprefix("test_")


def _names(subjects: Iterable[str]) -> str:
    counts = sorted(Counter(subjects).items())
    return ", ".join(f"{name} × {count}" if count > 1 else name for name, count in counts)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:200]


if __name__ == "__main__":
    main()
