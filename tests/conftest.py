"""What all tests share: whether Ctrl-C is ignored, and that models an older onnx cannot read are skipped."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import pytest
from onnx import parser

from tests.support.faulty_runtime import faulty

__all__ = ["faulty"]

NOTATION = '<ir_version: 8, opset_import: ["": 17]> g (float x) => (float y) { [name] y = Clip (x, "", "") }'


def _reads_today_s_notation() -> bool:
    try:
        parser.parse_model(NOTATION)
    except parser.ParseError:
        return False
    return True


READS = _reads_today_s_notation()


@contextmanager
def _skipping_new_notation() -> Iterator[None]:
    """Skip a test that fails for its notation alone: names of nodes, and "" for what is left out."""
    try:
        yield
    except parser.ParseError as error:
        if READS:
            raise
        pytest.skip(f"the text of a model is beyond onnx {onnx.__version__}: {error}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Run a test."""
    with _skipping_new_notation():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: object, request: object) -> Iterator[None]:
    """Set up a fixture of a test."""
    with _skipping_new_notation():
        return (yield)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT end the processes that a test starts, also where the tests run as a background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def in_background() -> Iterator[None]:
    """Let the processes that a test starts ignore SIGINT at first, as a shell does for its background jobs."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)
