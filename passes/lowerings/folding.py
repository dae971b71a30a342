"""Arithmetic that is computed while lowering where its operands are constants, and written as nodes where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import iota

__all__ = ["Array", "Folding", "Operand"]

Array = npt.NDArray[Any]
Operand = str | Array
"""A constant, or the name of a value that is computed at run time."""

_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Abs": np.abs,
    "Less": np.less,
    "Greater": np.greater,
    "Or": np.logical_or,
    "Where": np.where,
}
"""Element-wise operators whose NumPy function computes floats as ONNX Runtime's kernel does, bit for bit."""


class Folding:
    """Writes the arithmetic of one node with `rw`. Floats only: the integer division of NumPy is another one."""

    def __init__(self, rw: LoweringRewriter) -> None:
        self.rw = rw

    def name(self, operand: Operand, hint: str = "constant") -> str:
        """Return the name of an operand, which becomes a constant of the model if it is an array."""
        return operand if isinstance(operand, str) else self.rw.constant(np.ascontiguousarray(operand), hint)

    def __call__(self, operator: str, *operands: Operand, hint: str = "") -> Operand:
        """Return what an element-wise operator makes of the operands."""
        arrays = [operand for operand in operands if not isinstance(operand, str)]
        if len(arrays) == len(operands):
            with np.errstate(all="ignore"):
                return np.asarray(_FUNCTIONS[operator](*arrays))
        return self.node(operator, *operands, hint=hint)

    def node(self, operator: str, *operands: Operand, hint: str = "") -> str:
        """Write an element-wise operator as a node, whatever is known of its operands."""
        names = [self.name(operand, hint or operator.lower()) for operand in operands]
        return self.rw.before(operator, names, hint=hint or operator.lower())

    def cast(self, operand: Operand, dtype: int) -> Operand:
        """Convert to an element type; floats are truncated to integers."""
        if not isinstance(operand, str):
            return operand.astype(helper.tensor_dtype_to_np_dtype(dtype))
        return self.rw.before("Cast", [operand], hint="cast", to=dtype)

    def shaped(self, operand: Operand, behind: int) -> Operand:
        """Add `behind` axes of length 1 behind the one axis of a vector."""
        if not behind:
            return operand
        if not isinstance(operand, str):
            return operand.reshape(-1, *[1] * behind)
        shape = self.rw.constant(np.array([-1, *[1] * behind], np.int64), "shape")
        return self.rw.before("Reshape", [operand, shape], hint="shaped")

    def iota(self, count: Operand) -> Operand:
        """Return 0, 1, … as float32, as many as the one element of the int64 vector `count` says."""
        if not isinstance(count, str):
            return np.arange(int(count.reshape(-1)[0]), dtype=np.float32)
        return self.cast(iota(self.rw, count), TensorProto.FLOAT)
