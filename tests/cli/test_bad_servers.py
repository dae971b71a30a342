"""Servers that send nothing, too little, too slowly, without an end, or to elsewhere: one line, nothing written, in time."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.running import FAST, Raw, leftovers
from tests.support.processes import Start
from tests.support.skips import Elsewhere, import_or_skip

import_or_skip("aiohttp", Elsewhere.INSTALLED)


class Handler(BaseHTTPRequestHandler):
    """Answers by the first part of the path."""

    model = b""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        with contextlib.suppress(OSError):
            getattr(self, kind)()

    def begin(self, length: int | None, code: int = 200, **headers: str) -> None:
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def whole(self) -> None:
        self.begin(len(self.model))
        self.wfile.write(self.model)

    def nothing(self) -> None:
        time.sleep(60)

    def headers_only(self) -> None:
        self.begin(1000)
        time.sleep(60)

    def trickle(self) -> None:
        self.begin(len(self.model))
        for byte in self.model:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(1)

    def endless(self) -> None:
        self.begin(None)
        while True:
            self.wfile.write(bytes(1 << 16))

    def endless_model(self) -> None:
        self.begin(None)
        self.wfile.write(self.model + b"\x3a\xff\xff\xff\xff\xff\xff\x0f")
        while True:
            self.wfile.write(bytes(1 << 16))
            time.sleep(0.3)

    def too_long(self) -> None:
        self.begin(len(self.model) + 100)
        self.wfile.write(self.model)

    def too_short(self) -> None:
        self.begin(len(self.model) - 20)
        self.wfile.write(self.model)

    def circle(self) -> None:
        self.begin(0, 302, Location=self.path)

    def to_file(self) -> None:
        self.begin(0, 302, Location="file:///etc/passwd")

    def error_page(self) -> None:
        page = b"<html><body>" + bytes(b"x" * 9000)
        self.begin(len(page), 200)
        self.wfile.write(page)


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    Handler.model = (folder / "small.onnx").read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


BAD = {
    "nothing": "has not ended",
    "headers_only": "has not ended",
    "trickle": "has not ended",
    "endless": "not an ONNX model",
    "endless_model": "has not ended",
    "too_long": "cannot be read",
    "too_short": "onnx",
    "circle": "cannot be read",
    "to_file": "cannot be read",
    "error_page": "HTML",
    "missing": "cannot be read",
}


@pytest.mark.long
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_server_is_one_line_in_time(kind: str, server: str, raw: Raw, folder: Path) -> None:
    start = time.monotonic()
    done = raw(f"{server}/{kind}/a.onnx", "out.onnx", "--timeout", "2", timeout=60)

    assert done.returncode == 4, done.stderr
    assert done.stderr.count(b"\n") == 1
    assert BAD[kind] in done.stderr.decode()
    assert b"root:" not in done.stderr
    assert time.monotonic() - start < 25
    assert not (folder / "out.onnx").exists()
    assert not leftovers(folder)


def test_a_good_server_is_read(server: str, raw: Raw) -> None:
    done = raw(f"{server}/whole/a.onnx", "out.onnx", *FAST, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stalled_download_can_be_stopped(
    stop: signal.Signals,
    server: str,
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    start: Start,
) -> None:
    process = start(
        [*command, f"{server}/headers_only/a.onnx", "out.onnx"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(3)
    sent = time.monotonic()
    process.send_signal(stop)
    _, words = process.communicate(timeout=30)

    assert time.monotonic() - sent < 15
    assert process.returncode in (130, 143, -2, -15), words
    assert b"Traceback" not in words
    assert not (folder / "out.onnx").exists()
    assert not leftovers(folder)
