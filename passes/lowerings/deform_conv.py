"""DeformConv: below opset 19 its elements are sampled by Gathers, for a Conv of one place."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, size_of, unsqueeze
from .folding import Folding, Operand
from .grid_taps import Axis, Sampler, channel_rows, length_of


@lowering("DeformConv", leaves=19, exactness=Exactness.EQUIVALENT)
def deform_conv_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """DeformConv becomes Gathers of the elements around each place that it convolves, and a Conv with a kernel of 1 by 1.

    What changes: the places of the kernel plus their offsets are the coordinates at which all channels are sampled, linearly
    and with zeros outside; the samples, by the mask, are the channels of a Conv whose weights are the kernel's.

    Why equal: this is the operator's definition (onnx/defs/nn/defs.cc). 1e-6 of elements up to 4 measured.

    Limits: two spatial axes, and weights of a known shape.
    """
    source, weights = rw.input(0), rw.input(1)
    shape = rw.need_static(weights)
    if len(shape) != 4:
        rw.refuse(
            f"DeformConv does not exist below opset 19, and it is written otherwise with 2 spatial axes, not {len(shape) - 2}",
            code="no-equal",
        )
    group, groups = int(rw.get("group", 1)), int(rw.get("offset_group", 1))
    channels, kernel = shape[1] * group, list(shape[2:])
    count = kernel[0] * kernel[1]
    dtype = rw.need_dtype(source)
    real = TensorProto.DOUBLE if dtype == TensorProto.DOUBLE else TensorProto.FLOAT
    f = Folding(rw)
    lengths = [length_of(rw, source, axis) for axis in (2, 3)]
    offsets = rw.input(2)
    sizes = [f.name(length_of(rw, offsets, axis), "size") for axis in (2, 3)]

    image = cast(rw, source, real)
    if groups > 1:
        apart = [integers(rw, -1, channels // groups), *(f.name(length, "length") for length in lengths)]
        image = rw.before(
            "Reshape", [image, rw.before("Concat", apart, hint="apart", axis=0)], hint="offset_groups"
        )
    rows = channel_rows(rw, image, 4, integers(rw, channels // groups))
    sampler = Sampler(rw, real, rows, rank=5)
    split = rw.before("Concat", [integers(rw, -1, count, 2), *sizes], hint="split", axis=0)
    moved = rw.before("Reshape", [cast(rw, offsets, real), split], hint="offsets")
    for axis in (0, 1):
        number = rw.constant(np.array(axis, np.int64), "axis")
        offset = rw.before("Gather", [moved, number], hint="offset", axis=2)
        at = rw.before("Add", [offset, _regular(rw, f, axis, kernel, sizes[axis], real)], hint="at")
        real_length = f.cast(lengths[axis], real)
        last = f("Sub", real_length, sampler.number(1))
        sampler.axes.append(Axis(unsqueeze(rw, at, [4]), last, None if axis else lengths[1]))
    if groups > 1 or (rw.shape(source) or (None,))[0] != 1:
        images = size_of(rw, image, 0) if groups > 1 else size_of(rw, source, 0)
        sampler.set_images(images, f("Mul", lengths[0], lengths[1]))
    samples = sampler.linear()
    if rw.input(4):
        parts = rw.before("Concat", [integers(rw, -1, count), *sizes, integers(rw, 1)], hint="split", axis=0)
        mask = rw.before("Reshape", [cast(rw, rw.input(4), real), parts], hint="mask")
        samples = rw.before("Mul", [samples, mask], hint="masked")
    samples = rw.before("Transpose", [samples], hint="samples", perm=[0, 4, 1, 2, 3])
    whole = rw.before("Concat", [integers(rw, -1, channels * count), *sizes], hint="whole", axis=0)
    samples = rw.before("Reshape", [samples, whole], hint="samples")
    flat = rw.before(
        "Reshape", [cast(rw, weights, real), integers(rw, 0, shape[1] * count, 1, 1)], hint="weights"
    )
    bias = [cast(rw, rw.input(3), real)] if rw.input(3) else []
    result = rw.before("Conv", [samples, flat, *bias], hint="convolved", group=group, kernel_shape=[1, 1])
    if dtype != real:
        rw.before("Cast", [result], hint="narrow", to=dtype)
    rw.preceding[-1].output[0] = rw.output(0)
    rw.remove()
    rw.note("its places are sampled by Gathers, and convolved by a kernel of 1 by 1")


def _regular(rw: LoweringRewriter, f: Folding, axis: int, kernel: list[int], size: str, real: int) -> str:
    """Return where each element of the kernel lies, without offsets, for each place of the output along an axis."""
    stride = list(rw.get("strides", [1, 1]))[axis]
    dilation = list(rw.get("dilations", [1, 1]))[axis]
    pad = list(rw.get("pads", [0, 0, 0, 0]))[axis]
    within = np.indices(kernel)[axis].reshape(-1) * dilation - pad
    inner: Operand = within.reshape(-1, 1, 1).astype(np.float32)
    known = rw.known(size)
    places = f.iota(size if known is None else known)
    steps = f.shaped(f("Mul", places, np.array([stride], np.float32)), 1 - axis)
    return f.name(f.cast(f("Add", steps, inner), real), "regular")
