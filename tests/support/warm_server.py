"""Imports what the command line and its workers import, and forks a process for each request of tests/support/warm_start.py.

A fork sees the arguments, the folder, the environment, the streams and the search path of a process that was started for it,
and ends as one. The search path must not have other modules under the names of those that are imported already.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.machinery
import os
import pickle
import resource
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from onnx_migrate.process.child import BOOT
from tests.support import warm_start
from tests.support.paths import ROOT
from tests.support.warm_start import NUMBER

MODULES = (
    "multiprocessing.connection", "numpy", "onnx", "onnxruntime", "onnxsim", "rich.console", "pytest",
    *(f"onnx_migrate.{name}" for name in (
        "cli.app", "cli.output.failure", "cli.output.batch_progress", "cli.output.inspection_view", "cli.output.json_lines",
        "cli.commands.migrate", "inspection", "migration", "batching.work", "report.text",
        "passes.steps", "passes.simplify", "passes.onnxsim_child",
        "verify.equivalence.check", "verify.load_check", "verify.dynamic.proof", "verify.other_runtimes.proof",
    )),
)  # fmt: skip


SUFFIXES = tuple(importlib.machinery.all_suffixes())


def _warm() -> None:
    for name in MODULES:
        with contextlib.suppress(Exception):  # a process that needs it raises it again
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        importlib.import_module("onnx_migrate.engine.pass_registry").builtin_passes()
        # The modules alone: what installed packages register is for each process to load.
        import_package = importlib.import_module("onnx_migrate.engine.steps.step_modules").import_package
        for package in ("onnx_migrate.passes.steps", "onnx_migrate.passes.steps.contrib"):
            import_package(package)


def _hides(entries: Iterable[str]) -> bool:
    """Return whether folders hold another module under the name of one that is imported, or one that each start imports."""
    imported = {"sitecustomize", "usercustomize", *(name for name in sys.modules if "." not in name)}
    for folder in entries:
        with contextlib.suppress(OSError), os.scandir(folder) as found:
            for entry in found:
                module = (
                    entry.name.endswith(SUFFIXES) or entry.is_dir()
                )  # a script named onnxsim hides nothing
                if module and entry.name.split(".")[0] in imported:
                    return True
    return False


def _take(request: dict[str, Any], streams: list[int]) -> None:
    """Give this process what a request says. Raises OSError."""
    os.chdir(request["cwd"])
    if request["new session"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number, inheritable=True)
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, limits in request["limits"].items():
        resource.setrlimit(number, limits)
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    if signal.SIGINT not in request["ignored"]:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _python_path(environment: Mapping[str, str]) -> list[str]:
    return [folder for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder]


def _run(args: list[str]) -> None:
    """Run what the interpreter would run with these arguments."""
    sys.path[:0] = _python_path(os.environ)
    first, *rest = args
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = ["-m", *rest[1:]]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        sys.path.insert(0, os.path.dirname(first))
        runpy.run_path(first, run_name="__main__")


def run_and_end(run: Callable[[], object]) -> NoReturn:
    """Run, and end as the interpreter does, without taking the modules apart."""
    code = 0
    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if not isinstance(end.code, int) and end.code is not None:
            print(end.code, file=sys.stderr)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        code = code or 120
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _keep(connection: socket.socket, state: tuple[Any, ...]) -> None:
    """Fork the process that a request asks for, and tell its id and its end."""
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    request = pickle.loads(connection.recv(int.from_bytes(head, "little"), socket.MSG_WAITALL))
    args = request["args"]
    if args[:2] == ["-c", BOOT]:  # a worker
        added = args[5:]
        args[2] = str(os.getpid())  # its parent, with which it ends
    else:
        added = [request["cwd"] if args[0] in ("-c", "-m") else os.path.dirname(args[0])]
        if os.path.basename(args[0]) == "serve.py":  # a driver, behind which its folders of packages stand
            added += args[2:]
    added += _python_path(request["environment"])
    if _hides(entry for entry in added if entry not in (*sys.path, str(ROOT))):
        connection.sendall(NUMBER.pack(0))
        return
    process = os.fork()
    if not process:
        _begin(connection, request, streams, state)
        run_and_end(lambda: _run(args))
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    _, status = os.waitpid(process, 0)
    with contextlib.suppress(OSError):
        connection.sendall(NUMBER.pack(status))


def _begin(
    connection: socket.socket, request: dict[str, Any], streams: list[int], state: tuple[Any, ...]
) -> None:
    """Become the process that was asked for; only then tell its id, with which it may be killed at once."""
    try:
        _take(request, streams)
    except OSError:
        connection.sendall(NUMBER.pack(0))
        os._exit(1)
    warm_start.WarmPopen.server = warm_start.Server.of(*state)
    warm_start.install()
    connection.sendall(NUMBER.pack(os.getpid()))
    connection.detach()
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)


def main() -> None:
    """Serve until the standard input ends."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    state = pickle.load(sys.stdin.buffer.raw)
    sys.path.remove(os.getcwd())
    _warm()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting = select.poll()
    for file in (0, listening.fileno()):
        waiting.register(file, select.POLLIN | select.POLLHUP)
    while all(file != 0 for file, _ in waiting.poll()):
        connection, _ = listening.accept()
        if not os.fork():
            listening.close()
            try:
                _keep(connection, state)
            finally:
                os._exit(0)
        connection.close()
        _collect()
    _collect()


def _collect() -> None:
    """Wait for processes that have ended, so that their time counts as that of the tests."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    main()
