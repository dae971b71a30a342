"""The runs of changed models: their values and types are recorded, and no copies of weights stay on the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.facts.shapes import dims_of
from onnx_migrate.model.model import Model
from onnx_migrate.process import temporary
from onnx_migrate.reduction.bench import Bench
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.trials import Trials
from tests.harness import model
from tests.reduction.harness import HERE, FunctionCheck, with_weights

NET = "17 (float[300,300] x) => (float[300,300] y) { a = MatMul (x, w) b = Relu (a) y = Neg (b) }"
X, W = np.random.default_rng(0).standard_normal((2, 300, 300)).astype(np.float32)


def net() -> onnx.ModelProto:
    return with_weights(model(NET), w=W)


@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "file"])
def test_a_run_leaves_no_file_but_its_large_values(
    in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    if not in_memory:
        onnx.save(net(), tmp_path / "net.onnx", save_as_external_data=True, location="net.data")
    loaded: Model = files.load(net() if in_memory else tmp_path / "net.onnx")
    monkeypatch.setattr(temporary.tempfile, "tempdir", str(tmp_path / "runs"))
    candidate = Candidate(loaded, {"x": X})
    with Trials(FunctionCheck(lambda *_: True)) as trials:
        bench = Bench(trials, HERE, runs_here=True)
        for _ in range(3):
            values = bench.record(loaded, candidate)
        large_files = [path for path in (tmp_path / "runs").rglob("*.*") if path.stat().st_size >= X.nbytes]

    output = values.array("y")
    assert output is not None
    assert np.allclose(output, -np.maximum(X @ W, 0), atol=1e-3)
    assert [path.suffix for path in large_files] == [".npy"] * 9  # the values of three nodes in each run


def test_an_output_that_is_an_initializer_keeps_its_type() -> None:
    stored = with_weights(
        model("17 (float[2] x) => (float[2] y, float[3] w) { y = Relu (x) }"), w=np.ones(3, np.float32)
    )
    candidate = Candidate(Model(stored), {"x": np.ones(2, np.float32)}, is_static=True)
    with Trials(FunctionCheck(lambda *_: True)) as trials:
        renewed = Bench(trials, HERE, runs_here=True).renewed(candidate)

    assert renewed is not None
    assert [dims_of(output) for output in renewed.proto.graph.output] == [(2,), (3,)]
