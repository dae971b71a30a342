"""Erf: integers are not allowed from opset 13 on."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

_INTEGERS = frozenset(
    getattr(TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
)


@adapter("Erf", to=13)
def erf_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Integer data is cast to float32 and the result back, since from opset 13 on Erf takes floats only.

    What changes: nothing for float16, float and double. The function of an integer is computed in float32 and truncated
    to an integer, so it is 1, 0 or -1.

    Why equal: onnx.reference computes Erf-9 in this way. ONNX Runtime never supported integers.

    Limits: an unknown element type is assumed to be a float. Another runtime may have computed the function of an
    integer in another precision and rounded it otherwise: equivalent, not exact.
    """
    dtype = rw.dtype(node.input[0])
    if dtype not in _INTEGERS:
        return
    name = node.output[0]
    node.input[0] = rw.before("Cast", [node.input[0]], hint="float", to=TensorProto.FLOAT)
    rw.after("Cast", [rw.detach_output(0)], [name], to=dtype)
    rw.note(
        "integers are cast to float32 and the result back, since Erf-13 takes floats only",
        Exactness.EQUIVALENT,
    )
