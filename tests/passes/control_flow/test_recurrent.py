"""LSTM, GRU and RNN: written out, the steps give what ONNX Runtime's kernels do, within rounding."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import random_feeds, run
from tests.support.plain_nodes import flattened

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def source(operator: str, *, bias: bool = True, states: bool = True, peepholes: bool = False, opset: int = 17,
           lengths: list[int] | None = None, **attributes: Any) -> onnx.ModelProto:  # fmt: skip
    """Return a model of one recurrent node: 5 steps of a batch of 2, 3 inputs and 4 hidden values."""
    rng, both = np.random.default_rng(0), 2 if attributes.get("direction") == "bidirectional" else 1
    gates, turned = GATES[operator] * 4, attributes.get("layout")
    shapes = {"w": (both, gates, 3), "r": (both, gates, 4), "b": (both, 2 * gates), "p": (both, 12)}
    constants = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    constants.append(numpy_helper.from_array(np.array(lengths or [5, 5], np.int32), "l"))
    state = [2, both, 4] if turned else [both, 2, 4]
    given = ["x", "w", "r", "b" if bias else "", "l" if lengths else "", "h" if states else ""]
    outputs = ["y", "yh"]
    inputs = [helper.make_tensor_value_info("x", 1, [2, 5, 3] if turned else [5, 2, 3])]
    inputs += [helper.make_tensor_value_info("h", 1, state)] if states else []
    if operator == "LSTM":
        outputs, given = [*outputs, "yc"], [*given, "c" if states else "", "p" if peepholes else ""]
        inputs += [helper.make_tensor_value_info("c", 1, state)] if states else []
    node = helper.make_node(operator, given, outputs, hidden_size=4, **attributes)
    ranks = {"y": 4, "yh": 3, "yc": 3}
    graph = helper.make_graph(
        [node],
        "g",
        inputs,
        [helper.make_tensor_value_info(name, 1, [None] * ranks[name]) for name in outputs],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False, "states": False}, {"states": False}, {"direction": "reverse"}, {"direction": "bidirectional"},
     {"clip": 0.5}, {"layout": 1}, {"opset": 7}, {"lengths": [5, 5]}],
    ids=str,
)  # fmt: skip
def test_the_steps(operator: str, options: dict[str, Any]) -> None:
    if options.get(
        "layout"
    ):  # ONNX Runtime has no kernel of layout 1: the same as layout 0 between Transposes
        check_layout(operator)
        return
    check(source(operator, **options))


@pytest.mark.parametrize(
    ("operator", "options"),
    [("LSTM", {"peepholes": True}), ("LSTM", {"input_forget": 1}), ("GRU", {"linear_before_reset": 1}),
     ("GRU", {"linear_before_reset": 1, "bias": False}), ("GRU", {"linear_before_reset": 1, "states": False}),
     ("RNN", {"activations": ["Relu"]}), ("LSTM", {"peepholes": True, "states": False}),
     ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Softsign"]}),
     ("GRU", {"activations": ["HardSigmoid", "Tanh", "Sigmoid", "HardSigmoid"], "direction": "bidirectional",
              "activation_alpha": [0.3, 0.1], "activation_beta": [0.4, 0.6]})],
)  # fmt: skip
def test_variants(operator: str, options: dict[str, Any]) -> None:
    check(source(operator, **options))


def check(proto: onnx.ModelProto) -> None:
    result, log = flattened(proto, wanted=frozenset(GATES))
    assert not Counter(node.op_type for node in result.graph.node).keys() & GATES.keys()
    assert log.changes[0].exactness is Exactness.EQUIVALENT
    feeds = random_feeds(proto, 1)
    for want, value in zip(run(proto, feeds), run(result, feeds), strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-5, atol=2e-6)


def check_layout(operator: str) -> None:
    feeds = random_feeds(source(operator, layout=1), 1)
    results = []
    for layout in (0, 1):
        given = feeds if layout else {name: value.swapaxes(0, 1) for name, value in feeds.items()}
        results.append(run(flattened(source(operator, layout=layout), wanted=frozenset(GATES))[0], given))
    for place, (zero, one) in enumerate(zip(*results, strict=True)):
        np.testing.assert_array_equal(one, zero.transpose(2, 0, 1, 3) if not place else zero.swapaxes(0, 1))


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"lengths": [5, 3]}, "sequence_lens"), ({"activations": ["Elu"]}, "activation Elu")],
)
def test_what_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(CannotMigrate, match=reason):
        flattened(source("RNN", **options), wanted=frozenset(GATES))


def test_a_branch_whose_node_reads_another_number_of_axes_is_left_out() -> None:
    proto, scope = source("LSTM", states=False), helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    node = proto.graph.node[0]
    deep = onnx.NodeProto.FromString(node.SerializeToString())
    deep.input[0] = "x4"
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in node.output]
    wider = helper.make_node("Unsqueeze", ["x", "zero"], ["x4"])
    branches = {
        "then_branch": helper.make_graph([node], "t", [], outputs),
        "else_branch": helper.make_graph([wider, deep], "e", [], outputs),
    }
    choice = helper.make_node("If", ["c"], [f"{name}_" for name in node.output], **branches)
    del proto.graph.node[:]
    proto.graph.node.append(choice)
    proto.graph.input.append(scope)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([0]), "zero"))
    for output in proto.graph.output:
        output.name += "_"
    result, log = flattened(proto, wanted=frozenset({*GATES, "If"}))
    assert "LSTM 'y' reads 4 axes" in log.notes[-1].message
    assert "If" not in {item.op_type for item in result.graph.node}


@pytest.mark.parametrize(("direction", "steps"), [("forward", 1 << 20), ("bidirectional", 1 << 21)])
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_the_limit_is_asked_before_the_first_step_is_written(
    operator: str, direction: str, steps: int
) -> None:
    proto = source(operator, direction=direction)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1 << 20
    start = time.process_time()
    with pytest.raises(
        CannotMigrate, match=f"it has {steps} steps, and 2000 nodes may be written for it"
    ) as caught:
        flattened(proto, wanted=frozenset(GATES))
    assert caught.value.code == "unroll-limit"
    assert time.process_time() - start < 1
