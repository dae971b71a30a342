"""Writes onnx_migrate/explanation/step_examples.txt: for each step that rewrites, a small graph before and after it.

    python -m tools.steps.examples

Of the samples that a step changes, the one with the shortest text is the example. A longer text is no help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import onnx

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.errors import MigrateError
from onnx_migrate.explanation.step_examples import FILE
from tests.passes.contrib import level_1, level_2, level_3, level_4
from tests.passes.contrib.one_node import Case
from tests.passes.steps.step_samples import STEP_SAMPLES
from tools.steps.node_text import node_lines
from tools.steps.runs import step_runs, without

LONGEST = 16
"""The lines of the longest example."""

Graphs = tuple[onnx.GraphProto, onnx.GraphProto]


def text() -> str:
    """Return the examples of the steps that are registered now, separated by empty lines."""
    graphs = {**_of_samples(), **_of_other_domains()}
    examples = ((step.code, _shortest(graphs.get(_key(step), ()))) for step in steps() if step.adapt)
    return "\n".join(f"{code}\n{example}" for code, example in sorted(examples) if example)


def _key(step: Step) -> tuple[str, str, str]:
    if step.direction is Direction.WITHOUT:
        return step.domain, step.operator, "without"
    ends = (step.version - 1, step.version)
    return (
        step.domain,
        step.operator,
        "→".join(map(str, ends if step.direction is Direction.UP else ends[::-1])),
    )


def _of_samples() -> dict[tuple[str, str, str], list[Graphs]]:
    graphs: dict[tuple[str, str, str], list[Graphs]] = {}
    for operator in STEP_SAMPLES:
        for run in step_runs(operator):
            if not isinstance(run.after, MigrateError):
                graphs.setdefault(("", operator, run.way), []).append((run.before, run.after))
    return graphs


def _of_other_domains() -> dict[tuple[str, str, str], list[Graphs]]:
    """Return the graphs of test cases of operators of other domains."""
    graphs: dict[tuple[str, str, str], list[Graphs]] = {}
    for case in _cases():
        known = graphs.setdefault((case.domain, case.operator, "without"), [])
        model = case.model(max(case.opsets))
        if len(known) < 4:  # more cases do not give shorter texts
            try:
                known.append((case.model(max(case.opsets)).graph, without(model, case.operator).graph))
            except MigrateError:
                continue
    return graphs


def _cases() -> Iterator[Case]:
    # Tests may have drawn from it before, and the example must not depend on that.
    level_1.RNG.bit_generator.state = np.random.default_rng(1).bit_generator.state
    for level in (level_1, level_2, level_3, level_4):
        for grid in level.GRIDS:
            yield from grid()


def _shortest(graphs: Iterable[Graphs]) -> str:
    return min(filter(None, (_example(before, after) for before, after in graphs)), key=len, default="")


def _example(before: onnx.GraphProto, after: onnx.GraphProto) -> str:
    """Return the nodes that a step changes, and those that replace them; "" if the text is the same, or too long."""
    old, new = list(node_lines(before)), list(node_lines(after))
    removed = [line for line in old if line not in new]
    added = [line for line in new if line not in old]
    if not removed or not added or len(removed) + len(added) > LONGEST:
        return ""
    return (
        "".join(f"    {line}\n" for line in removed)
        + "becomes\n"
        + "".join(f"    {line}\n" for line in added)
    )


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
