"""Attributes that a node leaves out because they have a default."""

from __future__ import annotations

from functools import cache

import onnx
from onnx import AttributeProto, defs

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["write_default_attributes"]

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
