"""Erf: integers are no longer allowed."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.registry import adapter
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

_INTEGERS = frozenset(
    getattr(TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
)


@adapter("Erf", to=13)
def erf_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Integers are no longer allowed; integer data goes through float32 and back.

    What changes: nothing for float16, float and double. The function of an integer is computed in float32 and
    cut to an integer, so it is 1, 0 or -1.

    Why equal: onnx.reference computes Erf-9 so. ONNX Runtime never had the operator for integers.

    Limits: where the element type is not known it is taken to be a float. Another runtime may have computed
    the function of an integer in another precision and cut it elsewhere: the form is equivalent, not exact.
    """
    dtype = rw.dtype(node.input[0])
    if dtype not in _INTEGERS:
        return
    name = node.output[0]
    node.input[0] = rw.before("Cast", [node.input[0]], hint="float", to=TensorProto.FLOAT)
    rw.after("Cast", [rw.detach_output(0)], [name], to=dtype)
    rw.note("Erf takes floats only: integers go through float32 and back", Exactness.EQUIVALENT)
