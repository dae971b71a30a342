"""A task that takes its process with it costs no other task its outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import pytest

from tests.campaigns.conformance.cases import Case
from tests.campaigns.conformance.judge import Outcome
from tests.campaigns.conformance.survey import Task, survey


def act(tasks: Sequence[Task]) -> list[Outcome]:
    for case, *_ in tasks:
        if case.name == "crash":
            os.abort()
        if case.name == "hang":
            time.sleep(600)
    return [Outcome("passed") for _ in tasks]


@pytest.mark.campaign
def test_others_are_judged_all_the_same() -> None:
    names = ["one", "crash", "two", "hang", *map(str, range(20))]
    tasks: list[Task] = [(Case("0", "node", name, ""), "as shipped", "onnx-migrate", 26) for name in names]

    outcomes = survey(tasks, seconds=5, work=act)

    kinds = {task[0].name: outcome.kind for task, outcome in outcomes.items()}
    assert kinds == dict.fromkeys(names, "passed") | {"crash": "crashed", "hang": "hung"}
