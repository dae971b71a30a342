"""Models whose large weights are in memory: ONNX Runtime runs them, and checks of commands need no ONNX Runtime."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_migrate
from tests.harness import model
from tests.reduction.harness import with_weights

NET = "17 (float[2,600] x) => (float[2,600] y) { a = MatMul (x, w) b = Relu (a) c = Tanh (b) y = Neg (c) }"
HERE: dict[str, Any] = {"isolated": False}
CHECK = "if grep -q Tanh {}; then exit 3; fi"


def net(text: str = NET, factor: float = 1.0) -> onnx.ModelProto:
    """Return a model with a weight of 1.4 MB."""
    numbers = np.random.default_rng(0).standard_normal((600, 600)).astype(np.float32)
    return with_weights(model(text), w=numbers * np.float32(factor))


@pytest.mark.parametrize("isolated", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_pair_with_other_operators_or_weights(isolated: bool) -> None:
    other_operator = onnx_migrate.reduce(net(), against=net(NET.replace("Tanh", "Erf")), isolated=isolated)
    other_weight = onnx_migrate.reduce(net(), against=net(factor=1.5), isolated=isolated)

    assert [node.op_type for node in other_operator.model.graph.node] == ["Tanh"]
    assert [node.op_type for node in other_weight.model.graph.node] == ["MatMul"]
    assert other_weight.other is not None
    pairs = [
        onnx.numpy_helper.to_array(part.graph.initializer[0])
        for part in (other_weight.model, other_weight.other)
    ]
    assert np.array_equal(pairs[0] * np.float32(1.5), pairs[1])


def test_the_original_runs_in_onnxruntime() -> None:
    """The reference evaluator has no operators of com.microsoft."""
    proto = net(NET.replace("a = MatMul", "a = com.microsoft.FusedMatMul <alpha = 2.0>"))
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    report = onnx_migrate.reduce(proto, check=CHECK, **HERE).report

    assert report.nodes == 1
    assert not [note for note in report.notes if "no runtime here runs the model" in note]


def test_a_command_needs_no_onnxruntime_and_a_pair_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = onnx_migrate.reduce(net(), check=CHECK, **HERE)

    assert [node.op_type for node in result.model.graph.node] == ["Tanh"]
    (note,) = (note for note in result.report.notes if "no runtime here runs the model" in note)
    assert note.endswith("a run of the model needs onnxruntime, which is not installed")
    with pytest.raises(onnx_migrate.UsageError) as caught:
        onnx_migrate.reduce(net(), against=net(factor=1.5), **HERE)
    assert caught.value.code == "not-installed"
