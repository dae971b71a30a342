"""The lengths of the parts of a Split, which may be left out where the parts are equal."""

from __future__ import annotations

import numpy as np

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["write_split_lengths"]


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
