"""`--extract-outputs`, `--extract-inputs` and `--split`: the files that the command writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx

from tests.harness import model

TWO = """17 (float[N,4] x, float[N,4] q) => (float[N,4] y, float[N,4] z) {
  a = Relu (x) b = Mul (a, a) y = Add (b, a) z = Neg (q)
}"""


def names(values: Any) -> list[str]:
    return [value.name for value in values]


def test_the_command_writes_both_parts_or_none(tmp_path: Path, cli: Any) -> None:
    source, out, rest = (tmp_path / name for name in ("m.onnx", "o.onnx", "o.rest.onnx"))
    onnx.save(model(TWO), source)
    done = cli(source, out, "--extract-outputs", "a", "--split", "--json", "--depfile", tmp_path / "d")

    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["output"], told["rest"]) == (str(out), str(rest))
    assert (tmp_path / "d").read_text().startswith(f"{out} {rest}: {source}")
    assert names(onnx.load(rest).graph.input) == ["a", "q"]
    before = out.read_bytes()
    rest.unlink()
    rest.mkdir()
    assert cli(source, out, "--extract-outputs", "b", "--split").code == 1
    assert out.read_bytes() == before
    assert cli(source, "-", "--extract-outputs", "b", "--split").code == 2
