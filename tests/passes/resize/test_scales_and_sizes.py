"""A Resize is written by sizes, or by scales, where the numbers stay the same; the reason is returned where not."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.errors import Where
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import run

forms = importlib.import_module("onnx_migrate.passes.resize.scales_and_sizes")


def rewriter(call: str, dims: str, opset: int = 13) -> tuple[onnx.ModelProto, Rewriter]:
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["":{opset}]>
g (float[{dims}] x) => (float[a,b] y) <float[2] s = {{1., 2.}}, int64[2] n = {{3, 12}}> {{ y = {call} }}""")
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    return proto, Rewriter(proto.graph.node[0], scope, opset, opset, Where("graph", "y", "Resize"))


def written(proto: onnx.ModelProto, rw: Rewriter) -> onnx.ModelProto:
    nodes = [*rw.preceding, rw.node]
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    del result.graph.node[:]
    result.graph.node.extend(nodes)
    return result


X = np.arange(15, dtype=np.float32).reshape(3, 5)


@pytest.mark.parametrize(
    ("opset", "shape", "operators"),
    [
        (13, (3, 5), ["Resize"]),
        (13, (None, 5), ["Shape", "Slice", "Concat", "Resize"]),
        (18, (None, 5), ["Resize"]),
        (13, (3, None), ["Shape", "Slice", "Mul", "Concat", "Resize"]),
        (13, (None, None), ["Shape", "Mul", "Resize"]),
    ],
)
def test_scales_to_sizes_computes_the_same(opset: int, shape: tuple[Any, ...], operators: list[str]) -> None:
    proto, rw = rewriter('Resize<mode = "linear">(x, , s)', "N,M", opset)
    expected = run(proto, {"x": X})[0]

    assert forms.scales_to_sizes(rw, np.array([1, 2], np.float32), shape) is None

    result = written(proto, rw)
    assert [node.op_type for node in result.graph.node] == operators
    np.testing.assert_array_equal(run(result, {"x": X})[0], expected)


@pytest.mark.parametrize("shape", [(3, 5), (3, None)])
def test_a_scale_that_no_size_comes_to_is_kept(shape: tuple[Any, ...]) -> None:
    proto, rw = rewriter("Resize(x, , s)", "N,M")
    before = proto.SerializeToString()

    assert forms.scales_to_sizes(rw, np.array([1, 1.5], np.float32), shape)

    assert (proto.SerializeToString(), rw.preceding) == (before, [])


def test_sizes_to_scales_computes_the_same() -> None:
    proto, rw = rewriter('Resize<mode = "linear">(x, , , n)', "3,5")

    assert forms.sizes_to_scales(rw, np.array([3, 15]), (3, 5)) is None
    assert rw.constant_value(rw.input(2)).tolist() == [1, 3]
    assert run(written(proto, rw), {"x": X})[0].shape == (3, 15)


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [((3, 12), (3, None)), ((3, 31), (3, 7)), ((3, 9), (3, 5))],
    ids=["dynamic", "runs as 30", "inferred as 8"],
)
def test_sizes_that_no_scale_makes_are_kept(sizes: tuple[int, ...], shape: tuple[Any, ...]) -> None:
    _, rw = rewriter("Resize(x, , , n)", "N,M")

    assert forms.sizes_to_scales(rw, np.array(sizes), shape)
    assert rw.input(3) == "n"
