"""The ledger of downward steps: each is adapted, claimed or refused, and nothing else is registered."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.lowering_registry import lowerings
from onnx_migrate.standard.schema import newest_opset, operators, signature, versions
from onnx_migrate.standard.unlisted_operators import RUNTIME_OPERATORS
from tests.passes.test_ledger import NEWEST_SUPPORTED

OF_RUNTIME = {(operator.name, operator.step_at) for operator in RUNTIME_OPERATORS}


def _known() -> set[tuple[str, int]]:
    """Return every (operator, since_version) of ai.onnx above the oldest opset that a lowering reaches."""
    return {
        (name, version)
        for domain, name in operators()
        if not domain
        for version in versions("", name)
        if version > OLDEST and not _unreachable(name, version)
    }


def _unreachable(name: str, version: int) -> bool:
    """Return whether no valid node has this version: the standard deprecated the operator with it."""
    return signature("", name, version).deprecated and (name, version) != ("GroupNormalization", 18)


def _registered() -> set[tuple[str, int]]:
    return {(step.operator, step.leaves) for step in lowerings() if not step.domain}


def _listed(found: set[tuple[str, int]]) -> str:
    return ", ".join(f"{operator}-{version}" for operator, version in sorted(found))


def test_every_step_is_registered() -> None:
    missing = _known() - _registered()
    assert not missing, f"{len(missing)} downward steps are missing: {_listed(missing)}"


def test_every_registration_is_a_step() -> None:
    strange = {step for step in _registered() - _known() if step[1] <= newest_opset()}
    assert not strange, f"registered, and no step of onnx {onnx.__version__}: {_listed(strange)}"


def test_every_step_says_why() -> None:
    silent = {(step.operator, step.leaves) for step in lowerings() if not (step.reason or step.refusal)}
    assert not silent, f"no reason given: {_listed(silent)}"


@pytest.mark.skipif(newest_opset() != NEWEST_SUPPORTED, reason="an older onnx knows fewer steps")
def test_count() -> None:
    """469 steps leave a version above 7; no node can have the 2 at which Upsample and Scatter were deprecated."""
    assert len(_known() - OF_RUNTIME) == 467
