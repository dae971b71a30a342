"""Writes tests/engine/steps/written_operators.txt: the operators that each step writes for each sample.

    python -m tools.steps.written_operators

A line is an operator, the number of its sample, the opsets, and the operators before and after.
"""

from __future__ import annotations

from onnx_migrate.errors import MigrateError
from tests.passes.steps.step_samples import STEP_SAMPLES
from tests.support.paths import ROOT
from tools.steps.node_text import operator_list
from tools.steps.runs import step_runs

FILE = ROOT / "tests" / "engine" / "steps" / "written_operators.txt"


def text() -> str:
    """Return the lines for the steps that are registered now, but not for runs that leave all operators and attributes."""
    lines = []
    for operator in sorted(STEP_SAMPLES):
        for run in step_runs(operator):
            before = operator_list(run.before)
            after = (
                f"refused, {run.after.code}"
                if isinstance(run.after, MigrateError)
                else operator_list(run.after)
            )
            if before != after:
                lines.append(f"{operator} #{run.number} {run.way}: {before} → {after}\n")
    return "".join(lines)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
