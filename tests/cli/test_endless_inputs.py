"""Files that a command is given and that block or have no end: each is refused at once, and what a shell pipes in is read."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.running import FAST, Raw, opset_of, snapshot
from tests.support.skips import Elsewhere, skip_if

AT_ONCE = 60
"""Seconds; most of them are those of a busy machine."""

REFUSED = {
    "a named pipe as the model": (("pipe", "out.onnx"), 4, "it is a pipe"),
    "a device as the model": (("/dev/zero", "out.onnx"), 4, "it is a device"),
    "a folder as the model": (("..", "out.onnx"), 4, "is a directory"),
    "a named pipe as inputs": (("small.onnx", "out.onnx", "--input-data", "pipe"), 2, "it is a pipe"),
    "a folder of pipes as inputs": (("small.onnx", "out.onnx", "--input-data", "pipes"), 2, "it is a pipe"),
    "a named pipe as the config": (("small.onnx", "out.onnx", "--config", "pipe"), 2, "it is a pipe"),
    "a sparse file as the config": (("small.onnx", "out.onnx", "--config", "sparse"), 2, "larger than 1,048,576 bytes"),
    "a named pipe as the target": (("small.onnx", "out.onnx", "--for", "./pipe.toml"), 2, "it is a pipe"),
    "a sparse file of 10 TB": (("sparse", "out.onnx"), 4, "is not an ONNX model"),
    "a pipe to inspect": (("inspect", "pipe"), 4, "it is a pipe"),
    "a pipe to verify": (("verify", "small.onnx", "pipe"), 4, "it is a pipe"),
}  # fmt: skip


@pytest.fixture
def traps(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.toml")
    (folder / "pipes").mkdir()
    os.mkfifo(folder / "pipes" / "input_0.pb")
    for name in ("sparse", "sparse.toml"):
        (folder / name).touch()
        os.truncate(folder / name, 10**13)
    return folder


@pytest.mark.parametrize("case", REFUSED)
def test_what_blocks_or_has_no_end_is_refused_at_once(case: str, raw: Raw, traps: Path) -> None:
    arguments, code, words = REFUSED[case]
    before = sorted(traps.iterdir())
    done = raw(*arguments, timeout=AT_ONCE, stdin=subprocess.DEVNULL)

    assert done.returncode == code, done.stderr
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert sorted(traps.iterdir()) == before


def test_a_batch_is_not_held_up_by_a_pipe(raw: Raw, folder: Path) -> None:
    os.mkfifo(folder / "pipe.onnx")
    done = raw("batch", ".", "--out-dir", "out", *FAST, timeout=60)

    assert done.returncode == 1
    assert b"it is a pipe" in done.stdout + done.stderr
    assert (folder / "out" / "small.onnx").exists()


@skip_if(not os.path.isdir("/dev/fd"), "the system has no paths of descriptors", Elsewhere.LINUX)
@pytest.mark.parametrize("where", ["/dev/fd/{}", "/dev/stdin"])
def test_a_model_from_a_process_substitution_is_that_model(where: str, raw: Raw, folder: Path) -> None:
    data = (folder / "small.onnx").read_bytes()
    reader, writer = os.pipe()
    thread = threading.Thread(target=lambda: (os.write(writer, data), os.close(writer)))
    thread.start()
    stdin = reader if "stdin" in where else subprocess.DEVNULL
    done = raw(where.format(reader), "out.onnx", *FAST, timeout=60, pass_fds=[reader], stdin=stdin)
    thread.join()
    os.close(reader)
    assert done.returncode == 0, done.stderr
    assert opset_of(folder / "out.onnx") == 17


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/urandom"])
def test_standard_input_without_an_end_does_not_fill_the_memory(source: str, raw: Raw, folder: Path) -> None:
    before = snapshot(folder)
    with open(source, "rb") as endless:
        done = raw("-", "out.onnx", stdin=endless, timeout=AT_ONCE)

    assert done.returncode == 4
    assert b"<stdin> is not" in done.stderr or b"too much for the memory" in done.stderr
    assert snapshot(folder) == before
