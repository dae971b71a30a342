"""Constant: numbers and strings in attributes (opset 12), a sparse tensor (11), all types (9); ConstantOfShape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from onnx_migrate.engine.steps.formula import LostTypes, Op, Value, formula
from onnx_migrate.messages import count_of
from onnx_migrate.plugins import LoweringRewriter, lowering

if TYPE_CHECKING:
    from onnx import SparseTensorProto

_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)

_LARGEST = 2**28
"""Elements up to which a sparse tensor is made dense."""


@lowering("Constant", leaves=12)
def constant_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The value is a tensor: numbers and strings that stood in attributes of their own are written as one.

    What changes: value_float, value_int, value_string become a tensor without axes, and value_floats, value_ints,
    value_strings one with a single axis.

    Why equal: the text of Constant-12 gives these attributes the same types and shapes.

    Limits: where the attribute is set by each caller of a function, the function is inlined first.
    """
    for name, dtype, listed in (
        ("value_float", TensorProto.FLOAT, False),
        ("value_floats", TensorProto.FLOAT, True),
        ("value_int", TensorProto.INT64, False),
        ("value_ints", TensorProto.INT64, True),
        ("value_string", TensorProto.STRING, False),
        ("value_strings", TensorProto.STRING, True),
    ):
        attribute = rw.attribute(name)
        if attribute is None:
            continue
        rw.get(name)  # refuses a reference to an attribute of the function
        value = helper.get_attribute_value(attribute)
        values = list(value) if listed else [value]
        rw.drop(name)
        rw.set("value", helper.make_tensor("", dtype, [len(values)] if listed else [], values))
    for name in ("value", "sparse_value"):
        rw.get(name)


@lowering("Constant", leaves=11)
def constant_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The value is dense: a sparse one is written with its zeros.

    What changes: `sparse_value` becomes `value`.

    Why equal: the text of SparseTensorProto: elements that are not listed are zero.

    Limits: more than 2^28 elements are refused.
    """
    attribute = rw.attribute("sparse_value")
    if attribute is None:
        return
    rw.get("sparse_value")
    sparse = attribute.sparse_tensor
    if math.prod(sparse.dims) > _LARGEST:
        rw.refuse(
            f"its sparse_value of shape {list(sparse.dims)} has {count_of(math.prod(sparse.dims), 'element')}, and below opset 11"
            " only a dense one can be written",
            code="no-equal",
        )
    tensor = _dense(sparse)
    rw.drop("sparse_value")
    rw.set("value", tensor)


def _dense(sparse: SparseTensorProto) -> TensorProto:
    """Return a sparse tensor with its zeros; the indices are of elements in row-major order, or one row for each."""
    values = numpy_helper.to_array(sparse.values)
    indices = numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(indices.T)] = values
    return numpy_helper.from_array(dense)


@lowering("Constant", leaves=9)
def constant_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A constant of another type than a floating-point one is an initializer.

    What changes: version 1 holds float16, float and double, and such a node stays. Any other value becomes an
    initializer of the same name; where the body gives it as an output, an Identity is written between them.

    Why equal: an initializer that is not an input of the graph cannot be set by the caller.

    Limits: a function has no initializers, so it is inlined first.
    """
    attribute = rw.attribute("value")
    if attribute is None or attribute.type != AttributeProto.TENSOR or attribute.t.data_type in _FLOATS:
        return
    body = rw.scope.body
    if not isinstance(body, onnx.GraphProto):
        rw.refuse(
            f"holds {TensorProto.DataType.Name(attribute.t.data_type).lower()}, which is an initializer below opset 9,"
            " and a function has none",
            code="needs-value",
            hint="inline the function first: onnx.inliner.inline_local_functions",
        )
    name = rw.output(0)
    tensor = body.initializer.add()
    tensor.CopyFrom(attribute.t)
    tensor.name = name
    if any(value.name == name for value in body.output):
        tensor.name = rw.fresh("value")
        rw.after("Identity", [tensor.name], [name])
    rw.remove()


@formula("ConstantOfShape", since=9, types=LostTypes.OWN)
def constant_of_shape(op: Op, shape: Value, *, value: TensorProto | None) -> Value:
    """ConstantOfShape begins with opset 9: Expand repeats the constant.

    Why equal: both give every element of the shape that value; an empty shape gives no axes.
    """
    array = np.zeros((), np.float32) if value is None else numpy_helper.to_array(value).reshape(())
    return op.Expand(op.constant(array), shape)
