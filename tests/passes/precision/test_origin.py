"""A model that goes from float16 to float32 and back has the same bits, whichever nodes were float32 in it."""

from __future__ import annotations

import importlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import onnx_migrate
from onnx_migrate.facts import typed_graph
from onnx_migrate.facts.typed_graph import Frame
from onnx_migrate.facts.value_types import TypeTable
from tests.harness import model, require_opset


def constant(name: str, dims: tuple[int, ...], seed: int) -> onnx.TensorProto:
    values = np.random.default_rng(seed).normal(0, 0.3, dims).astype(np.float32)
    return numpy_helper.from_array(values, name)


def net(nodes: str = "e = Exp (b)  y = Sqrt (e)") -> onnx.ModelProto:
    """Return a model of two products, and nodes between that overflow in float16."""
    proto = model(
        f"17 (float[2,20] x) => (float[2,20] y) {{ a = MatMul (x, w)  big = Mul (a, k)  b = Add (big, v)  {nodes} }}"
    )
    proto.graph.initializer.extend(
        [constant("w", (20, 20), 0), constant("v", (20,), 1), numpy_helper.from_array(np.float32(8), "k")]
    )
    return proto


def norm() -> onnx.ModelProto:
    proto = model(
        "17 (float[1,8,6,6] x) => (float[1,8,6,6] y) {"
        " a = Conv <kernel_shape = [1, 1]> (x, w)  y = BatchNormalization (a, s, s, s, s) }"
    )
    scale = numpy_helper.from_array(np.linspace(0.5, 1.5, 8).astype(np.float32), "s")
    proto.graph.initializer.extend([constant("w", (8, 8, 1, 1), 0), scale])
    return proto


def bits(proto: onnx.ModelProto, kind: int) -> list[bytes]:
    return sorted(tensor.raw_data for tensor in proto.graph.initializer if tensor.data_type == kind)


@pytest.mark.parametrize(
    ("precision", "kind"), [("fp16", TensorProto.FLOAT16), ("bf16", TensorProto.BFLOAT16)]
)
@pytest.mark.parametrize("given", [net(), net("y = Relu (b)"), norm()], ids=["islands", "none", "batch norm"])
def test_weights_that_go_to_float32_and_back_have_the_same_bits(
    given: onnx.ModelProto, precision: str, kind: int
) -> None:
    require_opset(22 if precision == "bf16" else 17)
    half = onnx_migrate.migrate(given, precision=precision, isolated=False).model
    whole = onnx_migrate.migrate(half, precision="fp32", isolated=False).model
    again = onnx_migrate.migrate(whole, precision=precision, isolated=False).model

    assert bits(half, kind)
    assert not bits(whole, kind)
    assert bits(again, kind) == bits(half, kind)
    assert [node.op_type for node in again.graph.node] == [node.op_type for node in half.graph.node]
    assert not again.metadata_props


def test_the_search_begins_with_the_nodes_that_were_float32_before() -> None:
    half = onnx_migrate.migrate(net(), precision="fp16", keep_fp32=["MatMul"], isolated=False).model
    whole = onnx_migrate.migrate(half, precision="fp32", isolated=False).model
    again = onnx_migrate.migrate(whole, precision="fp16", isolated=False)

    kept = {node.operator for node in again.report.precision.kept}
    assert "MatMul" in kept
    assert bits(again.model, TensorProto.FLOAT16) == bits(half, TensorProto.FLOAT16)


@pytest.mark.parametrize("value", ["", "{}", "[1]", '{"nodes": 3, "weights": []}'])
def test_metadata_that_somebody_edited_is_no_fault(value: str) -> None:
    whole = net()
    whole.metadata_props.add(key="onnx_migrate.float32_beside_float16", value=value)

    half = onnx_migrate.migrate(whole, precision="fp16", isolated=False)

    assert half.report.verified
    assert not half.model.metadata_props


def test_the_types_of_a_model_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    precision = importlib.import_module("onnx_migrate.passes.precision.precision")
    read: list[onnx.ModelProto] = []

    def frames_of(proto: onnx.ModelProto, types: TypeTable) -> list[Frame]:
        read.append(proto)
        return typed_graph.frames_of(proto, types)

    monkeypatch.setattr(precision, "frames_of", frames_of)
    half = onnx_migrate.migrate(net(), precision="fp16", keep_fp32=["MatMul"], isolated=False).model
    assert len(read) == 1

    whole = onnx_migrate.migrate(half, precision="fp32", isolated=False).model

    assert len(read) == 2
    assert whole.metadata_props
