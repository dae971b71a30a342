"""Operators that end: rewrites of experimental ones that onnx 1.4 and 1.5 removed, and refusals downwards.

onnx-migrate rewrites the experimental ones at the opset that removed them: 9 for ConstantFill and MeanVarianceNormalization, 10
for the others. At older opsets they are part of the standard and are unchanged. For older opsets, it refuses operators that no
older operator can compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.messages import count_of
from onnx_migrate.plugins import Exactness, Rewriter, adapter, impossible, unsupported
from onnx_migrate.standard.unlisted_operators import crop_limits

unsupported(
    "ATen",
    10,
    why="ATen calls a function of PyTorch's C++ library by name, so the model does not define what it computes",
    hint="export the model again with operator_export_type=ONNX",
)

unsupported(
    "GRUUnit",
    10,
    why="the standard does not specify how GRUUnit combines gates and state, and no runtime implements it",
    hint="export the model again with GRU",
)


@adapter("Affine", to=10)
def affine_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Affine was removed from the standard: alpha · x + beta becomes Mul and Add.

    Why equal: onnxruntime/contrib_ops/cpu/element_wise_ops.cc; half floats are computed in float32, as there.
    """
    alpha, beta = rw.pop("alpha", 1.0), rw.pop("beta", 0.0)
    _linear(node, rw, alpha, np.array(beta))


@adapter("Scale", to=10)
def scale_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Scale was removed from the standard: it becomes Mul.

    Why equal: onnxruntime/contrib_ops/cpu/element_wise_ops.cc; half floats are computed in float32, as there.
    """
    _linear(node, rw, rw.pop("scale", 1.0), np.array(0.0))


@adapter("ImageScaler", to=10)
def image_scaler_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """ImageScaler was removed from the standard: scale · x + bias, with a bias per channel, becomes Mul and Add.

    Why equal: onnxruntime/contrib_ops/cpu/image_scaler.h; half floats are computed in float32, as there. Without
    `bias`, which the standard allows and ONNX Runtime does not, nothing is added.
    """
    scale, bias = rw.pop("scale", 1.0), rw.pop("bias", [])
    _linear(node, rw, scale, np.array(bias).reshape(-1, 1, 1))


@adapter("ScaledTanh", to=10, exactness=Exactness.EQUIVALENT)
def scaled_tanh_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """ScaledTanh was removed from the standard: Mul, Tanh, Mul compute alpha · tanh(beta · x).

    Limits: onnx-migrate refuses a node without one of the attributes, since the standard allows it but specifies no default.
    """
    _between(node, rw, "Tanh")


@adapter("ParametricSoftplus", to=10, exactness=Exactness.EQUIVALENT)
def parametric_softplus_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """ParametricSoftplus was removed from the standard: Mul, Softplus, Mul compute alpha · ln(exp(beta · x) + 1).

    Limits: onnx-migrate refuses a node without one of the attributes, since the standard allows it but specifies no default.
    """
    _between(node, rw, "Softplus")


@adapter("Crop", to=10)
def crop_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Crop was removed from the standard: it becomes a Slice of height and width.

    Why equal: `border` holds left, top, right and bottom. With `scale`, the slice starts at left and top, and `scale` holds its
    height and width (onnxruntime/contrib_ops/cpu/crop.h).
    """
    limits = crop_limits(rw.pop("border", []), rw.pop("scale", []))
    if limits is None:
        rw.refuse("its border must have four numbers and its scale two, none negative", code="invalid-node")
    rw.rename("Slice")
    for index, (hint, value) in enumerate(zip(("starts", "ends", "axes"), (*limits, [2, 3]), strict=True), 1):
        rw.set_input(index, rw.constant(np.array(value, np.int64), hint))


@adapter("DynamicSlice", to=10)
def dynamic_slice_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """DynamicSlice was removed from the standard: it becomes Slice, which has the same inputs.

    Why equal: ONNX Runtime has one kernel for both.
    """
    rw.rename("Slice")


@adapter("MeanVarianceNormalization", to=9)
def mean_variance_normalization_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`across_channels` becomes `axes`.

    What changes: without `normalize_variance` ReduceMean and Sub replace the node.

    Why equal: the text of version 9 names the axes of both cases, and ONNX Runtime computes both versions with one kernel. Half
    floats are computed in float32, as there. Without the variance the result may round differently.
    """
    axes = [0, 1, 2, 3] if rw.pop("across_channels", 0) else [0, 2, 3]
    variance = rw.pop("normalize_variance", 1)
    node.input[0] = value = _widened(rw)
    if variance:
        rw.set("axes", axes)
        return
    rw.rename("Sub")
    rw.set_input(1, rw.before("ReduceMean", [value], hint="mean", axes=axes, keepdims=1))
    rw.note("without normalize_variance it is written as ReduceMean and Sub", Exactness.EQUIVALENT)


@adapter("ConstantFill", to=9)
def constant_fill_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """ConstantFill was removed from the standard: it becomes ConstantOfShape.

    What changes: the shape, which was an attribute, the shape of an input, or the elements of an input, followed by
    `extra_shape`, becomes the input.
    """
    dtype = helper.tensor_dtype_to_np_dtype(rw.pop("dtype", int(TensorProto.FLOAT)))
    value = np.array([rw.pop("value", 0.0)]).astype(dtype)
    shape = _shape(rw)
    del node.input[:]
    node.input.append(shape if isinstance(shape, str) else rw.constant(np.array(shape, np.int64), "shape"))
    rw.rename("ConstantOfShape")
    rw.set("value", onnx.numpy_helper.from_array(value))


@adapter("GivenTensorFill", to=10)
def given_tensor_fill_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """GivenTensorFill was removed from the standard: it becomes Constant, or as Reshape if an input has the shape.

    What changes: the values have the type of the input, or float32 without one.
    """
    source = rw.input(0)
    dtype = helper.tensor_dtype_to_np_dtype(rw.need_dtype(source)) if source else np.dtype(np.float32)
    values = np.array(rw.pop("values", [])).astype(dtype)
    shape = _shape(rw)
    del node.input[:]
    if isinstance(shape, str):
        rw.rename("Reshape")
        node.input.extend([rw.constant(values, "values"), shape])
        return
    if values.size != np.prod(shape):
        rw.refuse(
            f"has {count_of(values.size, 'value')}, but the shape {shape} needs {int(np.prod(shape))}",
            code="invalid-node",
        )
    rw.rename("Constant")
    rw.set("value", onnx.numpy_helper.from_array(values.reshape(shape)))


def _shape(rw: Rewriter) -> str | list[int]:
    """Remove the attributes for the shape; return the shape, or the name of a value that holds it."""
    source, stated = rw.input(0), rw.attribute("shape") is not None
    shape, extra = rw.pop("shape", []), rw.pop("extra_shape", [])
    numbers = rw.pop("input_as_shape", 0)
    if (source and stated) or (extra and not source):
        rw.refuse(
            "the attribute shape is allowed only without an input, and extra_shape only with one",
            code="invalid-node",
        )
    if not source:
        return list(shape)
    if numbers:
        value = rw.before("Cast", [source], hint="shape", to=int(TensorProto.INT64))
    else:
        value = rw.before("Shape", [source], hint="shape")
    if not extra:
        return value
    behind = rw.constant(np.array(extra, np.int64), "extra_shape")
    return rw.before("Concat", [value, behind], hint="full_shape", axis=0)


def _linear(node: onnx.NodeProto, rw: Rewriter, factor: float, offset: np.ndarray[Any, Any]) -> None:
    """Rewrite the node as factor · x + offset; a factor of 1 and an offset of 0 are omitted."""
    value = _widened(rw)
    steps = [("Mul", np.array(factor), "scale")] if factor != 1 else []
    if offset.any():
        steps.append(("Add", offset, "bias"))
    if not steps:
        rw.rename("Identity")
        node.input[0] = value
    _chain(node, rw, value, steps)


def _between(node: onnx.NodeProto, rw: Rewriter, operator: str) -> None:
    """Rewrite the node as alpha · operator(beta · x)."""
    for name in ("alpha", "beta"):
        if rw.attribute(name) is None:
            rw.refuse(
                f"omits attribute {name}, which has no default",
                code="needs-value",
                hint=f"set {name} in the model",
            )
    alpha, beta = rw.pop("alpha"), rw.pop("beta")
    value = rw.before("Mul", [_widened(rw), _number(rw, np.array(beta), "beta")], hint="scaled")
    _chain(node, rw, rw.before(operator, [value]), [("Mul", np.array(alpha), "alpha")])


def _chain(
    node: onnx.NodeProto, rw: Rewriter, value: str, steps: Sequence[tuple[str, np.ndarray[Any, Any], str]]
) -> None:
    """Apply binary operators with a constant operand one after the other; the node becomes the last of them."""
    for number, (operator, operand, hint) in enumerate(steps, 1):
        inputs = [value, _number(rw, operand, hint)]
        if number < len(steps):
            value = rw.before(operator, inputs)
        else:
            rw.rename(operator)
            del node.input[:]
            node.input.extend(inputs)


def _number(rw: Rewriter, array: np.ndarray[Any, Any], hint: str) -> str:
    double = rw.need_dtype(rw.node.input[0]) == TensorProto.DOUBLE
    return rw.constant(array.astype(np.float64 if double else np.float32), hint)


def _widened(rw: Rewriter) -> str:
    """Return the node's input; half floats are cast to float32, and the node's output back.

    The attributes are float32 numbers. ONNX Runtime implements these operators for float32 only, so it casts too.
    """
    value = rw.node.input[0]
    if rw.need_dtype(value) != TensorProto.FLOAT16:
        return value
    output = rw.output(0)
    rw.after("Cast", [rw.detach_output(0)], [output], to=int(TensorProto.FLOAT16))
    return rw.before("Cast", [value], hint="float", to=int(TensorProto.FLOAT))


for _operator, _version, _task in (
    ("RegexFullMatch", 20, "matches strings"),
    ("StringConcat", 20, "joins strings"),
    ("StringSplit", 20, "splits strings"),
    ("StringNormalizer", 10, "changes strings"),
    ("TfIdfVectorizer", 9, "counts n-grams"),
):
    impossible(
        _operator,
        _version,
        why=f"no operator below opset {_version} {_task}",
        hint="do it in front of the model",
    )

impossible(
    "Unique",
    11,
    why="no operator below opset 11 finds the values that differ, whose number only the data say",
    hint="do it in front of the model",
)
