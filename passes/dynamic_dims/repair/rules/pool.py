"""Repair rule of pools whose window is the whole image."""

from __future__ import annotations

from onnx_migrate.rewrite.change_log import Exactness

from ..node_context import NodeContext

__all__ = ["pool"]

_GLOBAL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool"}


def pool(context: NodeContext) -> None:
    """Make a pool over the whole image a global pool, if a later node is in conflict with an output of varying size.

    An average is then equal up to rounding: ONNX Runtime's GlobalAveragePool adds up the elements in another order.
    """
    x = context.input(0)
    dims = x.known if x is not None else None
    attributes, node = context.attributes, context.node
    if dims is None or len([name for name in node.output if name]) != 1:
        return
    pads = attributes.get("pads") or [0] * (2 * len(dims[2:]))
    around = [dim.frozen + sum(pads[axis :: len(dims) - 2]) for axis, dim in enumerate(dims[2:])]
    plain = set(attributes.get("dilations", [1])) == {1}
    if any(pads) and attributes.get("count_include_pad"):
        return
    if attributes.get("kernel_shape") != around or not plain or not any(dim.varies for dim in dims[2:]):
        return
    if attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return
    pattern = (node.op_type, tuple(dim.sizes for dim in dims))
    if not context.hypotheses.choose(context.label, pattern, 2):
        return
    old = node.op_type
    context.rw.rename(_GLOBAL[old])
    context.rw.drop(*(attribute.name for attribute in list(node.attribute)))
    context.rw.note(
        f"a window of {attributes['kernel_shape']}, the whole image → a global pool, for images of any size"
    )
    if old == "AveragePool":
        context.rw.exactness = Exactness.EQUIVALENT
