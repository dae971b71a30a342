"""The generated hostile models: commands end soon and in little memory, and the estimate of a run takes no time itself.

All files and commands: `python -m tests.campaigns.hostile.run --generated --command migrate,inspect,verify,fp16,static`.
"""

from __future__ import annotations

import time
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError

from onnx_migrate.facts.running_cost.estimate import estimate
from tests.campaigns.hostile.case import Case
from tests.campaigns.hostile.generated import GENERATED
from tests.campaigns.hostile.run import Ending, run
from tests.campaigns.hostile.test_hostile import model

MEMORY = 4e9
SECONDS = 60.0
"""Twice what a run may take on an idle machine, as tests share it."""

SAMPLE = (
    "size_Resize_stored_33", "size_Expand_function_40", "size_Gather_shape_62", "loop_concat_computed_40", "loop_add_function_40",
    "loop_pad_stored_10", "work_Gemm_8192", "equation_0", "chain_of_texts_60", "functions_that_double_40", "name_of_a_value_1",
    "bits_3",
)  # fmt: skip
COMMANDS = ("inspect", "verify", "fp16", "unroll", "static", "dynamic", "convert", "convert-down")


def check(case: Case, end: Ending) -> None:
    assert end.exit in case.exits, (f"{end.seconds:.0f} s, {end.memory / 1e6:.0f} MB", end.err[-500:])
    assert "Traceback" not in end.err + end.out


@pytest.mark.long
@pytest.mark.cold
@pytest.mark.parametrize(
    "case", [case for case in GENERATED if case.name in SAMPLE], ids=lambda case: case.name
)
def test_a_migration_ends(case: Case, tmp_path: Path) -> None:
    check(case, run(model(case, tmp_path), "migrate", SECONDS, MEMORY, ("--timeout", "20")))


@pytest.mark.campaign
@pytest.mark.parametrize(
    "case", [case for case in GENERATED if case.name not in SAMPLE], ids=lambda case: case.name
)
def test_every_other_migration_ends(case: Case, tmp_path: Path) -> None:
    check(case, run(model(case, tmp_path), "migrate", SECONDS, MEMORY, ("--timeout", "20")))


@pytest.mark.campaign
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", GENERATED[::10], ids=lambda case: case.name)
def test_every_command_ends(case: Case, command: str, tmp_path: Path) -> None:
    check(case, run(model(case, tmp_path), command, SECONDS, MEMORY))


def test_there_are_three_hundred() -> None:
    assert len({case.data() for case in GENERATED}) == len(GENERATED) >= 300


def test_an_estimate_takes_no_time() -> None:
    slowest = 0.0
    for case in GENERATED:
        try:
            proto = onnx.ModelProto.FromString(case.data())
        except DecodeError:
            continue
        start = time.process_time()
        estimate(proto, memory=1 << 34)
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 2
