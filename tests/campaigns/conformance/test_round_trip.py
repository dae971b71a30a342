"""A model that is already at its target comes back byte for byte."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate import convert_version
from onnx_migrate.errors import MigrateError
from onnx_migrate.standard.opsets import onnx_opset
from tests.campaigns.conformance.cases import RELEASES, SAMPLED, Case, Unavailable, cases
from tests.harness import ONNX_NEWEST, SUPPORTED
from tests.support.skips import Elsewhere, skip, skip_if

pytestmark = skip_if(
    ONNX_NEWEST < SUPPORTED,
    f"onnx {onnx.__version__} does not know the opsets of newer releases",
    Elsewhere.NEWEST,
)


EXPLAINED = {
    "node/test_cast_": "Cast names its type by a string, as version 1 did, in opset 6: it is of another version than its"
    " model, and is lifted to the model's",
    "node/test_hardmax_": "the output is declared double, and a Hardmax of float outputs float: ONNX Runtime refuses it too",
    "node/test_top_k": "the output of values is declared int64 and that of indices float: ONNX Runtime refuses it too",
    "node/test_group_normalization_": "GroupNormalization-18 was withdrawn: the model is not valid where it stands",
}
"""What does not come back as it was, by the beginning of the case's name, of the releases 1.1.2 and 1.13.1."""


def available(releases: tuple[str, ...]) -> list[Case]:
    try:
        return cases(releases)
    except Unavailable as error:
        skip(str(error), Elsewhere.ONLINE)


def differing(chosen: list[Case]) -> dict[str, str]:
    """Return what became of each case that did not come back as it was."""
    return {str(case): fault for case in chosen if (fault := difference(case)) and not explained(case)}


def difference(case: Case) -> str:
    model = case.model()
    opset = onnx_opset(model.opset_import, ir_version=model.ir_version) or 1
    try:
        result = convert_version(model, opset)
    except MigrateError as error:
        return f"{error.code}: {error}"
    return "" if result.SerializeToString() == case.content() else "other bytes"


def explained(case: Case) -> bool:
    return case.release in ("1.1.2", "1.13.1") and any(
        f"{case.kind}/{case.name}".startswith(beginning) for beginning in EXPLAINED
    )


@pytest.mark.long
def test_sample() -> None:
    assert not differing(available(SAMPLED)[::9])


@pytest.mark.campaign
def test_every_case() -> None:
    assert not differing(available(tuple(RELEASES)))


@pytest.mark.campaign
@pytest.mark.parametrize("target", [13, 26])
def test_a_result_comes_back_as_it_is(target: int) -> None:
    changed = []
    for case in available(tuple(RELEASES)):
        model = case.model()
        if (
            not explained(case)
            and (onnx_opset(model.opset_import, ir_version=model.ir_version) or 1) <= target
        ):
            result = convert_version(model, target)
            if convert_version(result, target).SerializeToString() != result.SerializeToString():
                changed.append(str(case))

    assert not changed
