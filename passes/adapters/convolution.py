"""Conv, ConvTranspose and DeformConv."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Conv", 11, reason="auto_pad and the defaults of strides and dilations are spelt out")
for _name in ("Conv", "ConvTranspose", "DeformConv"):
    compatible(_name, 22, reason="more types are allowed")


@adapter("ConvTranspose", to=11)
def conv_transpose_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`output_shape` is of the spatial axes alone: batch and channels, if they were written, go.

    Why equal: version 1 left it open, and ONNX Runtime took both (conv_transpose_attributes.h). The words for
    which end takes an odd pad changed too, but for no version in particular (onnx pull request 3440), and
    runtimes followed at all versions.
    """
    attribute = rw.attribute("output_shape")
    if attribute is None or attribute.ref_attr_name or len(attribute.ints) < 3:
        return
    spatial = _spatial_axes(rw)
    if spatial is None:
        rw.refuse(
            f"output_shape has {len(attribute.ints)} numbers, and the number of spatial axes is not known",
            code="needs-rank",
            hint="declare the shape of its input or weights",
        )
    if len(attribute.ints) == spatial + 2:
        rw.set("output_shape", list(attribute.ints[2:]))


def _spatial_axes(rw: Rewriter) -> int | None:
    for value in (rw.input(1), rw.input(0)):
        rank = rw.rank(value)
        if rank is not None:
            return rank - 2
    for name in ("kernel_shape", "strides", "dilations", "output_padding"):
        attribute = rw.attribute(name)
        if attribute is not None and not attribute.ref_attr_name:
            return len(attribute.ints)
    return None
