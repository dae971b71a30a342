"""Calls in this process, and the stages they set."""

from __future__ import annotations

import math
import os

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.process import OutOfMemory, Raised, Returned
from onnx_migrate.process.child import call, captured_output, mark


@pytest.mark.parametrize("function", [math.sqrt, "math:sqrt"])
def test_a_function_by_itself_and_by_its_path(function: object) -> None:
    assert call(function, (4.0,)) == Returned(2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "kind"), [("no.such:f", "ModuleNotFoundError"), ("math:f", "AttributeError")]
)
def test_a_path_that_leads_nowhere(function: str, kind: str) -> None:
    ending = call(function, ())
    assert isinstance(ending, Raised)
    assert ending.kind == kind


def fail(error: Exception) -> None:
    mark("failing")
    raise error


def test_endings_keep_the_stage_and_our_own_error() -> None:
    error = UsageError("no such input")
    ending = call(fail, (error,))
    assert isinstance(ending, Raised)
    assert (ending.error, ending.stage) == (error, "failing")
    mark("of an earlier call")
    again = call(math.sqrt, (-1.0,))
    assert isinstance(again, Raised)
    assert (again.error, again.stage) == (None, "")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("Failed to allocate memory for requested buffer")]
)
def test_lack_of_memory_is_recognised(error: Exception) -> None:
    ending = call(fail, (error,))
    assert isinstance(ending, OutOfMemory)
    assert (ending.stage, ending.cause) == ("failing", str(error))


def test_what_is_written_to_the_descriptor_is_collected() -> None:
    with captured_output() as text:
        os.write(2, b"a warning of native code")
        assert text() == "a warning of native code"
        os.write(2, b", and another")
    with captured_output() as text:
        assert text() == ""
