from __future__ import annotations

import time

import pytest

from onnx_migrate.engine.stage_clock import StageClock


def test_stages_are_announced_and_their_times_add_up() -> None:
    begun: list[str] = []
    clock = StageClock(begun.append)

    for name in ("load", "lift", "lift"):
        with clock(name):
            time.sleep(0.01)

    assert begun == ["load", "lift", "lift"]
    assert clock.seconds["load"] >= 0.01
    assert clock.seconds["lift"] >= 0.02


def test_a_stage_that_fails_is_timed_too() -> None:
    clock = StageClock(None)
    with pytest.raises(ValueError, match="on purpose"), clock("load"):
        raise ValueError("on purpose")
    assert "load" in clock.seconds
