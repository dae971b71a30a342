"""Limits of time and memory, which four commands have."""

from __future__ import annotations

import pytest

from onnx_migrate.cli.options.limit_options import bytes_of
from tests.cli.running import Run


@pytest.mark.parametrize(("gigabytes", "expected"), [(None, None), (1.0, 2**30), (0.5, 2**29)])
def test_a_memory_limit_is_in_gibibytes(gigabytes: float | None, expected: int | None) -> None:
    assert bytes_of(gigabytes) == expected


@pytest.mark.parametrize("command", ["migrate", "batch", "inspect", "verify"])
@pytest.mark.parametrize("option", ["--timeout", "--memory-limit"])
def test_a_limit_of_nothing_is_refused(cli: Run, command: str, option: str) -> None:
    models = ["small.onnx", "small.onnx"] if command == "verify" else ["small.onnx"]
    done = cli(command, *models, option, "0")

    assert done.code == 2
    assert option in done.err
