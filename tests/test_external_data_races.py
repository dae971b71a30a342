"""Somebody swaps files, links and folders of a model all the time: a file outside its folder is never read.

What comes of each run is a result with the model's own weights, or an error and no file; see `Tally.add`.
"""

from __future__ import annotations

import collections
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from onnx_migrate import MigrateError, migrate
from onnx_migrate.files import inline, load
from tests.verify.harness import net

ELEMENTS = 20_000
OWN, CANARY = np.full(ELEMENTS, 2.0, np.float32), np.frombuffer(b"CANARY!!" * (ELEMENTS // 2), np.float32)

HOME, OUTSIDE = "home", "outside"

SWAPS = {
    "file for a link": ("link", "sub/w.bin"),
    "folder for a link": ("link", "sub"),
    "the model's folder for a link": ("link", ""),
    "the model's folder for another": ("other", ""),
    "file for a pipe": ("pipe", "sub/w.bin"),
    "file for a shorter one": ("other", "sub/w.bin"),
    "file cut and filled again": ("cut", "sub/w.bin"),
    "model for a pipe": ("pipe", "m.onnx"),
    "model for a link to a model outside": ("link", "m.onnx"),
}
"""What is put in the place of what."""

SWAPPER = """
import ctypes, os, random, sys, time
kind, place, other, spare = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)

def exchange():
    if libc.renameat2(-100, place.encode(), -100, spare.encode(), 2):  # RENAME_EXCHANGE
        os.rename(place, place + ".old")  # a file system that cannot do both at once
        os.rename(spare, place)
        os.rename(place + ".old", spare)

def cut():
    size = os.path.getsize(place)
    with open(place, "rb") as file:
        data = file.read()
    os.truncate(place, size // 2)
    with open(place, "r+b") as file:
        file.seek(size // 2)
        file.write(data[size // 2:])

if kind == "link":
    os.symlink(other, spare)
elif kind == "pipe":
    os.mkfifo(spare)
elif kind == "other":
    os.rename(other, spare)
print("ready", flush=True)
random.seed(0)
while True:
    cut() if kind == "cut" else exchange()
    time.sleep(random.choice((0, 0, 0.0001, 0.001, 0.01)))
"""
"""Swaps as fast as it can, with breaks in which a run may come to its end."""


def write_model(folder: Path, weight: np.ndarray) -> None:
    """Write m.onnx with a weight in sub/w.bin."""
    (folder / "sub").mkdir(parents=True)
    proto = net(f"(float[{ELEMENTS}] x) => (float[{ELEMENTS}] y) {{ y = Mul(x, w) }}", w=weight)
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="sub/w.bin")
    (folder / "sub" / "w.bin").write_bytes(weight.tobytes())
    proto.producer_name = folder.name
    onnx.save(proto, folder / "m.onnx")


@contextmanager
def swapping(kind: str, place: Path, other: Path) -> Iterator[None]:
    """Let another process put something else in a place, and the old back, as fast as it can."""
    spare = place.parent / "spare"
    command = [sys.executable, "-c", SWAPPER, kind, str(place), str(other), str(spare)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        assert process.poll() is None, "nothing was swapped any more"
    finally:
        process.kill()
        process.communicate()


class Tally:
    """How runs ended, by the code of their errors."""

    def __init__(self, home: Path, out: Path, *, whole: bool) -> None:
        """`whole` if model and data are swapped together: then the other model has its own data."""
        self.home, self.out, self.whole = home, out, whole
        self.ends: collections.Counter[str] = collections.Counter()

    def add(self, *, verify: str) -> None:
        """Migrate the model once, and check what comes of it."""
        target = self.out / "result.onnx"
        report = ""
        try:
            done = migrate(self.home / "m.onnx", opset=21, verify=verify, simplify=False)
            report = str(done.report.as_dict())
            done.save(target)
        except MigrateError as error:
            code, report = error.code, str(error)
        else:
            code = "done"
        self.ends[code] += 1
        assert "CANARY" not in report
        if code != "done":
            assert code in EXPECTED, report
            assert not list(self.out.iterdir()), report
        else:
            result = inline(load(target))
            (tensor,) = result.graph.initializer
            own = CANARY if result.producer_name == OUTSIDE and self.whole else OWN
            assert tensor.raw_data == own.tobytes()
            target.unlink()


EXPECTED = {
    "no-such-file",
    "missing-data",
    "outside-folder",
    "source-changed",
    "cannot-read",
    "not-onnx",
    "truncated",
    "empty",
}
"""What is right to say when files come and go. That numbers differ, for example, is not."""


def race(swap: str, folder: Path, seconds: float, *, verify: str) -> Tally:
    kind, name = SWAPS[swap]
    home, outside, out = folder / HOME, folder / OUTSIDE, folder / "out"
    write_model(home, OWN)
    write_model(outside, CANARY)
    out.mkdir()
    other = outside / name
    if "shorter" in swap:
        other.write_bytes(OWN.tobytes()[:-4000])
    tally = Tally(home, out, whole=not name)
    end = time.monotonic() + seconds
    with swapping(kind, home / name, other):
        while time.monotonic() < end:
            tally.add(verify=verify)
    return tally


@pytest.mark.parametrize("swap", SWAPS)
def test_nothing_outside_is_read_and_exit_codes_are_true(swap: str, tmp_path: Path) -> None:
    assert race(swap, tmp_path, 1.0, verify="off").ends.total()


@pytest.mark.long
@pytest.mark.parametrize("swap", ["file for a link", "file cut and filled again"])
def test_a_verification_in_between_changes_nothing(swap: str, tmp_path: Path) -> None:
    assert race(swap, tmp_path, 2.0, verify="auto").ends.total()


@pytest.mark.campaign
@pytest.mark.parametrize("verify", ["off", "auto"])
@pytest.mark.parametrize("swap", SWAPS)
def test_nothing_outside_is_read_in_a_minute(swap: str, verify: str, tmp_path: Path) -> None:
    ends = race(swap, tmp_path, 60.0, verify=verify).ends
    print(f"{swap}, verify {verify}: {dict(ends)}")
    assert ends["done"] or verify == "auto"  # a verification takes longer than the pauses
