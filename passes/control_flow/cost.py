"""The number of multiplications of a node, so that reports and limits know the cost of iterations and branches."""

from __future__ import annotations

import math

import onnx

from onnx_migrate.rewrite.node_view import NodeView

__all__ = ["MOVES", "multiplications"]

MOVES = frozenset(
    {
        "Cast", "CastLike", "Concat", "Constant", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements",
        "Identity", "Pad", "Reshape", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose",
        "Trilu", "Unsqueeze", "Where",
    }
)  # fmt: skip
"""Operators that move values or ask for sizes, and compute nothing."""


def multiplications(node: onnx.NodeProto, view: NodeView) -> int:
    """Return the multiplications of a node: those of sums of products, and of any other operator one for each result.

    Dims that are not known count as 1.
    """
    # Moving elements multiplies nothing.
    if node.op_type in MOVES:
        return 0
    results = math.prod(_dims(view, node.output[0])) if node.output else 0
    shapes = [_dims(view, name) for name in node.input]
    if node.op_type in ("MatMul", "MatMulInteger") and shapes[0]:
        return results * shapes[0][-1]
    if node.op_type == "Gemm" and len(shapes[0]) == 2:
        # The inner axis of the product is the second one, or the first one if transposed.
        turned = any(attribute.name == "transA" and attribute.i for attribute in node.attribute)
        return results * shapes[0][0 if turned else 1]
    if node.op_type in ("Conv", "ConvInteger"):
        return results * math.prod(shapes[1][1:])
    if node.op_type == "ConvTranspose":
        return math.prod(shapes[0]) * math.prod(shapes[1][1:])
    if node.op_type in ("LSTM", "GRU", "RNN") and len(shapes) > 2:
        return math.prod(shapes[0][:2]) * (math.prod(shapes[1]) + math.prod(shapes[2]))
    return results


def _dims(view: NodeView, name: str) -> tuple[int, ...]:
    return tuple(size or 1 for size in view.shape(name) or ()) if name else ()
