"""How two models differ by structure: the summary and the entries."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate import diff
from tests.harness import model

NET = """17 (float[2,4] x) => (float[2,4] y) <float[4] w = {1.,2.,3.,4.}> {
  [n0] a = Relu (x) [n1] b = Mul (a, w) [n2] c = LeakyRelu <alpha = 0.1> (b) [n3] y = Add (c, x)
}"""


def test_the_summary_counts_what_differs() -> None:
    other = model(
        NET.replace("0.1", "0.2")
        .replace("4.}", "5.}")
        .replace("y = Add (c, x)", "d = Abs (c) y = Add (d, x)")
    )
    found = diff(model(NET), other)

    assert not found.same
    assert str(found).splitlines() == [
        "nodes      2 changed, 1 added", "weights    1 changed", "operators  Abs 0 → 1",
    ]  # fmt: skip


def test_names_and_order_are_no_difference() -> None:
    other = model(NET.replace("a = Relu", "q = Relu").replace("Mul (a", "Mul (q").replace("n1", "other"))
    found = diff(model(NET), other)

    assert found.same
    assert str(found) == "the models are the same but for names and order"


def test_opsets_and_the_interface_are_named() -> None:
    other = model(NET.replace("float[2,4] x", "float[N,4] x"))
    other.opset_import[0].version = 18

    assert str(diff(model(NET), other)).splitlines() == ["model   1 changed", "inputs  1 changed"]


def test_a_large_weight_says_where_it_differs() -> None:
    models = []
    for by in (0.0, 0.5):
        proto = model("17 (float[2,32] x, float[32,32] w) => (float[2,32] y) { y = MatMul (x, w) }")
        weight = np.zeros((32, 32), np.float32)
        weight[3, 5] = by
        del proto.graph.input[1:]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
        models.append(proto)
    entry = next(entry for entry in diff(*models).entries if entry.subject == "weight w")

    assert entry.title == "weight w differs in 1 of 1,024 elements, at [3, 5]: 0 and 0.5"
