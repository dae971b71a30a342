"""Pools whose window is the whole of what they pool."""

from __future__ import annotations

from onnx_migrate.rewrite.change_log import Exactness

from ..node_context import Place

__all__ = ["pool"]

_GLOBAL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool"}


def pool(place: Place) -> None:
    """Let a window that was the whole picture be the whole of any, if a later node takes no more than one place.

    ONNX Runtime adds up a window and a whole picture in another order, so an average is as near as rounding allows.
    """
    x = place.input(0)
    dims = x.known if x is not None else None
    attributes, node = place.attributes, place.node
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
    if not place.choices.ask(place.label, pattern, 2):
        return
    place.snapshot()
    old = node.op_type
    place.rw.rename(_GLOBAL[old])
    place.rw.drop(*(attribute.name for attribute in list(node.attribute)))
    place.reasons.append(f"a window of {attributes['kernel_shape']}, all there was → all there is")
    if old == "AveragePool":
        place.exactness = Exactness.EQUIVALENT
