"""The editing API of downward steps: what it knows, and what it refuses."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.facts.shape_arithmetic import OPERATORS
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from tests.harness import model

SOURCE = """<ir_version: 8, opset_import: ["":17]>
g (float[2,3,N] x, int64[1] w) => (float[2,3,N] y)
<int64[1] axes = {1}, int64[1] w = {2}> {
  s = Shape(x)
  two = Gather<axis=0>(s, axes)
  y = Relu(x)
  z = Neg(y)
}"""


def rewriter() -> LoweringRewriter:
    proto = model(SOURCE)
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    values = ValueFacts(scope, Producers(), followed=OPERATORS)
    values.find_all()
    node = proto.graph.node[3]
    return LoweringRewriter(node, scope, 12, 12, Where("graph", "z", "Neg", 13, 12), values)


def test_constants_follow_from_shapes_and_an_input_overrides_its_initializer() -> None:
    rw = rewriter()

    known = rw.known("two")
    assert known is not None
    assert known.tolist() == [3]
    assert rw.known("s") is None
    assert rw.known("w") is None


def test_what_is_not_known_is_refused_by_name() -> None:
    rw = rewriter()

    with pytest.raises(CannotMigrate, match=r"'y'.*constant below opset 13") as caught:
        rw.need_constant(0, "axes")
    assert caught.value.code == "needs-constant"
    with pytest.raises(CannotMigrate) as caught:
        rw.need_static("x")
    assert caught.value.code == "needs-shape"


def test_the_types_of_written_values_are_known_at_once() -> None:
    rw = rewriter()

    shape = rw.before("Shape", ["x"])
    turned = rw.before("Transpose", ["x"], perm=[2, 0, 1])

    assert (rw.dtype(shape), rw.shape(shape)) == (onnx.TensorProto.INT64, (3,))
    assert (rw.dtype(turned), rw.shape(turned)) == (onnx.TensorProto.FLOAT, (None, 2, 3))
    part = rw.before("Gather", [shape, rw.constant(np.array([0, 1]), "places")], axis=0)
    known = rw.known(part)
    assert known is not None
    assert known.tolist() == [2, 3]


def test_casts_around_a_node_keep_its_output_name() -> None:
    rw = rewriter()

    rw.cast_around([0], [0], onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT)
    rw.finish()

    assert [node.op_type for node in rw.preceding] == ["Cast"]
    assert rw.node.input[0] == rw.preceding[0].output[0]
    assert list(rw.following[0].output) == ["z"]
    assert rw.dtype(rw.node.output[0]) == onnx.TensorProto.DOUBLE
