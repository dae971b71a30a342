"""Writes what importers want to find in a node: attributes and lengths that may be left out, and constant scales."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
from onnx import AttributeProto, defs

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = [
    "OPERATORS_WITH_KERNELS",
    "OPERATORS_WITH_SCALES",
    "read_scales_from_constants",
    "write_default_attributes",
    "write_kernel_shape",
    "write_split_lengths",
]

_WINDOWS = frozenset(
    ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "AveragePool", "MaxPool", "LpPool", "MaxUnpool")
)
"""Operators whose strides, dilations and pads are 1, 1 and 0 on each axis where they are left out."""


def write_default_attributes(rw: LoweringRewriter) -> str | None:
    """Write the attributes that have a default in the schema, and strides, dilations and pads of windows; return None.

    An attribute whose absence has a meaning of its own has no default there, and stays out.
    """
    node = rw.node
    given = {attribute.name for attribute in node.attribute}
    missing = [item for item in _defaults(node.op_type, rw.version) if item.name not in given]
    node.attribute.extend(missing)
    names = [item.name for item in missing]
    if node.op_type in _WINDOWS:
        names += _write_window(rw, given)
    if names:
        rw.note(f"defaults are written: {', '.join(sorted(names))}")
    return None


@cache
def _defaults(operator: str, opset: int) -> tuple[AttributeProto, ...]:
    try:
        schema = defs.get_schema(operator, opset)
    except defs.SchemaError:
        return ()
    found = (schema.attributes[name].default_value for name in sorted(schema.attributes))
    return tuple(item for item in found if item.name and item.type != AttributeProto.UNDEFINED)


def _write_window(rw: LoweringRewriter, given: set[str]) -> list[str]:
    """Write strides, dilations and pads where the kernel is known; return the names of those that were written."""
    kernel = rw.get("kernel_shape")
    if kernel is None:
        return []
    axes, written = len(kernel), []
    schema = defs.get_schema(rw.node.op_type, rw.version)
    padded = "pads" in given or "output_shape" in given or "output_padding" in given
    if _auto_pad(rw.node) not in ("", "NOTSET"):
        padded = True
    for name, value in (("strides", [1] * axes), ("dilations", [1] * axes), ("pads", [0] * 2 * axes)):
        if name in schema.attributes and name not in given and not (name == "pads" and padded):
            rw.set(name, value)
            written.append(name)
    return written


def _auto_pad(node: onnx.NodeProto) -> str:
    return next((item.s.decode("utf-8", "replace") for item in node.attribute if item.name == "auto_pad"), "")


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


def write_split_lengths(rw: LoweringRewriter) -> str | None:
    """Write the lengths of a Split; return what prevents it, None where they are there now.

    Importers that want this divide the axis evenly otherwise, as the operator does, so that what cannot be written is
    warned of, not refused.
    """
    if rw.attribute("split") is not None or (rw.version >= 13 and rw.input(1)):
        return None
    axis = int(rw.get("axis", 0))
    shape = rw.shape(rw.input(0))
    if shape is None or not -len(shape) <= axis < len(shape) or shape[axis] is None:
        return f"its lengths cannot be written, as the length of axis {axis} of {rw.input(0)!r} is not known"
    count, length = len(rw.node.output), shape[axis] or 0
    each = -(-length // count)
    lengths = [max(min(each, length - each * number), 0) for number in range(count)]
    if rw.version >= 13:
        rw.drop("num_outputs")
        rw.set_input(1, rw.constant(np.array(lengths, np.int64), "lengths"))
    else:
        rw.set("split", lengths)
    rw.note("the lengths of its parts are written")
    return None


OPERATORS_WITH_SCALES = frozenset(("Resize", "Upsample"))


def read_scales_from_constants(rw: LoweringRewriter) -> str | None:
    """Let the node read its scales and sizes from initializers; return what prevents it, None where it does now.

    An importer that wants this fails where they are computed, so what is not known must be refused. In a function, which
    has no initializers, they are Constant nodes.
    """
    first = 2 if rw.node.op_type == "Resize" and rw.version >= 11 else 1
    for index, what in ((first, "scales"), (first + 1, "sizes")):
        value = rw.input(index)
        if not value or (first == 1 and index > first):
            continue
        if isinstance(rw.scope.constant_source(value), onnx.TensorProto) and not _is_computed(rw, value):
            continue
        known = rw.known(value)
        if known is None:
            return f"its {what} ({value!r}) are computed at run time"
        constant = rw.constant(known, what)
        if constant != value:
            rw.set_input(index, constant)
            rw.note(f"its {what} are a constant of the model")
    return None


def _is_computed(rw: LoweringRewriter, value: str) -> bool:
    """Return whether a node produces a value: an Identity, through which an initializer is found too."""
    return rw.producer(value) is not None
