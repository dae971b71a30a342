"""Every operator version has a step up and down."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction
from onnx_migrate.standard.schema import newest_opset, operators, signature, versions
from onnx_migrate.standard.unlisted_operators import EXPERIMENTAL_OPERATORS, RUNTIME_OPERATORS
from tests.support.skips import Elsewhere, skip_if

NEWEST_SUPPORTED = 28
"""The newest opset that the registry has been written for; an older onnx knows a part of its steps."""


def _known() -> set[tuple[str, int]]:
    """Return every (operator, since_version) of ai.onnx but each operator's first."""
    names = {name for domain, name in operators() if not domain}
    return {(name, version) for name in names for version in versions("", name)[1:]}


REMOVALS = {(operator.name, operator.removed_in) for operator in EXPERIMENTAL_OPERATORS}
"""Steps of which onnx.defs has not both sides: operators that stood outside of its versions."""

OF_RUNTIME = {(operator.name, operator.standard_from or operator.step_at) for operator in RUNTIME_OPERATORS}
"""Steps of operators that ONNX Runtime has beside the standard, likewise."""


def _registered() -> set[tuple[str, int]]:
    return {(step.operator, step.version) for step in steps(Direction.UP) if not step.domain}


def _listed(found: set[tuple[str, int]]) -> str:
    return ", ".join(f"{operator}-{version}" for operator, version in sorted(found))


def test_every_step_is_registered() -> None:
    missing = _known() - _registered()
    assert not missing, (
        f"{len(missing)} steps are neither adapted nor claimed nor refused: {_listed(missing)}"
    )


def test_every_registration_is_a_step() -> None:
    strange = {step for step in _registered() - _known() if step[1] <= newest_opset()}
    assert not strange, f"registered, and no step of onnx {onnx.__version__}: {_listed(strange)}"
    late = {step for step in _registered() if step[1] > NEWEST_SUPPORTED}
    assert not late, f"beyond opset {NEWEST_SUPPORTED}, which the registry is written for: {_listed(late)}"


def test_every_step_says_why() -> None:
    silent = {
        (step.operator, step.version) for step in steps(Direction.UP) if not (step.reason or step.refusal)
    }
    assert not silent, f"no reason given: {_listed(silent)}"


@skip_if(newest_opset() != NEWEST_SUPPORTED, "an older onnx knows fewer steps", Elsewhere.NEWEST)
def test_count() -> None:
    """The figure that the documentation names."""
    assert len(_known() - REMOVALS - OF_RUNTIME) == 426
    assert len(REMOVALS) == 13


DOWN_OF_RUNTIME = {(operator.name, operator.step_at) for operator in RUNTIME_OPERATORS}


def _known_down() -> set[tuple[str, int]]:
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


def _registered_down() -> set[tuple[str, int]]:
    return {(step.operator, step.version) for step in steps(Direction.DOWN) if not step.domain}


def test_every_step_is_registered_down() -> None:
    missing = _known_down() - _registered_down()
    assert not missing, f"{len(missing)} downward steps are missing: {_listed(missing)}"


def test_every_registration_is_a_step_down() -> None:
    strange = {step for step in _registered_down() - _known_down() if step[1] <= newest_opset()}
    assert not strange, f"registered, and no step of onnx {onnx.__version__}: {_listed(strange)}"


def test_every_step_says_why_down() -> None:
    silent = {
        (step.operator, step.version) for step in steps(Direction.DOWN) if not (step.reason or step.refusal)
    }
    assert not silent, f"no reason given: {_listed(silent)}"


@skip_if(newest_opset() != NEWEST_SUPPORTED, "an older onnx knows fewer steps", Elsewhere.NEWEST)
def test_count_down() -> None:
    """469 steps leave a version above 7; no node can have the 2 at which Upsample and Scatter were deprecated."""
    assert len(_known_down() - DOWN_OF_RUNTIME) == 467
