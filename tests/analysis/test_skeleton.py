"""The copy for onnx's analyses has types, shapes and small constants, and no large data."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx_migrate.analysis.skeleton import skeleton
from onnx_migrate.model.weights import INLINE_LIMIT
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,5000] x) => (y) <int64[2] shape = {50, -1}> { a = Add(x, big) k = Constant() b = Add(a, k) y = Reshape(b, shape) }"""


def test_large_data_is_left_out_wherever_it_is_and_types_are_inferred_all_the_same() -> None:
    source = model(TEXT)
    big = numpy_helper.from_array(np.ones((1, 5000), np.float32), "big")
    source.graph.initializer.append(big)
    source.graph.node[1].attribute.append(helper.make_attribute("value", big))
    before = source.SerializeToString()

    copy = skeleton(source)

    assert source.SerializeToString() == before
    assert copy.ByteSize() < INLINE_LIMIT
    assert not copy.graph.initializer[1].raw_data
    assert not copy.graph.node[1].attribute[0].t.raw_data
    inferred = onnx.shape_inference.infer_shapes(copy, data_prop=True).graph.output[0]
    assert [dim.dim_value for dim in inferred.type.tensor_type.shape.dim] == [50, 100]


def test_data_up_to_the_limit_stays() -> None:
    source = model(TEXT)
    source.graph.initializer.append(numpy_helper.from_array(np.ones(INLINE_LIMIT, np.int8), "big"))

    assert len(skeleton(source).graph.initializer[1].raw_data) == INLINE_LIMIT
