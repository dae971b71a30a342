"""Writes quantised operators as float ones between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.steps.formula import Op, TensorProto, Value, unregistered
from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.engine.steps.step import Step
from onnx_migrate.facts.scope import Scope
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.bounded_arrays import bounded_dims
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.schema import is_onnx

from ..standard.standard import MICROSOFT, import_onnx

__all__ = ["MOVING", "WITH_SCALES", "QuantizedAsPairs", "write_out_softmax", "write_scales_as_pairs"]

_T = TensorProto


def q_linear_conv(op: Op, *inputs: Value) -> Value:
    """Data, weights and bias are dequantised, and the result of Conv is quantised."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *biases = inputs
    # One scale for each output channel lies along the first axis of the weights.
    axis = 0 if w_scale.need_rank() else None
    weights = op.DequantizeLinear(w, w_scale, w_zero, axis=axis)
    added, bias = None, biases[0] if biases else None
    if bias is not None:
        # The bias has the scale of the products.
        added = op.DequantizeLinear(bias, op.known(x_scale) * op.known(w_scale), None, axis=axis)
    convolved = op.Conv(op.DequantizeLinear(x, x_scale, x_zero), weights, added, **op.attributes)
    return op.QuantizeLinear(convolved, y_scale, y_zero)


def q_linear_mat_mul(op: Op, *inputs: Value) -> Value:
    """Both matrices are dequantised, and their product is quantised."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    if a_scale.need_rank() or y_scale.need_rank():
        op.refuse("the rows of its first matrix have scales of their own", code="no-equal")
    right = op.DequantizeLinear(b, b_scale, b_zero, axis=-1 if b_scale.need_rank() else None)
    return op.QuantizeLinear(op.DequantizeLinear(a, a_scale, a_zero) @ right, y_scale, y_zero)


def mat_mul_integer(op: Op, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """The differences from the zero points, which DequantizeLinear with scales of 1 gives, are multiplied as floats."""
    if a_zero is not None and a_zero.need_rank() and a_zero.shape != (1,):
        op.refuse("the rows of its first matrix have zero points of their own", code="no-equal")
    return (_difference(op, a, a_zero, 0) @ _difference(op, b, b_zero, -1)).cast(_T.INT32)


def conv_integer(op: Op, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None) -> Value:
    """The differences from the zero points, which DequantizeLinear with scales of 1 gives, go through a Conv of floats."""
    convolved = op.Conv(_difference(op, x, x_zero, 0), _difference(op, w, w_zero, 0), **op.attributes)
    return convolved.cast(_T.INT32)


def _difference(op: Op, value: Value, zero: Value | None, axis: int) -> Value:
    shape = () if zero is None else zero.need_static()
    scale = op.constant(np.ones(bounded_dims(shape), np.float32))
    return op.DequantizeLinear(value, scale, zero, axis=axis if shape else None)


def q_gemm(op: Op, *inputs: Value, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Value:
    """Both matrices and C are dequantised, and the result of Gemm is quantised if there is a scale for it."""
    a, a_scale, a_zero, b, b_scale, b_zero, *more = inputs
    c, y_scale, y_zero = [*more, None, None, None][:3]
    # A vector of one element is one scale.
    several = b_scale.need_rank() and b_scale.shape != (1,)
    right = op.DequantizeLinear(b, b_scale, b_zero, axis=(0 if transB else 1) if several else None)
    added = None
    if c is not None:
        scale = op.known(a_scale) * op.known(b_scale) * op.constant(np.float32(alpha))
        added = op.DequantizeLinear(c, scale, None, axis=c.need_rank() - 1 if several else None)
    first_matrix = op.DequantizeLinear(a, a_scale, a_zero)
    product = op.Gemm(first_matrix, right, added, alpha=float(alpha), transA=transA, transB=transB)
    if y_scale is None:
        return product
    return op.QuantizeLinear(product, y_scale, op.constant(0, a) if y_zero is None else y_zero)


_PAIRS = {
    (item.domain, item.operator): item
    for item in (
        unregistered(q_linear_conv, "QLinearConv", 13),
        unregistered(q_linear_mat_mul, "QLinearMatMul", 13),
        unregistered(mat_mul_integer, "MatMulInteger", 13),
        unregistered(conv_integer, "ConvInteger", 13),
        unregistered(q_gemm, "com.microsoft::QGemm", 13),
    )
}

_QUANTIZED = (
    "QLinear",
    "MatMulIntegerToFloat",
    "MatMulNBits",
    "DynamicQuantizeMatMul",
    "QAttention",
    "QEmbedLayerNormalization",
    "GatherBlockQuantized",
)
"""Prefixes of com.microsoft operator names; this pass first replaces these operators by standard ones."""


def _form(domain: str, operator: str) -> Step | None:
    return _PAIRS.get(("" if is_onnx(domain) else domain, operator)) or decomposition_of(domain, operator)


def _unfit(node: onnx.NodeProto, _scope: Scope) -> str | None:
    key = "" if is_onnx(node.domain) else node.domain, node.op_type
    if key in _PAIRS or (node.domain == MICROSOFT and node.op_type.startswith(_QUANTIZED)):
        return f"{node.op_type} is a quantised operator"
    return None


WITH_SCALES = frozenset(("QLinearConv", "QLinearMatMul"))


def write_scales_as_pairs(rw: LoweringRewriter) -> str | None:
    """Write a node whose weights have several scales as pairs, or return why it cannot be written.

    OpenVINO 2026.4 takes these scales for those of another axis, or for one, and refuses the file.
    """
    if rw.shape(rw.input(4)) in ((), (1,)):
        return None
    _write(rw, _PAIRS["", rw.node.op_type])
    return None


MOVING = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def write_out_softmax(rw: LoweringRewriter) -> str | None:
    """Write a Softmax of what DequantizeLinear gives as Exp, ReduceSum and Div; return None.

    tract 0.23.9 makes one node of DequantizeLinear, Softmax and QuantizeLinear, which gives 255 for all elements.
    """
    source = rw.producer(rw.input(0))
    while source is not None and source.op_type in MOVING:
        source = rw.producer(source.input[0])
    form = decomposition_of("", "Softmax")
    if source is not None and source.op_type == "DequantizeLinear" and form is not None:
        _write(rw, form)
    return None


def _write(rw: LoweringRewriter, form: Step) -> None:
    assert form.adapt is not None
    form.adapt(rw.node, rw)
    rw.note(form.reason, form.exactness)


@register_pass
@dataclass(frozen=True)
class QuantizedAsPairs(Pass):
    """Write quantised operators with float ones between DequantizeLinear and QuantizeLinear, at the opset that the model has.

    Results of 8 bits that lie half-way between two steps may fall on the other one. Raises CannotMigrate for a node whose pairs
    need an unknown fact.
    """

    name: ClassVar[str] = "quantized_as_pairs"
    title: ClassVar[str] = "replacing quantised operators by float operators"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    beside: int = 17
    """The ai.onnx opset for a body that imports none."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place; returns another one if functions were inlined."""
        import_onnx(model.proto, frozenset((MICROSOFT,)), self.beside)
        written = decompose_model(model, _unfit, log, self.name, forms=_form, lacking_code="not-standard")
        for refusal in written.refusals:
            raise refusal.error
        return written.model
