"""Replaces registered steps down for one test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from onnx_migrate.engine.steps import registry
from onnx_migrate.engine.steps.step import Direction, Step

__all__ = ["replace_steps_down"]

registered = registry.step_at


def replace_steps_down(
    monkeypatch: pytest.MonkeyPatch, replaced: Callable[[str, str, int, Step | None], Step | None]
) -> None:
    """Let the engine take the steps that a function returns for a domain, an operator, a version and the registered step."""

    def step_at(direction: Direction, domain: str, operator: str, version: int) -> Step | None:
        step = registered(direction, domain, operator, version)
        return replaced(domain, operator, version, step) if direction is Direction.DOWN else step

    monkeypatch.setattr(registry, "step_at", step_at)
    monkeypatch.setattr(
        registry, "_passed", getattr(registry._passed, "__wrapped__", registry._passed)
    )  # the cache has the registered ones
