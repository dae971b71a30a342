"""What onnx's own releases recorded is what a migrated model gives, in four settings and at two opsets.

The default run takes a spread sample; `pytest -m campaign tests/campaigns/conformance` takes all cases, in a few minutes.
`python -m tests.campaigns.conformance.table` writes docs/conformance.md.
"""

from __future__ import annotations

import itertools
from functools import cache

import onnx
import pytest

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction
from onnx_migrate.standard.opsets import onnx_opset
from tests.campaigns.conformance.cases import RELEASES, SAMPLED, Case, Unavailable, cases
from tests.campaigns.conformance.explained import EXPLAINED
from tests.campaigns.conformance.judge import SETTINGS, VARIANTS, Outcome, judge
from tests.campaigns.conformance.survey import survey
from tests.harness import ONNX_NEWEST, ORT_NEWEST, SUPPORTED
from tests.support.skips import Elsewhere, skip, skip_if

TARGETS = sorted({ORT_NEWEST, ONNX_NEWEST})
STRIDE = 40

pytestmark = skip_if(
    ONNX_NEWEST < SUPPORTED,
    f"onnx {onnx.__version__} cannot judge the cases of newer releases",
    Elsewhere.NEWEST,
)


def available(releases: tuple[str, ...]) -> list[Case]:
    try:
        return cases(releases)
    except Unavailable as error:
        skip(str(error), Elsewhere.ONLINE)


def too_new(case: Case, target: int) -> bool:
    model = case.model()
    return (onnx_opset(model.opset_import, ir_version=model.ir_version) or 1) > target


def unexplained(failed: dict[Case, Outcome], setting: str, target: int) -> list[str]:
    """Say which of these count: the original gives the recorded outputs where it stands."""
    return [
        f"{case}: {outcome.kind}: {outcome.text}"
        for case, outcome in failed.items()
        if str(case) not in EXPLAINED
        and outcome.kind not in ("unreadable", "random")
        and not too_new(case, target)
        and judge(case, setting, "the original", target).passed
    ]


@cache
def sampled() -> tuple[list[Case], list[Case]]:
    """Return the cases of some releases: those with an operator that an adapter is for, and the others."""
    adapted: dict[str, int] = {}
    for step in steps(Direction.UP):
        if step.kind == "adapted":
            adapted[step.operator] = max(step.version, adapted.get(step.operator, 0))
    concerned, others = [], []
    for case in sorted(available(SAMPLED), key=lambda case: (case.name, case.release)):
        model = case.model()
        opset = onnx_opset(model.opset_import, ir_version=model.ir_version) or 1
        concerns = any(adapted.get(node.op_type, 0) > opset for node in model.graph.node)
        (concerned if concerns else others).append(case)
    return concerned, others


@pytest.mark.long
@pytest.mark.parametrize(
    ("place", "setting", "target"),
    [(place, *pair) for place, pair in enumerate(itertools.product(SETTINGS, TARGETS))],
)
def test_sample(place: int, setting: str, target: int) -> None:
    """All that concern an adapter as they were shipped; of the rest, in turns, some."""
    concerned, others = sampled()
    step = 1 if place == 0 else 4
    sample = [*concerned[place % step :: step], *others[place::STRIDE]]
    sample = [case for case in sample if not too_new(case, target)]
    outcomes = {case: judge(case, setting, "onnx-migrate", target) for case in sample}
    failed = {case: outcome for case, outcome in outcomes.items() if not outcome.passed}

    assert not unexplained(failed, setting, target)
    assert len(sample) - len(failed) > 0.9 * len(sample)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("setting", "target"),
    [
        *((setting, target) for setting in VARIANTS for target in TARGETS),
        *(("as shipped", target) for target in (13, 17, 21)),
    ],
)
def test_every_case(setting: str, target: int) -> None:
    every = [case for case in available(tuple(RELEASES)) if not too_new(case, target)]
    outcomes = survey([(case, setting, "onnx-migrate", target) for case in every])
    failed = {task[0]: outcome for task, outcome in outcomes.items() if not outcome.passed}

    assert not unexplained(failed, setting, target)
    assert len(every) - len(failed) > 0.95 * len(every)
