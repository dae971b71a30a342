"""Programs that use the library in circumstances which the command line never meets; each prints one line.

The line is `ok` where the call did what it does elsewhere, else the code of the MigrateError. `expected` lists the lines that are
right. No program may leave a process or a temporary folder behind.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HOSTS", "Host"]

_HEAD = """
import os, signal, sys, threading, time
import onnx, onnx.parser
import onnx_migrate
from onnx_migrate import MigrateError
TEXT = '<ir_version: 7, opset_import: ["": 11]> g (float[2,3] x) => (float[2,3] y) { y = Softmax (x) }'
MODEL = onnx.parser.parse_model(TEXT)

def call(**options):
    try:
        report = onnx_migrate.migrate(MODEL, opset=17, **options).report
        return "ok" if report.verified else f"unverified: {report.verification.reason}"
    except MigrateError as error:
        return f"{error.code}: {error}"

def convert():
    try:
        onnx_migrate.convert_version(MODEL, 17)
        return "ok"
    except MigrateError as error:
        return f"{error.code}: {error}"

def both():
    found = {call(), convert()}
    return "ok" if found == {"ok"} else "; ".join(sorted(found))
"""


@dataclass(frozen=True)
class Host:
    """A program: its own code behind the common one, the lines that it may print, and what must be true before it starts."""

    name: str
    code: str
    expected: tuple[str, ...] = ("ok",)
    variables: tuple[tuple[str, str], ...] = ()
    flags: tuple[str, ...] = ()
    oldest: tuple[int, int] = (3, 10)

    @property
    def script(self) -> str:
        """The whole program."""
        return _HEAD + self.code


HOSTS = (
    Host("plain", "print(both())"),
    Host("no_executable", "sys.executable = None\nprint(both())"),
    Host("empty_executable", "sys.executable = ''\nprint(both())"),
    Host("foreign_executable", "sys.executable = '/bin/true'\nprint(both())"),
    Host("frozen", "sys.frozen = True\nprint(both())"),
    Host("frozen_without_executable", "sys.frozen, sys.executable = True, None\nprint(both())"),
    Host(
        "deleted_folder",
        "import tempfile\nfolder = tempfile.mkdtemp()\nos.chdir(folder)\nos.rmdir(folder)\nprint(both())",
    ),
    Host("optimized", "print(both())", flags=("-OO",)),
    Host("optimized_by_variable", "print(both())", variables=(("PYTHONOPTIMIZE", "2"),)),
    Host(
        "non_main_thread",
        "out = []\nt = threading.Thread(target=lambda: out.append(both()))\nt.start(); t.join()\nprint(*out)",
    ),
    Host("atexit", "import atexit\natexit.register(lambda: print(both()))\ncall()"),
    Host("atexit_first_call", "import atexit\natexit.register(lambda: print(both()))"),
    Host(
        "pool",
        "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    found = set(pool.starmap(both, [()] * 4))\nprint(*found)",
    ),
    Host(
        "pool_after_a_call",
        "import multiprocessing\nboth()\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    found = set(pool.starmap(both, [()] * 4))\nprint(*found)",
    ),
    Host(
        "process",
        "import multiprocessing\ncontext = multiprocessing.get_context('fork')\nqueue = context.Queue()\n"
        "process = context.Process(target=lambda: queue.put(both()))\nprocess.start()\nprint(queue.get())\nprocess.join()",
    ),
    Host(
        "executor",
        "from concurrent.futures import ProcessPoolExecutor\nimport multiprocessing\n"
        "with ProcessPoolExecutor(2, multiprocessing.get_context('fork')) as pool:\n"
        "    print(*{future.result() for future in [pool.submit(both) for _ in range(4)]})",
    ),
    Host(
        "no_more_processes",
        "import errno\ndef refuse(*given, **more):\n    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))\n"
        "import subprocess\nos.fork = refuse\nsubprocess._fork_exec = refuse\nprint(both())",
        ("no-process",),
    ),
    Host(
        "no_more_processes_later",
        "import errno, subprocess\ndef refuse(*given, **more):\n    raise BlockingIOError(errno.EAGAIN, 'none')\n"
        "call()\nos.fork = refuse\nsubprocess._fork_exec = refuse\nos.environ['OTHER'] = '1'\n"
        "onnx.defs.register_schema(onnx.defs.OpSchema('Own', 'com.acme', 1, inputs=[]))\nprint(both())",
        ("no-process", "ok"),
    ),
    Host(
        "no_more_threads",
        "real = threading.Thread.start\ndef refuse(self):\n    raise RuntimeError(\"can't start new thread\")\n"
        "threading.Thread.start = refuse\nprint(both())",
    ),
    Host(
        "few_files",
        "import resource\nboth()\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')), hard))\nprint(both())",
        ("no-process", "ok", "cannot-write", "bad-target-file"),
    ),
    Host("closed_streams", "out = os.dup(1)\nfor n in (0, 1, 2): os.close(n)\nos.write(out, both().encode())"),
    Host("closed_stdin", "os.close(0)\nprint(both())"),
    Host(
        "no_streams",
        "out = sys.stdout\nsys.stdin = sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None\n"
        "out.write(both())\nout.flush()",
    ),
    Host("ignored_sigchld", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nprint(both())"),
    Host(
        "reaping_host",
        "def reap(*_):\n    try:\n        while os.waitpid(-1, os.WNOHANG)[0]: pass\n    except ChildProcessError: pass\n"
        "signal.signal(signal.SIGCHLD, reap)\nprint(both())",
    ),
    Host("default_sigpipe", "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nprint(both())"),
    Host("blocked_signals", "signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))\nprint(both())"),
    Host("faulthandler", "import faulthandler\nfaulthandler.enable()\nfaulthandler.dump_traceback_later(60)\nprint(both())"),
    Host("asyncio", "import asyncio\nasync def main():\n    print(both())\nasyncio.run(main())"),
    Host(
        "asyncio_threads",
        "import asyncio\nasync def main():\n    found = await asyncio.gather(*(asyncio.to_thread(both) for _ in range(3)))\n"
        "    print(*set(found))\nasyncio.run(main())",
    ),
    Host(
        "no_temporary_folder",
        "import resource, tempfile\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, -1))\ntempfile.tempdir = None\n"
        "print(call(simplify=False))",
    ),
    Host("read_only_home", "print(both())", variables=(("HOME", "/proc"), ("XDG_CACHE_HOME", "/proc/none"))),
    Host(
        "ends_by_itself",
        "found = both()\nprint(found, flush=True)\nos._exit(0)",
    ),
    Host(
        "killed_idle",
        "found = both()\nprint(found, flush=True)\nos.kill(os.getpid(), signal.SIGTERM)",
    ),
    Host(
        "fork_in_progress",
        "children = []\ndef fork(event):\n    if event.stage == 'verify' and not children:\n        child = os.fork()\n"
        "        if child == 0:\n            signal.alarm(30)\n            os._exit(convert() != 'ok')\n"
        "        children.append(child)\nfound = call(progress=fork)\n"
        "print(found if all(os.waitpid(c, 0)[1] == 0 for c in children) else 'a child failed')",
    ),
    Host(
        "session_and_fork",
        "session = onnx_migrate.Session(jobs=1)\nsession.migrate(MODEL, opset=17)\nthread = threading.Thread(target=lambda: "
        "session.migrate(MODEL, opset=17, progress=lambda e: time.sleep(0.1)))\nthread.start()\n"
        "time.sleep(0.3)\nchild = os.fork()\nif child == 0:\n"
        "    signal.alarm(30)\n    session.migrate(MODEL, opset=17)\n    os._exit(0)\n"
        "print('ok' if os.waitpid(child, 0)[1] == 0 else 'hung')\nthread.join()\nsession.close()",
    ),
    Host(
        "recursion_limit",
        "sys.setrecursionlimit(300)\nprint(both())",
        ("ok", "too-deep", "pass-failed"),
    ),
)  # fmt: skip
"""One program for each kind of host."""
