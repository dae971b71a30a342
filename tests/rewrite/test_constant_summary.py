"""Constants as reports show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.report.tensor_text import values_text
from onnx_migrate.rewrite.constant_summary import constant_summaries


def summaries(tensors: list[TensorProto], nodes: list[onnx.NodeProto], *names: str) -> list[TensorProto]:
    graph = helper.make_graph(nodes, "g", [], [], tensors)
    proto = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    (scope,) = scopes(proto, Weights(), result_ir_version=8)
    return [TensorProto.FromString(item) for item in constant_summaries(scope, names)]


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([1, 0.5], np.float32), "[1, 0.5]"),
        (np.array([[1, 2]], np.float16), "[1, 2]"),
        (np.array(3), "3"),
        (np.array([True, False]), "[true, false]"),
        (np.array([], np.float32), "[]"),
        (np.array([1 + 2j]), "[1+2j]"),
        (np.array([np.inf, np.nan]), "[inf, nan]"),
    ],
    ids=str,
)
def test_values_are_shown_as_short_text(array: Any, text: str) -> None:
    (summary,) = summaries([numpy_helper.from_array(array, "k")], [], "k")

    assert (summary.name, list(summary.dims)) == ("k", list(array.shape))
    assert values_text(summary) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (TensorProto.BFLOAT16, "[1.5, -2]"),
        (TensorProto.FLOAT8E4M3FN, "[1.5, -2]"),
        (TensorProto.FLOAT8E4M3FNUZ, "[1.5, -2]"),
        (TensorProto.FLOAT8E5M2, "[1.5, -2]"),
        (TensorProto.FLOAT8E5M2FNUZ, "[1.5, -2]"),
        (TensorProto.INT4, "[1, -2]"),
        (TensorProto.STRING, "[a, b]"),
    ],
    ids=["bfloat16", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "int4", "text"],
)
def test_element_types_that_numpy_lacks(kind: int, text: str) -> None:
    values = (
        [b"a", b"b"] if kind == TensorProto.STRING else [1, -2] if kind == TensorProto.INT4 else [1.5, -2.0]
    )
    (summary,) = summaries([helper.make_tensor("k", kind, [2], values)], [], "k")

    assert values_text(summary) == text


def test_large_and_external_constants_have_type_and_shape_only() -> None:
    large = numpy_helper.from_array(np.zeros((3, 3), np.float32), "large")
    elsewhere = TensorProto(name="far", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)

    for summary in summaries([large, elsewhere], [], "large", "far"):
        assert values_text(summary) is None
        assert summary.data_type == TensorProto.FLOAT
        assert summary.ByteSize() < 20


def test_only_constants_are_summarised_and_each_once() -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value_ints=[1, 2]),
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Constant", [], ["t"], value=helper.make_tensor("", TensorProto.FLOAT, [], [2.5])),
        helper.make_node("Relu", ["t"], ["y"]),
    ]

    found = summaries([], nodes, "c", "d", "", "y", "t", "c")

    assert {item.name: values_text(item) for item in found} == {"c": "[1, 2]", "d": "[1, 2]", "t": "2.5"}


def test_a_cached_summary_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = helper.make_graph([], "g", [], [], [numpy_helper.from_array(np.ones(2), "k")])
    (scope,) = scopes(helper.make_model(graph), Weights(), result_ir_version=8)
    kept: dict[str, bytes] = {}
    first = constant_summaries(scope, ["k", "x", ""], kept)
    monkeypatch.delattr("onnx_migrate.rewrite.constant_summary._summary")

    assert constant_summaries(scope, ["x", "k"], kept) == first == (kept["k"],)
