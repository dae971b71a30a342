"""Bad input: one line with a code, the right exit code, and nothing written."""

from __future__ import annotations

import gzip
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_migrate.report.codes import CODES
from tests.cli.running import FAST, Run, large, leftovers, snapshot
from tests.support.paths import ROOT


def write(content: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Return what writes bad.onnx from the bytes of a good model."""
    return lambda folder: (
        (folder / "bad.onnx").write_bytes(content((folder / "small.onnx").read_bytes())) and None
    )


def edit(change: Callable[[onnx.ModelProto], object]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        proto = onnx.load(folder / "small.onnx")
        change(proto)
        onnx.save(proto, folder / "bad.onnx")

    return make


def refer(location: str) -> Callable[[onnx.ModelProto], object]:
    """Move a weight of a model to external data that is at `location`, or not."""

    def change(proto: onnx.ModelProto) -> None:
        tensor = proto.graph.initializer[0]
        tensor.ClearField("float_data")
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)

    return change


def own_passes(folder: Path) -> None:
    (folder / "own.py").write_text(SPOIL, encoding="utf-8")


def large_beside_data(folder: Path) -> None:
    onnx.save(large(), folder / "bad.onnx")
    (folder / "out.onnx.data").write_bytes(b"of someone else")


def cycle(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].input[0] = "y"


def nothing(folder: Path) -> None:
    pass


SPOIL = """
import numpy as np, onnx
from onnx import numpy_helper

def spoil(model: onnx.ModelProto):
    tensor = model.graph.initializer[0]
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name))

def rename(model: onnx.ModelProto):
    model.graph.output[0].name = model.graph.node[-1].output[0] = "z"

def fail(model: onnx.ModelProto):
    raise RuntimeError("on\\npurpose")

def break_it(model: onnx.ModelProto):
    model.graph.node[0].op_type = "NeverWas"
"""


@dataclass(frozen=True)
class Case:
    """A command that fails, and how."""

    exit: int
    code: str
    make: Callable[[Path], object] = nothing
    args: tuple[str, ...] = ("bad.onnx", "out.onnx", *FAST)
    contains: str = ""


SMALL = ("small.onnx", "out.onnx", *FAST)
FROZEN = str(ROOT / "fixtures" / "frozen_transformer_opset14.onnx")

CASES = {
    "missing": Case(4, "no-such-file"),
    "empty": Case(4, "empty", write(lambda good: b"")),
    "truncated": Case(4, "truncated", write(lambda good: good[:-20])),
    "html": Case(
        4,
        "not-onnx",
        write(lambda good: b"<!DOCTYPE html>\n<html><body>Not Found</body></html>"),
        contains="HTML",
    ),
    "lfs": Case(
        4,
        "not-onnx",
        write(lambda good: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        contains="git lfs pull",
    ),
    "gzip": Case(4, "not-onnx", write(gzip.compress), contains="gunzip"),
    "noise": Case(4, "not-onnx", write(lambda good: np.random.default_rng(0).bytes(1000))),
    "directory": Case(4, "is-directory", lambda folder: (folder / "bad.onnx").mkdir()),
    "data missing": Case(4, "missing-data", edit(refer("weights.bin")), contains="weights.bin"),
    "data outside": Case(4, "outside-folder", edit(refer("../../../etc/hostname"))),
    "opset 0": Case(2, "no-such-opset", args=(*SMALL, "--opset", "0")),
    "opset -1": Case(2, "no-such-opset", args=(*SMALL, "--opset", "-1")),
    "opset 999": Case(2, "no-such-opset", args=(*SMALL, "--opset", "999")),
    "downgrade": Case(1, "downgrade", args=(*SMALL, "--opset", "9", "--no-lower")),
    "too new": Case(
        1, "too-new", edit(lambda proto: setattr(proto.opset_import[0], "version", 999)), contains="999"
    ),
    "unknown operator": Case(
        1,
        "unknown-operator",
        edit(lambda proto: setattr(proto.graph.node[0], "op_type", "NeverWas")),
        contains="NeverWas",
    ),
    "cycle": Case(4, "cycle", edit(cycle)),
    "not ssa": Case(4, "not-ssa", edit(lambda proto: proto.graph.node.append(proto.graph.node[0]))),
    "folder missing": Case(
        1, "no-such-folder", args=("small.onnx", "no/such/out.onnx", *FAST), contains="no/such"
    ),
    "target is a folder": Case(1, "is-directory", lambda folder: (folder / "out.onnx").mkdir(), args=SMALL),
    "the model itself": Case(1, "in-place", args=("small.onnx", "small.onnx", *FAST), contains="--in-place"),
    "the model by another way": Case(1, "in-place", args=("small.onnx", "./../work/small.onnx", *FAST)),
    "data of others": Case(
        1,
        "would-overwrite",
        large_beside_data,
        ("bad.onnx", "out.onnx", "--save-as-external-data", *FAST),
        "out.onnx.data",
    ),
    "no such input": Case(
        2, "no-such-input", args=(*SMALL, "--dynamic", "image:N,3,H,W"), contains="'image'"
    ),
    "no such axis": Case(2, "no-such-axis", args=(*SMALL, "--dynamic", "x:N,3,H")),
    "other size": Case(2, "other-size", args=(*SMALL, "--dynamic", "x:N,4,H,W")),
    "two names": Case(2, "two-names", args=(*SMALL, "--dynamic", "x:N,3,H,W", "--dynamic", "x:B,3,H,W")),
    "dims in nonsense": Case(2, "usage", args=(*SMALL, "--dynamic", "x")),
    "no such pass": Case(2, "no-such-pass", args=(*SMALL, "--pass", "nowhere:nothing")),
    "no such pass to leave out": Case(2, "no-such-pass", args=(*SMALL, "--skip-pass", "polish")),
    "input data missing": Case(
        2,
        "input-data",
        args=("small.onnx", "out.onnx", "--no-simplify", "--input-data", "no.npz"),
        contains="no.npz",
    ),
    "a pass that fails": Case(1, "pass-failed", own_passes, (*SMALL, "--pass", "own:fail"), "on purpose"),
    "a pass that renames": Case(1, "interface-changed", own_passes, (*SMALL, "--pass", "own:rename")),
    "a pass that breaks": Case(1, "illegal-result", own_passes, (*SMALL, "--pass", "own:break_it")),
    "a pass that spoils a weight": Case(
        3, "numbers-differ", own_passes, ("small.onnx", "out.onnx", "--pass", "own:spoil")
    ),
    "a frozen dim": Case(
        1,
        "frozen-dim",
        args=(FROZEN, "out.onnx", "--no-simplify", "--dynamic", "input_ids:N,T"),
        contains="onnx::Add_111",
    ),
}
if sys.platform == "linux":
    CASES["unwritable"] = Case(
        1, "cannot-write", args=("small.onnx", "/proc/out.onnx", *FAST), contains="/proc/out.onnx"
    )
    CASES["a device"] = Case(4, "cannot-read", args=("/dev/null", "out.onnx", *FAST))


@pytest.mark.parametrize("name", CASES)
def test_one_line_and_nothing_written(
    cli: Run, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    case.make(folder)
    before = snapshot(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sys.modules.pop("own", None)

    ended = cli(*case.args)

    assert ended.out == ""
    line = re.fullmatch(r"onnx-migrate: (\S+): (.+)\n", ended.err)
    assert line, ended.err
    assert (line[1], ended.code) == (case.code, case.exit), ended.err
    assert line[1] in CODES
    assert line[2].startswith(case.args[0])
    assert line[2].count(case.args[0]) == 1 or case.args[0] in case.args[1]
    assert case.contains in line[2]
    assert snapshot(folder) == before
    assert not leftovers(folder)


def test_with_in_place_the_model_stays_when_its_migration_fails(cli: Run, folder: Path) -> None:
    CASES["unknown operator"].make(folder)
    before = snapshot(folder)

    assert cli("bad.onnx", "--in-place").code == 1
    assert snapshot(folder) == before


@pytest.mark.long
@pytest.mark.parametrize("name", ["html", "a pass that spoils a weight"])
def test_errors_of_the_process_are_the_same(process: Run, folder: Path, name: str) -> None:
    case = CASES[name]
    case.make(folder)
    before = snapshot(folder)

    ended = process(*case.args, PYTHONDONTWRITEBYTECODE="1")

    assert (ended.code, ended.out, ended.err.count("\n")) == (case.exit, "", 1)
    assert ended.err.startswith(f"onnx-migrate: {case.code}: {case.args[0]}")
    assert snapshot(folder) == before


def test_require_makes_a_failing_simplifier_an_error(process: Run, folder: Path) -> None:
    before = snapshot(folder)

    ended = process("small.onnx", "out.onnx", "--simplify=require", "--timeout", "0.01")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(
        "onnx-migrate: not-simplified: small.onnx: onnxsim failed: timed out after 0.01 s"
    )
    assert snapshot(folder) == before


@pytest.mark.parametrize("target", ["no/such/out.onnx", "small.onnx", "."])
def test_a_target_that_cannot_be_written_fails_before_the_work(
    cli: Run, folder: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*given: object, **options: object) -> None:
        raise AssertionError("began to work")

    monkeypatch.setattr("onnx_migrate.migration.migrate", never)
    assert cli("small.onnx", target, *FAST).code == 1


@pytest.mark.parametrize(
    "args",
    [
        ["small.onnx", "out.onnx", *FAST],
        ["batch", "small.onnx", "--out-dir", "out", "--jobs", "1", *FAST],
        ["inspect", "small.onnx"],
    ],
    ids=" ".join,
)
def test_readability_is_decided_by_reading_not_by_access(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """Else one that cannot would be wrong usage, and end a batch, or a look at many, before it began."""
    monkeypatch.setattr("os.access", lambda path, mode, **_: mode != os.R_OK)

    assert cli(*args).code == 0
