"""What all tests share: how processes start and end, how SIGINT is handled, why tests may skip."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Without the files of compiled code each process that a test starts would compile all of the project again: 0.6 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# ONNX Runtime's telemetry is a thread and a database in each process, and a thread does not survive a fork.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from tests.support import one_thread  # noqa: E402

one_thread.install()

import onnx  # noqa: E402
import pytest  # noqa: E402
from onnx import parser  # noqa: E402

from tests.support import rows, warm_start  # noqa: E402
from tests.support.faulty_runtime import faulty, saturating  # noqa: E402
from tests.support.other_kernels import skip_other_kernels  # noqa: E402
from tests.support.processes import start  # noqa: E402
from tests.support.skips import Elsewhere, skip, without_run  # noqa: E402

__all__ = ["faulty", "saturating", "start"]

warm_start.install()

MOST_PROCESSES = 4
"""Each process of the tests has up to 700 MB."""

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
        skip(f"the text of a model is beyond onnx {onnx.__version__}: {error}", Elsewhere.NEWEST)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--all`."""
    parser.addoption(
        "--all",
        action="store_true",
        help="run all rows of all tests, in all settings, and tests that take long",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Leave out the tests that the command does not ask for, and share all of them among the processors."""
    if not config.option.markexpr and not any("::" in argument for argument in config.args):
        config.option.markexpr = "not campaign" if config.getoption("all") else "not campaign and not long"
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    # Without a path all tests run, which is worth the start of further processes; a few tests end sooner without them.
    if is_whole and config.getoption("numprocesses", 0) is None and not config.option.usepdb:
        config.option.numprocesses = min(os.cpu_count() or 1, MOST_PROCESSES)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Choose rows of a test and number them. To make a row takes 0.2 ms, so the others are not made."""
    yield
    test, calls = metafunc.definition, metafunc._calls
    if not (
        rows.runs_all(metafunc.config)
        or test.get_closest_marker("campaign")
        or test.get_closest_marker("long")
    ):
        sample = test.get_closest_marker("sample")
        metafunc._calls = calls = rows.choose(calls, test.nodeid, sample.args[0] if sample else 0)
    if not metafunc.config.getoption("all"):
        rows.number([f"{test.nodeid}[{call.id}]" for call in calls])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what old releases compute otherwise."""
    skip_other_kernels(items)


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not among the tests themselves: 0.2 s for a whole collection with them, 5 ms without."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the processes of a test start from nothing if it asks for that."""
    warm_start.WarmPopen.on = item.get_closest_marker("cold") is None


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


def pytest_configure() -> None:
    """Collect no garbage until all tests are there, and let SIGINT interrupt them and what they start.

    A shell lets what it runs in the background ignore that.
    """
    gc.disable()
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    """Put back what a command that ran in this process has set: its handler of SIGINT would end the process at the next one."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    try:
        return (yield)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a test skips and names no other run that covers it."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    skipped = (report.longrepr for report in reporter.stats.get("skipped", ()))
    reasons = [where[2].removeprefix("Skipped: ") for where in skipped if isinstance(where, tuple)]
    if uncovered := without_run(reasons):
        reporter.write_line("\nThese skips name no run (tests/support/skips.py):", red=True)
        for reason in uncovered:
            reporter.write_line(f"  {reason}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def in_background() -> Iterator[None]:
    """Let the processes that a test starts ignore SIGINT at first, as a shell does for its background jobs."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)
