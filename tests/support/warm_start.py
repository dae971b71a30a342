"""The processes that tests start again and again, the command line and its workers, as forks of one that has imported everything.

A start of Python with onnx, ONNX Runtime and this project takes half a second of processor time, a fork some milliseconds,
and a run of the tests starts thousands. `subprocess.Popen` is replaced; what is not such a start, or asks for what a fork
cannot give, starts as ever (`_serves`), and so do all processes of tests that are marked `cold`: what the start of a process
does by itself, or what it takes. tests/support/warm_server.py is the other side.
"""

from __future__ import annotations

import atexit
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx_migrate.process.child import BOOT
from tests.support.paths import ROOT

__all__ = ["NUMBER", "Server", "WarmPopen", "install", "let_fork", "warm"]

NUMBER = struct.Struct("<i")
"""How the server tells the id of a process, 0 if it has none, and then the status with which it ended."""

_LIMITS = (
    resource.RLIMIT_DATA,
    resource.RLIMIT_AS,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_CPU,
)

_IGNORABLE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_OF_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_", "OPENBLAS_", "MKL_", "MALLOC_", "ORT_")
"""Beginnings of the variables that act at the start of a process; one that differs from the server's needs a new start."""

_TOOL = """#!{python}
import subprocess, sys
sys.path.insert(0, {root!r})
from tests.support import warm_start
warm_start.install()
warm_start.WarmPopen.server = warm_start.Server.of({environment!r}, {address!r})
sys.exit(subprocess.call([sys.executable, {script!r}, *sys.argv[1:]]))
"""

_PROGRAMS = {BOOT}
"""Programs of `python -c` that a fork may run."""

_start = subprocess.Popen

_environment: dict[str, str] = {}
"""The variables before the first test."""

_making = threading.Lock()


class Server:
    """The process that forks; processes that it made ask it too. It ends with the process that started it."""

    def __init__(self) -> None:
        self.environment = _of_interpreter(_environment)
        self.address = f"\0onnx-migrate-tests-{os.getpid()}"
        own = {
            name: value for name, value in _environment.items() if name != "PYTHONPATH"
        }  # a fork takes the request's
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self.address)
            listening.listen(64)
            self._process = _start(
                [sys.executable, "-m", "tests.support.warm_server", str(listening.fileno())],
                cwd=ROOT,
                env={**own, "OPENBLAS_NUM_THREADS": "1"},  # a fork has no other threads
                pass_fds=[listening.fileno()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps((self.environment, self.address)))
        self._process.stdin.flush()
        atexit.register(self._process.communicate)

    @staticmethod
    def of(environment: Mapping[str, str], address: str) -> Server:
        """Return the server as a process that it forked sees it."""
        server = Server.__new__(Server)
        server.environment, server.address = dict(environment), address
        return server

    def fork(self, request: Mapping[str, Any], streams: Sequence[int]) -> tuple[int, socket.socket] | None:
        """Return the id of a new process and the socket that tells its end; None if it must be started otherwise."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.address)
        data = pickle.dumps(request)
        socket.send_fds(connection, [len(data).to_bytes(8, "little")], list(streams))
        connection.sendall(data)
        answer = connection.recv(NUMBER.size, socket.MSG_WAITALL)
        if len(answer) == NUMBER.size and NUMBER.unpack(answer)[0]:
            return NUMBER.unpack(answer)[0], connection
        connection.close()
        return None


class WarmPopen(subprocess.Popen):  # type: ignore[type-arg]
    """A Popen that forks the server where it can; only how the child starts and how its end is told differ."""

    on = True
    """Whether the test that runs wants it."""

    server: Server | None = None

    _end: socket.socket | None = None

    def _execute_child(self, *given: Any) -> None:
        args, executable, preexec_fn, close_fds, pass_fds, cwd, env, _, _, shell = given[:10]
        pipes, (_, gid, gids, uid, umask, new_session, *group) = given[10:16], given[16:]
        plain = close_fds and not (executable or preexec_fn or shell or pass_fds or gid or gids or uid)
        if WarmPopen.on and plain and umask == -1 and group in ([], [-1]) and _serves(args, env):
            request = {
                "args": [os.fspath(arg) for arg in args[1:] if arg != "-I"],
                "cwd": os.getcwd() if cwd is None else os.path.abspath(cwd),
                "environment": dict(os.environ if env is None else env),
                "new session": new_session,
                "limits": _limits(),
                "ignored": [n for n in _IGNORABLE if signal.getsignal(n) is signal.SIG_IGN],
            }
            childs = (pipes[0], pipes[3], pipes[5])
            streams = [own if own != -1 else standard for standard, own in enumerate(childs)]
            forked = _the_server().fork(request, streams)
            if forked is not None:
                self.pid, self._end = forked
                self._child_created = True
                self._close_pipe_fds(*pipes)
                return
        super()._execute_child(*given)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._end is None:
            return super()._try_wait(wait_flags)
        try:
            told = self._end.recv(NUMBER.size, socket.MSG_DONTWAIT if wait_flags else socket.MSG_WAITALL)
        except BlockingIOError:
            return 0, 0
        self._end.close()
        return self.pid, NUMBER.unpack(told)[0] if told else signal.SIGKILL

    def _internal_poll(self, *args: Any, **more: Any) -> int | None:
        if self._end is None:
            return super()._internal_poll(*args, **more)
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def install() -> None:
    """Let all that starts processes use WarmPopen, where the system has what it takes."""
    if sys.platform == "linux":
        _environment.update(os.environ)
        subprocess.Popen = WarmPopen  # type: ignore[misc]


def let_fork(script: Path) -> None:
    """Let a script named onnx-migrate, which other programs start, as make, ask for a fork that runs it; Linux alone."""
    real = script.parent / "real" / script.name
    real.parent.mkdir()
    script.rename(real)
    server = _the_server()
    given = {
        "environment": server.environment,
        "address": server.address,
        "script": str(real),
        "root": str(ROOT),
    }
    script.write_text(_TOOL.format(python=sys.executable, **given), encoding="utf-8")
    script.chmod(0o755)


def warm(program: str) -> str:
    """Let a fork run a program of `python -c`, to which it does not matter what its process has imported already; return it."""
    _PROGRAMS.add(program)
    return program


def _serves(args: Any, environment: Mapping[str, str] | None) -> bool:
    """Return whether a command is the command line or a worker, in circumstances that a fork of the server can have."""
    if not isinstance(args, (list, tuple)) or len(args) < 2 or os.fspath(args[0]) != sys.executable:
        return False
    first, rest = os.fspath(args[1]), [os.fspath(arg) for arg in args[2:]]
    known = (first == "-c" and rest[0] in _PROGRAMS) or (first == "-m" and rest[:1] == ["onnx_migrate"])
    drives = first == "-I" and os.path.basename(rest[1]) == "faulty.py"  # whose runtime the server has
    if not known and not drives and os.path.basename(first) != "onnx-migrate":
        return False
    server = _the_server()
    given = _of_interpreter(os.environ if environment is None else environment)
    if drives:
        given.pop("PYTHONWARNINGS", None)  # which is for what a real runtime warns of
    return given == server.environment


def _of_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in environment.items() if name.startswith(_OF_INTERPRETER)}
    found.pop("PYTHONPATH", None)  # a fork takes that of the request
    return found


def _limits() -> dict[int, tuple[int, int]]:
    return {number: resource.getrlimit(number) for number in _LIMITS}


def _the_server() -> Server:
    with _making:  # campaigns start processes in several threads
        WarmPopen.server = WarmPopen.server or Server()
    return WarmPopen.server
