"""The values that OpenCV 5 keeps in blocks of channels, and the sums and products that it computes wrongly of them."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["BROADCAST", "narrow_inputs", "write_channels_apart"]

BROADCAST = frozenset(("Add", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum"))

_CONVOLUTIONS = ("Conv", "ConvTranspose")

_KEEPING = frozenset((
    "Abs", "AveragePool", "BatchNormalization", "Ceil", "Celu", "Clip", "Concat", "Elu", "Erf", "Exp", "Floor", "Gelu",
    "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "MaxPool", "Mish", "Neg", "PRelu", "Pad", "Relu", "Resize", "Round",
    "Selu", "Sigmoid", "Sin", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu", "Upsample",
))  # fmt: skip
"""Operators whose result is in blocks if their first input is."""

_FOLLOWED = 64
"""The search for a convolution before a value visits at most this many values. Beyond that, it assumes that there is one: an
unnecessary Identity changes nothing."""


def narrow_inputs(
    node: onnx.NodeProto,
    shape_of: Callable[[str], tuple[int | None, ...] | None],
    maker_of: Callable[[str], onnx.NodeProto | None],
) -> list[int]:
    """Return the places of inputs of one channel that meet one of several, where both may be in blocks of channels.

    OpenCV 5.0 then computes the node block by block, as if all inputs had as many channels. The result has the shape of the
    blocks, or the next node fails. Measured with its wheel, for values of 3, 4 and 5 axes. The result is right after an
    Identity.
    """
    shapes = [shape_of(name) for name in node.input]
    if any(shape is None or len(shape) < 3 for shape in shapes):
        return []
    channels = [shape[1] for shape in shapes if shape is not None]
    wide = [at for at, count in enumerate(channels) if count is not None and count > 1]
    narrow = [at for at, count in enumerate(channels) if count == 1 and wide]
    narrow = [at for at in narrow if _in_blocks(node.input[at], maker_of)]
    return narrow if narrow and any(_in_blocks(node.input[at], maker_of) for at in wide) else []


def _in_blocks(name: str, maker_of: Callable[[str], onnx.NodeProto | None]) -> bool:
    """Return whether a value comes from a convolution by nodes that leave it in blocks."""
    pending, seen = [name], set[str]()
    while pending:
        # The search has a limit, and the answer is the careful one.
        if len(seen) > _FOLLOWED:
            return True
        value = pending.pop()
        node = maker_of(value) if value not in seen else None
        seen.add(value)
        if node is None:
            continue
        if node.op_type in _CONVOLUTIONS:
            return True
        # Either operand may be in blocks.
        if node.op_type in BROADCAST:
            pending += node.input
        elif node.op_type in _KEEPING:
            pending.append(node.input[0])
    return False


def write_channels_apart(rw: LoweringRewriter) -> str | None:
    """Write an Identity after an input of one channel that meets one of several in blocks of channels; return None."""
    for at in narrow_inputs(rw.node, rw.shape, rw.producer):
        rw.set_input(at, rw.before("Identity", [rw.input(at)], hint="channel"))
        rw.note("an Identity stands behind the input of one channel, which is in no block of channels then")
    return None
