"""The attribute `kernel_shape` of convolutions, which may be left out and then follows from the weights."""

from __future__ import annotations

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["OPERATORS_WITH_KERNELS", "write_kernel_shape"]

OPERATORS_WITH_KERNELS = {"Conv": 1, "ConvTranspose": 1, "ConvInteger": 1, "DeformConv": 1, "QLinearConv": 3}
"""The input that holds the weights. Pools must have the attribute by their schemas."""


def write_kernel_shape(rw: LoweringRewriter) -> str | None:
    """Write `kernel_shape`; return what prevents it, None where it is there now.

    An importer that reads it without asking fails, so what cannot be written must be refused.
    """
    if rw.attribute("kernel_shape") is not None:
        return None
    weights = rw.input(OPERATORS_WITH_KERNELS[rw.node.op_type])
    shape = rw.shape(weights)
    if shape is None or len(shape) < 3 or any(size is None for size in shape[2:]):
        return f"its kernel_shape cannot be written, as the shape of its weights {weights!r} is not known"
    rw.set("kernel_shape", [size or 0 for size in shape[2:]])
    rw.note("kernel_shape is written")
    return None
