"""Constant: numbers and strings in attributes (opset 12), a sparse tensor (11), all types (9); also ConstantOfShape."""

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
"""The most elements of a sparse tensor that becomes dense."""


@lowering("Constant", leaves=12)
def constant_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Numbers and strings in attributes of their own become a tensor in `value`.

    What changes: value_float, value_int and value_string become a tensor without axes. value_floats, value_ints and
    value_strings become a tensor with one axis.

    Why equal: the text of Constant-12 gives these attributes the same types and shapes.

    Limits: if each caller of a function sets the attribute, onnx-migrate inlines the function first.
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
    """A sparse value becomes a dense one that includes the zeros.

    What changes: `sparse_value` becomes `value`.

    Why equal: the text of SparseTensorProto says that elements without an index are zero.

    Limits: onnx-migrate refuses tensors of more than 2^28 elements.
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
    """Return a sparse tensor as a dense one. Its indices are flat in row-major order, or one row for each element."""
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
    """A constant that is not floating-point becomes an initializer.

    What changes: version 1 supports float16, float and double, so nodes of these types are unchanged. Any other value becomes
    an initializer of the same name. If the value is an output of the graph, an Identity is added between them.

    Why equal: a caller cannot set an initializer that is not an input of the graph.

    Limits: a function has no initializers, so onnx-migrate inlines it first.
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
    """ConstantOfShape begins with opset 9, so Expand repeats the constant.

    Why equal: both give that value to every element of the shape. An empty shape gives a tensor without axes.
    """
    array = np.zeros((), np.float32) if value is None else numpy_helper.to_array(value).reshape(())
    return op.Expand(op.constant(array), shape)
