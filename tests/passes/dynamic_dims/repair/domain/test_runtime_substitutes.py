"""Operators of ONNX Runtime's own, of which onnx infers no shapes."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, SampledValue, fixed
from onnx_migrate.passes.dynamic_dims.repair.domain.runtime_substitutes import _BY_DOMAIN, substitute

ASSIGNMENTS = Assignments.of({"N": 1}, {"N"}, 64)
N = Dim(ASSIGNMENTS.sizes["N"])
F, U8, I8, I32 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32

Given = tuple[int, list[int | Dim]]
ONE: Given = (F, [])
ZERO: Given = (U8, [])

CASES: dict[str, tuple[list[Given | None], dict[str, object], tuple[int, list[int | Dim]] | None]] = {
    "Gelu": ([(F, [N, 3])], {}, (F, [N, 3])),
    "BiasGelu": ([(F, [N, 3]), (F, [3])], {}, (F, [N, 3])),
    "SkipLayerNormalization": ([(F, [N, 2, 4]), (F, [N, 2, 4]), (F, [4])], {}, (F, [N, 2, 4])),
    "EmbedLayerNormalization": (
        [(I32, [N, 5]), (I32, [N, 5]), (F, [9, 4]), (F, [6, 4]), (F, [2, 4]), (F, [4]), (F, [4])], {}, (F, [N, 5, 4]),
    ),
    "QLinearAdd": ([(U8, [N, 3]), ONE, ZERO, (U8, [3]), ONE, ZERO, ONE, ZERO], {}, (U8, [N, 3])),
    "QLinearConcat": ([ONE, ZERO, (U8, [N, 3]), ONE, ZERO, (U8, [N, 4]), ONE, ZERO], {"axis": 1}, (U8, [N, 7])),
    "QLinearSigmoid": ([(U8, [N, 3]), ONE, ZERO, ONE, ZERO], {}, (U8, [N, 3])),
    "QLinearSoftmax": ([(U8, [N, 3]), ONE, ZERO, ONE, ZERO], {"axis": -1, "opset": 13}, (U8, [N, 3])),
    "QLinearGlobalAveragePool": ([(U8, [N, 3, 4, 4]), ONE, ZERO, ONE, ZERO], {}, (U8, [N, 3, 1, 1])),
    "FusedMatMul": ([(F, [N, 4, 3]), (F, [N, 5, 4])], {"transA": 1, "transB": 1}, (F, [N, 3, 5])),
    "DynamicQuantizeMatMul": ([(F, [N, 3]), (U8, [3, 5]), ONE], {}, (F, [N, 5])),
    "MatMulIntegerToFloat": ([(U8, [N, 3]), (U8, [3, 5]), ONE, ONE], {}, (F, [N, 5])),
    "MatMulNBits": ([(F, [N, 32]), (U8, [5, 1, 16]), (F, [5])], {"K": 32, "N": 5, "bits": 4, "block_size": 32}, (F, [N, 5])),
    "FusedGemm": ([(F, [N, 3]), (F, [3, 5])], {"activation": "Relu"}, (F, [N, 5])),
    "QGemm": ([(U8, [N, 3]), ONE, ZERO, (U8, [3, 5]), ONE, ZERO], {}, (F, [N, 5])),
    "FusedConv": ([(F, [N, 2, 5, 5]), (F, [4, 2, 3, 3])], {"activation": "Relu", "strides": [2, 2]}, (F, [N, 4, 2, 2])),
    "Attention": ([(F, [N, 5, 6]), (F, [6, 12]), (F, [12])], {"num_heads": 2}, (F, [N, 5, 4])),
    "MultiHeadAttention": ([(F, [N, 5, 6]), (F, [N, 7, 6]), (F, [N, 7, 8])], {"num_heads": 2}, (F, [N, 5, 8])),
    "DynamicQuantizeLSTM": (
        [(F, [7, N, 3]), (I8, [1, 3, 16]), (I8, [1, 4, 16]), *[None] * 5, (F, [1]), (I8, [1]), (F, [1]), (I8, [1])],
        {"hidden_size": 4}, (F, [7, 1, N, 4]),
    ),
}  # fmt: skip


def value_of(given: Given | None) -> SampledValue | None:
    if given is None:
        return None
    dims = tuple(dim if isinstance(dim, Dim) else fixed(dim) for dim in given[1])
    return SampledValue(given[0], dims)


def of_operator(operator: str) -> tuple[onnx.NodeProto, list[SampledValue | None]]:
    inputs, attributes, _ = CASES[operator]
    outputs = ["y", "mask"] if operator == "EmbedLayerNormalization" else ["y"]
    names = ["" if given is None else f"x{index}" for index, given in enumerate(inputs)]
    return helper.make_node(operator, names, outputs, domain="com.microsoft", **attributes), [
        *map(value_of, inputs)
    ]


@pytest.mark.parametrize("operator", CASES)
def test_the_output_has_these_dims(operator: str) -> None:
    from onnx_migrate.passes.dynamic_dims.repair.domain.node_inference import infer

    node, values = of_operator(operator)
    _, _, expected = CASES[operator]

    found = substitute(node, values)

    assert found is not None
    outputs = found.spread(infer(found.node, found.inputs, {"": 17}, 8), 1)
    want = value_of(expected)
    assert want is not None
    assert (outputs[0].dtype, outputs[0].dims) == (want.dtype, want.dims)


@pytest.mark.parametrize("operator", CASES)
def test_so_it_has_in_onnxruntime(operator: str) -> None:
    """The dims stated above are those that ONNX Runtime computes for a batch of 3."""
    node, _ = of_operator(operator)
    inputs, _, expected = CASES[operator]
    assert expected is not None

    def sizes(given: Given) -> list[int]:
        return [3 if isinstance(dim, Dim) else dim for dim in given[1]]

    feeds = {
        name: np.ones(sizes(given), helper.tensor_dtype_to_np_dtype(given[0]))
        for name, given in zip(node.input, inputs, strict=True)
        if given is not None
    }
    # All but the first are constants: some kernels require that of weights, scales and zero points.
    fed = {next(iter(feeds)): feeds[next(iter(feeds))]}
    constants = [
        onnx.numpy_helper.from_array(array, name) for name, array in feeds.items() if name not in fed
    ]
    ports = [helper.make_tensor_value_info(name, inputs[0][0], array.shape) for name, array in fed.items()]  # type: ignore[index]
    graph = helper.make_graph(
        [node], "g", ports, [helper.make_tensor_value_info("y", expected[0], None)], constants
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)

    (y,) = ort.InferenceSession(model.SerializeToString(), options).run(["y"], fed)

    assert list(y.shape) == sizes(expected)


def test_another_layout_and_an_unknown_operator_are_unknown() -> None:
    node, values = of_operator("QLinearGlobalAveragePool")
    node.attribute.append(helper.make_attribute("channels_last", 1))

    assert substitute(node, values) is None
    assert substitute(helper.make_node("Odd", ["x0"], ["y"], domain="com.microsoft"), values) is None
    assert "Relu" not in _BY_DOMAIN[""]
