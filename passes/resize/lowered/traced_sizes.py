"""Which elements of the sizes of a Resize are lengths of its own input, whatever they are at run time."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.spec.schema import is_onnx

__all__ = ["Length", "trace"]

Length = tuple[str, int]
"""The length of a value along an axis."""

_DEPTH = 32
_SAME = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


def trace(rw: LoweringRewriter, value: str, depth: int = _DEPTH) -> list[Length | None] | None:
    """Return of each element of a vector (or scalar) of lengths whose length it is, None for an element of other origin.

    Follows Shape, Slice, Gather and Concat, as exporters write them. None if the count of elements is not known.
    """
    node = rw.producer(value) if depth else None
    if node is None or not is_onnx(node.domain) or any(item.ref_attr_name for item in node.attribute):
        return _untraced(rw, value)
    ints = {item.name: list(item.ints) or [item.i] for item in node.attribute}
    if node.op_type == "Shape":
        rank = rw.rank(node.input[0])
        if rank is None:
            return None
        cut = slice(ints.get("start", [0])[0], ints["end"][0] if "end" in ints else None)
        lengths: list[Length | None] = [(node.input[0], axis) for axis in range(rank)]
        return lengths[cut]
    if node.op_type in _SAME:
        return trace(rw, node.input[0], depth - 1)
    if node.op_type == "Concat":
        parts = [trace(rw, name, depth - 1) for name in node.input]
        if any(part is None for part in parts):
            return None
        return [item for part in parts if part is not None for item in part]
    inner = trace(rw, node.input[0], depth - 1) if node.op_type in ("Slice", "Gather") else None
    if inner is None:
        return _untraced(rw, value)
    if node.op_type == "Gather":
        places = _constants(rw, node.input[1])
        if places is None or any(not -len(inner) <= place < len(inner) for place in places):
            return None
        return [inner[place] for place in places]
    bounds = [
        ints[name] if name in ints else _constants(rw, node.input[index]) if index < len(node.input) else [1]
        for name, index in (("starts", 1), ("ends", 2), ("steps", 4))
    ]
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end, step = (bound[0] for bound in bounds if bound is not None)
    return inner[start:end] if step == 1 else None


def _untraced(rw: LoweringRewriter, value: str) -> list[Length | None] | None:
    shape = rw.shape(value)
    if shape is None or len(shape) > 1:
        found = rw.partly_known(value)
        return None if found is None else [None] * len(found)
    count = shape[0] if shape else 1
    return None if count is None else [None] * count


def _constants(rw: LoweringRewriter, value: str) -> Sequence[int] | None:
    found = rw.known(value)
    return None if found is None else [int(item) for item in found.reshape(-1)]
