"""The order of the products and factors in a GELU that is computed with Erf."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["halve_gelu_first", "halve_gelu_last", "source_of_erf"]


def halve_gelu_last(rw: LoweringRewriter) -> str | None:
    """Write x * (0.5 * (1 + erf(x / s))) of float32 as (x * (1 + erf(x / s))) * 0.5; the node is the outer Mul. Return None.

    PyTorch's exporter with torch.export writes the first form, the exporter with TorchScript the second. OpenCV recognises the
    second form as a GELU. OpenCV 4.9 to 5.0 treat the first form as the second and crash. OpenCV 4.8 also crashes if x is the
    second factor. Measured with their wheels, which run the second form. Products with 0.5 are exact, except below the least
    normal number; an x beyond half of the largest overflows.
    """
    for index, name in enumerate(rw.node.input):
        x = rw.input(1 - index)
        half, shifted = _halved(rw, name)
        if half and rw.dtype(x) == TensorProto.FLOAT and source_of_erf(rw, rw.producer(shifted)) == x:
            rw.node.input[:] = [rw.before("Mul", [x, shifted], hint="doubled"), half]
            rw.note("0.5 is the last factor of GELU", Exactness.EQUIVALENT)
            break
    return None


def halve_gelu_first(rw: LoweringRewriter) -> str | None:
    """Write (x * (1 + erf(x / s))) * 0.5 with 0.5 as the first factor; return None.

    MNN 3.6 fuses the product in the other order to a GELU by tanh, off by 4.7e-4, and computes this one to 2.4e-7.
    """
    product = rw.producer(rw.input(0))
    if product is None or product.op_type != "Mul" or not _is_half(rw, rw.input(1)):
        return None
    if any(_erf_in(rw, rw.producer(name)) is not None for name in product.input):
        rw.node.input[:] = [rw.input(1), rw.input(0)]
        rw.note("0.5 is the first factor of GELU")
    return None


def _halved(rw: LoweringRewriter, value: str) -> tuple[str, str]:
    """Return 0.5 and the other factor of a value that is their product; twice "" for another."""
    node = rw.producer(value)
    if node is not None and node.op_type == "Mul":
        for index, name in enumerate(node.input):
            if _is_half(rw, name):
                return name, node.input[1 - index]
    return "", ""


def _is_half(rw: LoweringRewriter, value: str) -> bool:
    number = rw.known(value)
    return number is not None and number.size == 1 and bool(np.all(number == 0.5))


def source_of_erf(rw: LoweringRewriter, added: onnx.NodeProto | None) -> str:
    """Return x of a sum with erf(x / s), "" for another node."""
    erf = _erf_in(rw, added)
    quotient = rw.producer(erf.input[0]) if erf is not None else None
    return quotient.input[0] if quotient is not None and quotient.op_type == "Div" else ""


def _erf_in(rw: LoweringRewriter, added: onnx.NodeProto | None) -> onnx.NodeProto | None:
    """Return the Erf in a sum, None for another node."""
    if added is None or added.op_type != "Add":
        return None
    terms = (rw.producer(name) for name in added.input)
    return next((term for term in terms if term is not None and term.op_type == "Erf"), None)
