"""What onnx's own releases recorded is what a migrated model gives, in four settings and at two opsets.

The default run takes a spread sample; `pytest -m conformance` takes all cases in a few minutes, on two cores.
`python -m tests.conformance.table` writes docs/conformance.md.
"""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.model.opset import onnx_opset
from tests.conformance.cases import RELEASES, SAMPLED, Case, Unavailable, cases
from tests.conformance.explained import EXPLAINED
from tests.conformance.judge import SETTINGS, VARIANTS, Outcome, judge
from tests.conformance.survey import survey
from tests.harness import ONNX_NEWEST, ORT_NEWEST, SUPPORTED

TARGETS = sorted({ORT_NEWEST, ONNX_NEWEST})
STRIDE = 12

pytestmark = pytest.mark.skipif(
    ONNX_NEWEST < SUPPORTED, reason=f"onnx {onnx.__version__} cannot judge the cases of newer releases"
)


def available(releases: tuple[str, ...]) -> list[Case]:
    try:
        return cases(releases)
    except Unavailable as error:
        pytest.skip(str(error))


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


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_sample(setting: str, target: int) -> None:
    sample = sorted(available(SAMPLED), key=lambda case: (case.name, case.release))[::STRIDE]
    outcomes = {case: judge(case, setting, "onnx-migrate", target) for case in sample}
    failed = {case: outcome for case, outcome in outcomes.items() if not outcome.passed}

    assert not unexplained(failed, setting, target)
    assert len(sample) - len(failed) > 0.9 * len(sample)


@pytest.mark.conformance
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
