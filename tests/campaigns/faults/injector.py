"""The fault injector: a shared library between the command and libc, which fails the n-th call of a kind (shim.c)."""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ERRORS", "KINDS", "SIGNALS", "Fault", "Plan", "begin", "build", "why_unavailable"]

KINDS = (
    "write", "fsync", "rename", "close", "link", "unlink", "mmap", "create", "open", "truncate", "mkdir", "flock", "mode",
    "read", "stat", "list",
)  # fmt: skip
"""Kinds of system calls, in the order of shim.c. "write" is also copy_file_range(2) and sendfile(2); "create" is an open(2)
that makes a file, "mode" a chmod(2) or utimensat(2), "list" an opendir(3)."""

ERRORS = {
    "write": ("ENOSPC", "EIO", "EDQUOT", "EINTR"), "fsync": ("EIO", "ENOSPC", "EDQUOT"),
    "rename": ("EIO", "ENOSPC", "EACCES", "EPERM"),
    "close": ("EIO", "EINTR", "ENOSPC"), "link": ("EIO", "EPERM", "ENOSPC", "EDQUOT"), "unlink": ("EIO", "EACCES", "EROFS"),
    "mmap": ("ENOMEM", "EACCES"), "create": ("ENOSPC", "EACCES", "EROFS", "EMFILE"), "open": ("EACCES", "EMFILE", "EIO"),
    "truncate": ("ENOSPC", "EIO"), "mkdir": ("ENOSPC", "EACCES"), "flock": ("ENOLCK", "EINTR"), "mode": ("EPERM", "EIO"),
    "read": ("EIO", "EINTR"), "stat": ("EIO", "EACCES"), "list": ("EIO", "EACCES"),
}  # fmt: skip
"""Errors that a kind of call may end with."""

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")

_FAIL, _SHORTEN, _SIGNAL, _SIGNAL_ALL, _FAIL_AFTER = range(5)


@dataclass(frozen=True)
class Fault:
    """What happens at the `when`-th call of `kind` (from 1), or with `persistent` from that call on.

    `what` is the name of an error; that of a signal, sent to the process that makes the call; "short" for a call that moves
    half of its bytes; "all SIGKILL" for the command and the process that makes the call; or "done EIO" for a call that is made
    and then reports an error, as a network file system may.
    """

    kind: str
    when: int
    what: str
    persistent: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.when}{'+' if self.persistent else ''} {self.what}"

    @property
    def kills(self) -> bool:
        """Whether a process ends without a chance to tidy up."""
        return self.what.endswith("SIGKILL")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Return the fault that `str` gives as `text`."""
        kind, when, what = text.split(" ", 2)
        return cls(kind, int(when.rstrip("+")), what, when.endswith("+"))


class _Layout(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("armed", "kinds", "action", "number")),
        *((name, ctypes.c_int) for name in ("persistent", "standard_output", "leader", "hits")),
        *((name, ctypes.c_long) for name in ("when", "counted", "seen")),
        ("root", ctypes.c_char * 512),
        ("hit", ctypes.c_char * 256),
        ("log", ctypes.c_ubyte * 4096),
    )  # fmt: skip


class Plan:
    """The fault that the next command gets, in memory that its processes share."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        path.write_bytes(bytes(ctypes.sizeof(_Layout)))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._layout = _Layout.from_buffer(self._memory)
        self._layout.root = os.fsencode(root)

    def set(self, fault: Fault | None, *, standard_output: bool = False) -> None:
        """Let the next command, once it calls `begin`, get a fault; without one, its calls are counted."""
        plan = self._layout
        plan.armed = 0
        plan.counted = plan.seen = plan.hits = plan.leader = 0
        plan.hit = b""
        plan.standard_output = standard_output
        plan.kinds, plan.when, plan.persistent = 0, 0, 0
        if fault is not None:
            plan.kinds = 1 << KINDS.index(fault.kind)
            plan.when, plan.persistent = fault.when, fault.persistent
            word = fault.what.split()[-1]
            if fault.what == "short":
                plan.action = _SHORTEN
            elif word.startswith("SIG"):
                plan.action = _SIGNAL_ALL if fault.what.startswith("all ") else _SIGNAL
                plan.number = signal.Signals[word]
            else:
                plan.action = _FAIL_AFTER if fault.what.startswith("done ") else _FAIL
                plan.number = getattr(errno, word)

    def disarm(self) -> None:
        self._layout.armed = 0

    @property
    def hits(self) -> int:
        """How many calls got the fault."""
        return int(self._layout.hits)

    @property
    def hit(self) -> str:
        """What the first of them was about: a path, or the call's name."""
        return bytes(self._layout.hit).decode("utf-8", "replace")

    @property
    def calls(self) -> list[str]:
        """The kinds of the calls that counted, in their order."""
        return [KINDS[number] for number in self._layout.log[: min(self._layout.seen, 4096)]]

    def close(self) -> None:
        del self._layout
        self._memory.close()
        self.path.unlink()


def begin(path: str) -> None:
    """Let this process be the command that the plan at `path` is for: its calls count from here on."""
    with open(path, "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), os.getpid().to_bytes(4, sys.byteorder), _Layout.leader.offset)
        os.pwrite(file.fileno(), (1).to_bytes(4, sys.byteorder), _Layout.armed.offset)


def why_unavailable() -> str:
    """Return why faults cannot be injected here, "" if they can."""
    if sys.platform != "linux":
        return "faults are injected by LD_PRELOAD on Linux"
    if not _compiler():
        return "faults are injected by a library that a C compiler makes, and there is none"
    try:
        library = build()
    except subprocess.CalledProcessError as error:
        return f"the library that injects faults does not compile: {error.stderr.strip().splitlines()[:1]}"
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(Path(folder, "plan"), Path(folder))
        plan.set(Fault("stat", 1, "EIO"))
        begin(str(plan.path))
        code = f"import os; os.stat({folder!r})"
        environment = {**os.environ, "LD_PRELOAD": str(library), "FAULT_PLAN": str(plan.path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
        hits = plan.hits
        plan.close()
    return "" if done.returncode and hits else "LD_PRELOAD has no effect on this Python"


def _compiler() -> str | None:
    configured = (sysconfig.get_config_var("CC") or "").split()[:1]
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang", *configured))), None)


@functools.cache
def build() -> Path:
    """Compile shim.c and return the library, in a temporary folder that is removed at exit."""
    folder = tempfile.TemporaryDirectory(prefix="faults-")
    library = Path(folder.name, "faults.so")
    _kept.append(folder)
    source = Path(__file__).with_name("shim.c")
    compiler = _compiler()
    assert compiler is not None
    command = [compiler, "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return library


_kept: list[tempfile.TemporaryDirectory[str]] = []
