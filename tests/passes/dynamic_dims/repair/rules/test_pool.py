"""Pools whose window is the whole image."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from tests.harness import model, run
from tests.support.repairs import repaired, text

HEAD = "float[2,3] w = {1, 2, 3, -1, 5, 6}"


@pytest.mark.parametrize("window", ["kernel_shape=[4,6]", "kernel_shape=[5,7], pads=[0,0,1,1]"])
@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
def test_a_pool_over_the_whole_image_before_weights_becomes_global(operator: str, window: str) -> None:
    source = model(
        text(
            "float[1,2,4,6] x",
            "float[1,3] y",
            f"p = {operator}<{window}>(x) f = Flatten(p) y = Gemm(f, w)",
            HEAD,
        )
    )
    log = ChangeLog()
    result = builtin_passes()["dynamic_dims"](dynamic="x:N,2,H,W").run(Model(model(source)), log).proto  # type: ignore[call-arg]

    (change,) = log.changes
    assert change.after is not None
    assert change.after.op_type == f"Global{operator}"
    assert change.exactness is (Exactness.EXACT if operator == "MaxPool" else Exactness.EQUIVALENT)
    x = np.random.default_rng(0).standard_normal((2, 2, 5, 9)).astype(np.float32)
    pooled = x.max((2, 3)) if operator == "MaxPool" else x.mean((2, 3))
    weights = np.array([[1, 2, 3], [-1, 5, 6]], np.float32)
    np.testing.assert_allclose(run(result, {"x": x})[0], pooled @ weights, rtol=1e-4, atol=1e-5)
    small = x[:1, :, :4, :6]
    np.testing.assert_allclose(run(result, {"x": small})[0], run(source, {"x": small})[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("window", "out"),
    [
        ("kernel_shape=[2,2]", "3,5"),
        ("kernel_shape=[4,6]", "1,1"),
        ("kernel_shape=[5,6], pads=[0,0,1,0], count_include_pad=1", "1,1"),
    ],
)
def test_a_pool_without_a_conflict_after_it_is_kept(window: str, out: str) -> None:
    source = text("float[1,2,4,6] x", f"float[1,2,{out}] y", f"y = AveragePool<{window}>(x)")

    result, log = repaired(source, "x:N,2,H,W")

    assert not log.changes
    assert result.graph.node[0].op_type == "AveragePool"
