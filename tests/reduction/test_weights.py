"""--strip-weights: random weights of the same size and distribution, where the failure stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_migrate
from onnx_migrate.model.model import Model
from onnx_migrate.reduction.bench import Bench
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.failures import Failure, KeptFailure
from onnx_migrate.reduction.numbers import strip_weights
from onnx_migrate.reduction.trials import Trials
from tests.harness import model
from tests.reduction.harness import HERE, FunctionCheck, with_weights

NET = (
    "17 (float[2,64] x) => (float[2,32] y) { a = MatMul (x, w) b = Gather <axis = 1> (a, t) y = Mul (b, s) }"
)


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    table = rng.permutation(64)[:32].astype(np.int64)
    return {"w": rng.normal(0.3, 0.1, (64, 64)).astype(np.float32), "t": table, "s": np.float32(0.37)}


def stripped(
    fails: Callable[[Mapping[str, np.ndarray]], bool],
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    def check(proto: onnx.ModelProto, feed: Mapping[str, Any]) -> bool:
        return fails({**arrays_of(proto), **feed})

    feed = {"x": np.random.default_rng(2).random((2, 64)).astype(np.float32)}
    candidate = Candidate(Model(with_weights(model(NET), **weights())), feed, is_static=True)
    with Trials(FunctionCheck(check)) as trials:
        trials.kept = KeptFailure(Failure("exit", "1", "it fails"))
        found, kept = strip_weights(candidate, Bench(trials, HERE, runs_here=True))
    arrays = {tensor.name: found.model.weights.array(tensor) for tensor in found.proto.graph.initializer}
    return {**arrays, **found.feed}, kept


def arrays_of(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


def test_random_weights_have_the_size_and_distribution_and_tables_stay() -> None:
    before, (after, kept) = weights(), stripped(lambda _: True)

    assert not kept
    assert not np.isin(after["w"], before["w"]).all()
    assert after["w"].shape == (64, 64)
    assert after["w"].mean() == pytest.approx(before["w"].mean(), abs=0.01)
    assert after["w"].std() == pytest.approx(before["w"].std(), rel=0.1)
    assert before["w"].min() <= after["w"].min() <= after["w"].max() <= before["w"].max()
    np.testing.assert_array_equal(after["t"], before["t"])
    assert after["s"] == before["s"]


def test_the_same_weights_come_each_time() -> None:
    np.testing.assert_array_equal(stripped(lambda _: True)[0]["w"], stripped(lambda _: True)[0]["w"])


def test_a_value_that_the_failure_needs_stays_and_is_named() -> None:
    x = np.random.default_rng(2).random((2, 64)).astype(np.float32)
    after, kept = stripped(lambda arrays: np.array_equal(arrays["x"], x))

    assert kept == ("x",)
    np.testing.assert_array_equal(after["x"], x)
    assert not np.isin(after["w"], weights()["w"]).all()


def test_the_report_tells_which_weights_are_random(tmp_path: Path) -> None:
    proto = with_weights(model(NET), **weights())
    onnx.save(
        proto, tmp_path / "net.onnx", save_as_external_data=True, location="net.data", size_threshold=1024
    )
    options: dict[str, Any] = {"isolated": False, "strip_weights": True}
    result = onnx_migrate.reduce(
        tmp_path / "net.onnx", check="grep -q MatMul {} && exit 3; exit 0", **options
    )

    assert "weights   random" in str(result)
    assert [node.op_type for node in result.model.graph.node] == ["MatMul"]
    assert result.save(tmp_path / "small.onnx") == [str(tmp_path / "small.onnx")]
    onnx.checker.check_model(onnx.load(tmp_path / "small.onnx"), full_check=True)
