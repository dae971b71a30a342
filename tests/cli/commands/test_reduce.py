"""`onnx-migrate reduce`: what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Run
from tests.harness import model

NET = """17 (float[2,4] x) => (float[2,4] y) <float[4] w = {1.,2.,3.,4.}> {
  a = Relu (x) b = Mul (a, w) c = Tanh (b) y = Add (c, x)
}"""
TANH = "if grep -q Tanh {}; then echo 'Error: Tanh is not supported'; exit 3; fi"


@pytest.mark.parametrize("options", [(), ("--json",), ("-q",)], ids=str)
def test_the_command(cli: Run, folder: Path, options: tuple[str, ...]) -> None:
    onnx.save(model(NET), folder / "net.onnx")
    ended = cli("reduce", "net.onnx", "--check", TANH, *options)

    assert ended.code == 0
    small = onnx.load(folder / "net.reduced.onnx")
    assert [node.op_type for node in small.graph.node] == ["Tanh"]
    command = TANH.replace("{}", "net.reduced.onnx")
    if "--json" in options:
        report = json.loads(ended.out)
        assert (report["nodes_before"], report["nodes"], report["command"]) == (4, 1, command)
        assert report["written"] == ["net.reduced.onnx"]
        assert report["failure"] == {
            "kind": "exit", "detail": "3", "text": "Error: Tanh is not supported\n", "error": 0.0,
        }  # fmt: skip
    elif "-q" in options:
        assert not ended.out
    else:
        assert ended.out.startswith("1 node of 4 nodes shows the failure: exit code 3\n")
        assert ended.out.endswith(f"  written   net.reduced.onnx\n  reproduce {command}\n")


def test_a_pair_is_written_with_its_inputs(cli: Run, folder: Path) -> None:
    onnx.save(model(NET), folder / "one.onnx")
    onnx.save(model(NET.replace("Tanh", "Sigmoid")), folder / "two.onnx")
    ended = cli("reduce", "one.onnx", "small.onnx", "--against", "two.onnx")

    assert ended.code == 0
    assert sorted(path.name for path in folder.glob("small*")) == [
        "small.npz",
        "small.onnx",
        "small.other.onnx",
    ]
    assert cli("verify", "small.onnx", "small.other.onnx", "--input-data", "small.npz").code == 3


INPUTS = "grep -q Tanh {} && test -e {inputs} && exit 3; exit 0"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--check", INPUTS, "--input-data", "small.npz"), "small.npz is given twice"),
        (("--check", INPUTS, "--input-data", "x=./small.npz"), "small.npz is given twice"),
        (("--message", "Tanh", "--input-data", "data"), "small.npz and data/0.npz are the same file"),
        (("--against", "small.onnx"), "small.onnx is given twice"),
        (("--against", "small.other.onnx"), "small.other.onnx is given twice"),
    ],
    ids=["inputs", "named inputs", "folder of inputs", "second model", "beside the second model"],
)
def test_no_file_that_is_read_is_replaced(
    cli: Run, folder: Path, arguments: tuple[str, ...], text: str
) -> None:
    onnx.save(model(NET), folder / "net.onnx")
    for name in ("small.onnx", "small.other.onnx"):
        onnx.save(model(NET.replace("Tanh", "Sigmoid")), folder / name)
    np.savez(folder / "small.npz", x=np.ones((2, 4), np.float32))
    (folder / "data").mkdir()
    (folder / "data" / "0.npz").symlink_to(folder / "small.npz")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    ended = cli("reduce", "net.onnx", "small.onnx", *arguments)

    assert (ended.code, text in ended.err) == (2, True), ended.err
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_inputs_beside_the_output_are_read_if_none_are_written(cli: Run, folder: Path) -> None:
    onnx.save(model(NET), folder / "net.onnx")
    np.savez(folder / "small.npz", x=np.ones((2, 4), np.float32))
    before = (folder / "small.npz").read_bytes()

    assert cli("reduce", "net.onnx", "small.onnx", "--check", TANH, "--input-data", "small.npz").code == 0
    assert (folder / "small.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("net.onnx", "--check", "true {}"), 2, "check-passes"),
        (("net.onnx",), 2, "bad-check"),
        (("net.onnx", "--check", "true"), 2, "bad-check"),
        (("missing.onnx", "--check", TANH), 4, "missing.onnx"),
        (("net.onnx", "net.onnx", "--check", TANH), 1, "in-place"),
        (("net.onnx", "nowhere/small.onnx", "--check", TANH), 1, "no-such-folder"),
    ],
    ids=["passes", "no check", "no place", "no file", "source", "no folder"],
)
def test_an_error_writes_nothing(
    cli: Run, folder: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    onnx.save(model(NET), folder / "net.onnx")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    ended = cli("reduce", *arguments)

    assert (ended.code, text in ended.err) == (code, True), ended.err
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
