"""Quantised numbers in int8 with a zero point of 0, for runtimes that support no others.

    q = QuantizeLinear (x, s, 128 of uint8)  y = DequantizeLinear (q, s, 128)
    → q = QuantizeLinear (x, s, 0 of int8)  y = DequantizeLinear (q, s, 0)

Each number becomes 128 less, so that y has the same bits. Another zero point has no such form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.model.graphs import output_names
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["write_int8_zero_point"]

_MIDDLE = 128
"""The zero point of uint8 that int8 has at 0."""

_BYTES = (TensorProto.UINT8, TensorProto.INT8)


def write_int8_zero_point(rw: LoweringRewriter) -> str | None:
    """Give a QuantizeLinear or DequantizeLinear int8 and a zero point of 0; return the obstacle, or None."""
    quantizes = rw.node.op_type == "QuantizeLinear"
    dtype = _quantized_type(rw, quantizes=quantizes)
    if dtype not in _BYTES or not any(map(rw.scope.is_read, rw.node.output)):
        return None
    zero = rw.known(rw.input(2)) if rw.input(2) else np.zeros((), np.uint8)
    if zero is None:
        return f"its zero point {rw.input(2)!r} is computed"
    moved = dtype == TensorProto.INT8 and rw.dtype(rw.input(2)) == TensorProto.UINT8
    if dtype == TensorProto.INT8 and not moved:
        return "its zero point is not 0" if zero.any() else None
    if not (zero == _MIDDLE).all():
        return f"its zero point is {_first(zero)} of uint8, which no int8 with a zero point of 0 stands for"
    obstacle = None
    if not moved:  # the QuantizeLinear in front has not been written so
        obstacle = _write_quantized(rw) if quantizes else _write_data(rw)
    if obstacle is None:
        rw.set_input(2, rw.constant(np.zeros(zero.shape, np.int8), "zero_point"))
        rw.note("its numbers are int8 around 0, which are those of uint8 less 128")
    return obstacle


def _quantized_type(rw: LoweringRewriter, *, quantizes: bool) -> int | None:
    if not quantizes:
        return rw.dtype(rw.input(0))
    if rw.input(2):
        return rw.dtype(rw.input(2))
    return int(rw.get("output_dtype", 0)) or int(TensorProto.UINT8)


def _first(zero: np.ndarray[Any, Any]) -> int:
    return int(zero.reshape(-1)[(zero.reshape(-1) != _MIDDLE).argmax()])


def _write_quantized(rw: LoweringRewriter) -> str | None:
    """Make the output int8; return the reason why its readers would not support that, or None."""
    (name,) = rw.node.output
    if name in output_names(rw.scope.body):
        return f"it gives {name!r}, an output of the model"
    for reader in rw.readers(name):
        if not _reads_the_same(rw, reader):
            return f"{reader.op_type} {reader.name or reader.output[0]!r} reads its uint8"
    rw.scope.record_type(name, ValueType(int(TensorProto.INT8), rw.scope.value_type(name).shape))
    return None


def _reads_the_same(rw: LoweringRewriter, reader: onnx.NodeProto) -> bool:
    if reader.op_type != "DequantizeLinear" or len(reader.input) < 3:
        return False
    zero = rw.known(reader.input[2])
    return zero is not None and bool((zero == _MIDDLE).all())


def _write_data(rw: LoweringRewriter) -> str | None:
    """Let the node read its constant data as int8; return the reason if the data is not constant."""
    source = rw.producer(rw.input(0))
    if source is not None and source.op_type == "QuantizeLinear":
        return f"QuantizeLinear {source.name or source.output[0]!r} gives it uint8"
    data = rw.constant_value(rw.input(0))
    if data is None:
        return f"it reads {rw.input(0)!r}, uint8 that is no constant"
    # A difference of uint8 numbers would wrap around below 0.
    moved = (data.astype(np.int16) - _MIDDLE).astype(np.int8)
    rw.set_input(0, rw.constant(moved, "int8"))
    return None
