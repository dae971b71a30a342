"""Runs the command line over and over, each time in a process that is forked from this one, which has imported all of it.

So a run takes hundredths of a second in place of half a second. A request is a line of JSON on standard input, the answer the
status of the process (see wait(2)), or null if it took too long. Run as `python -m tests.campaigns.faults.server`.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.campaigns.faults.injector import begin
from tests.support.warm_server import run_and_end

SECONDS = 60.0
"""How long a command may take."""


def _warm_up() -> None:
    """Import what the command imports, and fill the caches of schemas."""
    import onnx

    from onnx_migrate import inspection  # noqa: F401
    from onnx_migrate.batching import batch  # noqa: F401
    from onnx_migrate.cli.app import app
    from onnx_migrate.comparison import compare  # noqa: F401

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        text = '<ir_version: 6, opset_import: ["": 11]> g (float[1,4] x) => (float[1,4] y) { y = Relu (x) }'
        onnx.save(onnx.parser.parse_model(text), Path(folder, "a.onnx"))
        common = ["--no-simplify", "--no-verify", "--config", "none", "--html", f"{folder}/a.html"]
        with contextlib.redirect_stderr(io.StringIO()):
            app.main([f"{folder}/a.onnx", f"{folder}/b.onnx", *common], standalone_mode=False)
            app.main(["inspect", f"{folder}/a.onnx"], standalone_mode=False)


def _serve() -> dict[str, Any]:
    """Answer requests; return, in a forked process, the request that it is to run."""
    waiting = b""
    while True:
        while b"\n" not in waiting:
            got = os.read(0, 65536)
            if not got:
                os._exit(0)
            waiting += got
        line, _, waiting = waiting.partition(b"\n")
        request: dict[str, Any] = json.loads(line)
        child = os.fork()
        if not child:
            return request
        os.write(1, (json.dumps(_wait(child)) + "\n").encode())


def _wait(child: int) -> int | None:
    end = time.monotonic() + SECONDS
    pause = 0.0005
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main() -> None:
    """Serve; in a forked process, become the command."""
    _warm_up()
    gc.collect()
    gc.freeze()
    os.write(1, b"ready\n")
    request = _serve()
    for descriptor, (name, flags) in enumerate(
        zip(
            request["streams"], (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True
        )
    ):
        if name is not None:
            fd = os.open(name, flags, 0o666)
            os.dup2(fd, descriptor)
            os.close(fd)
    os.chdir(request["folder"])
    os.environ["TMPDIR"] = tempfile.tempdir = request["tmp"]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    from onnx_migrate.cli.app import run

    begin(os.environ["FAULT_PLAN"])
    run_and_end(lambda: run(request["arguments"]))


if __name__ == "__main__":
    main()
