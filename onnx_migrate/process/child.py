"""The child process's side: receives calls from its parent, one after the other, and returns how they ended.

The parent writes requests to the child's stdin. The child writes messages to its original stdout. Both are pickles. If a called
function prints something, on either stream, it goes to the log that the parent made stderr. The child never outlives its
parent.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import queue
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from onnx_migrate.errors import MigrateError
from onnx_migrate.process.channel import LENGTH
from onnx_migrate.process.endings import Ending, OutOfMemory, Raised, Returned, names_lack_of_memory
from onnx_migrate.process.limits import data_size, limit_memory, memory_limit
from onnx_migrate.process.temporary import TEMPORARY

__all__ = [
    "BOOT",
    "ENDED",
    "LEFT",
    "READY",
    "SAID",
    "STAGE",
    "Function",
    "Listener",
    "call",
    "captured_output",
    "die_with",
    "framed",
    "heard_by",
    "mark",
    "pack",
    "say",
    "serve",
]

BOOT = "import sys; sys.path[:] = sys.argv[4:]; from onnx_migrate.process.child import serve; serve(*sys.argv[1:4])"
"""The program of a child's interpreter.

Its arguments are the parent's process id, the memory limit, modules to import, and sys.path. The child does not import the
parent's `__main__`, so scripts need no guard.
"""

READY, STAGE, SAID, LEFT, ENDED = "ready", "stage", "said", "left", "ended"
"""The kinds of messages to the parent: a pair of one of these, and nothing, the stage's name, a text, bytes or the `Ending`."""

Function = str | Callable[..., Any]
"""A function that pickles, or "package.module:name"."""

Listener = Callable[[str], None]
"""A function that receives the texts that a called function says."""

_LONGEST_CAUSE = 300
"""How many characters of a library's message about a lack of memory the parent gets."""

_current = threading.local()


def mark(stage: str) -> None:
    """Record the next action of a called function, for messages in case the process ends there; costs a small write."""
    _current.stage = stage
    send: Callable[[str, object], None] | None = getattr(_current, "send", None)
    if send is not None:
        send(STAGE, stage)


def say(text: str) -> None:
    """Pass a text about a called function's progress to the listener of the call, if there is one."""
    listen: Listener | None = getattr(_current, "listen", None)
    if listen is not None:
        listen(text)


@contextlib.contextmanager
def heard_by(listen: Listener | None) -> Iterator[None]:
    """Pass this thread's texts to a listener, outside of calls; each call has a listener of its own."""
    before: Listener | None = getattr(_current, "listen", None)
    _current.listen = listen
    try:
        yield
    finally:
        _current.listen = before


def _forget_parent() -> None:
    """Stop sending to the parent, in a fork of a child: the parent would mistake the messages for the child's."""
    global _current
    _current = threading.local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)


@contextlib.contextmanager
def captured_output() -> Iterator[Callable[[], str]]:
    """Collect the output of native code to stderr within the block; the value is a function that returns it.

    Works on the file descriptor, so it takes the stderr of the whole process: use it in child processes.
    """
    # Text in Python's buffer belongs to the time before the block.
    if sys.stderr is not None:
        sys.stderr.flush()
    saved_stderr = os.dup(2)
    with tempfile.TemporaryFile() as file:
        # Native code writes to the descriptor, and not to Python's stream.
        os.dup2(file.fileno(), 2)

        def text() -> str:
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")

        try:
            yield text
        finally:
            os.dup2(saved_stderr, 2)
            os.close(saved_stderr)


def call(function: Function, args: tuple[Any, ...], listen: Listener | None = None) -> Ending:
    """Call a function in this process and return how it ended; `listen` gets the texts that it says meanwhile."""
    _current.stage = ""
    try:
        if isinstance(function, str):
            module, _, name = function.partition(":")
            function = getattr(importlib.import_module(module), name)
            assert callable(function)
        with heard_by(listen):
            return Returned(function(*args))
    except MemoryError as error:
        return OutOfMemory(None, stage=_current.stage, cause=_one_line(error))
    except Exception as error:
        return _raised(error)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_LONGEST_CAUSE]


def _raised(error: Exception) -> Ending:
    if names_lack_of_memory(str(error)):
        return OutOfMemory(None, log=str(error), stage=_current.stage, cause=_one_line(error))
    own = error if isinstance(error, MigrateError) else None
    return Raised(type(error).__name__, str(error), traceback.format_exc(), _current.stage, own)


def pack(request: tuple[Function, tuple[Any, ...], int | None, str]) -> bytes:
    """Return a call, its memory limit and its temporary folder as the bytes that `serve` reads. Raises the errors of pickle."""
    return framed(request)


def framed(value: object) -> bytes:
    """Return a value that pickles as the bytes of a message. Raises the errors of pickle."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def serve(parent: str, memory: str, modules: str) -> None:
    """Take calls until the parent ends this process; `memory` is its limit in bytes, "" for none.

    `modules`, separated by commas, are imported first, so that the call that needs them need not wait.
    """
    die_with(int(parent))
    requests = os.fdopen(os.dup(0), "rb")
    # The pipe gets a number of its own, because native code may print to descriptor 1.
    messages = os.fdopen(os.dup(1), "wb")
    # Code of the call must not read the requests.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    inherited = memory_limit()
    if memory:
        limit_memory(int(memory))
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, waiting), daemon=True).start()

    def send(kind: str, value: object) -> None:
        messages.write(framed((kind, value)))
        messages.flush()

    _current.send = send
    send(READY, None)
    # Imports take time that the first call would have to wait for.
    for module in filter(None, modules.split(",")):
        with contextlib.suppress(Exception):  # the call that needs it raises it again
            importlib.import_module(module)
    fresh = data_size()
    while True:
        data = waiting.get()
        _current.stage = ""
        leftover_bytes = max(0, data_size() - fresh)
        try:
            function, args, most, folder = pickle.loads(data)  # from the parent, which only this user can be
            use_folder(folder)
            limit_memory(
                inherited if most is None else most + leftover_bytes
            )  # memory that earlier calls left does not count for this call
            ending = call(function, args, lambda text: send(SAID, text))
        except Exception as error:
            ending = _raised(error)
        sys.stdout.flush()
        sys.stderr.flush()
        send(LEFT, data_size() - fresh)
        try:
            # The result may need more memory than remains, so its failure is a message of its own.
            send(ENDED, ending)
        except MemoryError:
            send(ENDED, OutOfMemory(None, stage=_current.stage))
        except Exception as error:  # the value does not pickle
            send(ENDED, _raised(error))


def _receive(requests: BinaryIO, waiting: queue.SimpleQueue[bytes]) -> None:
    """Pass requests on; the stream ends when the parent ends, also on systems without PR_SET_PDEATHSIG."""
    while True:
        head = requests.read(LENGTH.size)
        if len(head) < LENGTH.size:
            os._exit(1)
        waiting.put(requests.read(LENGTH.unpack(head)[0]))


def use_folder(folder: str) -> None:
    """Let this process, and the processes it starts, put temporary files into a folder; "" changes nothing."""
    if folder:
        os.environ.update(dict.fromkeys(TEMPORARY, folder))
        tempfile.tempdir = folder


def die_with(parent: int) -> None:
    """Let Linux kill this process when the thread that started it ends, even while native code holds the GIL."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
