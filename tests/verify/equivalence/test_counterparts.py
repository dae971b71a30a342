"""Values of two models that correspond, whatever they are called."""

from __future__ import annotations

import onnx

from onnx_migrate.verify.equivalence.counterparts import Counterparts
from tests.harness import model

NET = """17 (float[2,4] x) => (float[2,4] y)
  <float[4] w = {1.,2.,3.,4.}, float[4] v = {2.,2.,2.,2.}, int64[4] i = {0,1,2,3}> {
  [n0] a = Relu (x) [n1] b = Mul (a, w) [n2] c = Sigmoid (b) [n3] d = Mul (c, v) [n4] e = Gather <axis = 1> (d, i)
  [n5] f = LeakyRelu <alpha = 0.1> (x) [n6] g = Add (e, f) [n7] y = Add (g, a)
}"""


def renamed(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of which no inner value, weight or node has the same name; some have those of others."""
    order = ["d", "c", "b", "a", "e2", "f2", "g2"]
    names = {**dict(zip("abcdefg", order, strict=True)), "w": "v", "v": "w", "i": "j"}
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    for node in copy.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        node.name = f"other_{node.name}"
    for tensor in copy.graph.initializer:
        tensor.name = names[tensor.name]
    return copy


def test_a_value_gets_the_name_of_its_counterpart_and_no_other() -> None:
    found = Counterparts.of(renamed(model(NET)), model(NET))

    assert [node.output[0] for node in found.model.graph.node] == list("abcdefgy")
    assert found.own["a"] == "d"


def test_a_value_without_a_counterpart_takes_no_name_of_another() -> None:
    other = model("17 (float[2,4] x) => (float[2,4] y) { b = Exp (x) a = Log (b) y = Sqrt (a) }")
    found = Counterparts.of(
        other, model("17 (float[2,4] x) => (float[2,4] y) { a = Neg (x) b = Abs (a) y = Sin (b) }")
    )

    assert len({name for node in found.model.graph.node for name in node.output}) == 3
