"""Conv, ConvTranspose and DeformConv."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.plural import count_of
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Conv", 11, reason="auto_pad and the defaults of strides and dilations are specified")
for _name in ("Conv", "ConvTranspose", "DeformConv"):
    compatible(_name, 22, reason="more types are allowed")


@adapter("ConvTranspose", to=11)
def conv_transpose_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Batch and channels are removed from `output_shape`, which from opset 11 on has spatial axes only.

    Why equal: version 1 leaves open which axes it has, and ONNX Runtime accepts both forms
    (conv_transpose_attributes.h). The text about which end gets an odd pad changed too, but for all versions alike
    (onnx pull request 3440), and so did the runtimes.
    """
    attribute = rw.attribute("output_shape")
    if attribute is None or attribute.ref_attr_name or len(attribute.ints) < 3:
        return
    spatial = _spatial_axes(rw)
    if spatial is None:
        rw.refuse(
            f"output_shape has {count_of(len(attribute.ints), 'element')}, but the number of spatial axes is unknown",
            code="needs-rank",
            hint="declare the shape of the node's input or weights",
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
