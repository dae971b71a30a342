"""The number of operations in one run of a node: multiplications of matrices and windows, pairs of boxes and the like."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from onnx_migrate.facts.running_cost.node_reading import Node
from onnx_migrate.facts.running_cost.spatial_dims import window_count
from onnx_migrate.facts.running_cost.value_estimate import Dims
from onnx_migrate.standard.einsum import ELLIPSIS, Equation, NotAnEquation, parsed

__all__ = ["einsum_dims", "operations"]

_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def operations(node: Node, output: Dims | None) -> int:
    """Return the least number of operations of a node; 0 if not known. `output` has the sizes of its first output."""
    rule = _RULES.get(node.operator)
    if rule is None:
        return 0
    try:
        return rule(node, output)
    except (IndexError, KeyError, TypeError, ValueError):
        return 0  # of a node that is not valid


def _matrix_product(node: Node, output: Dims | None) -> int:
    first_dims = node.dims()
    return prod(output) * first_dims[-1] if output is not None and first_dims else 0


def _gemm(node: Node, output: Dims | None) -> int:
    first_dims = node.dims()
    if output is None or first_dims is None:
        return 0
    return prod(output) * first_dims[0 if node.number("transA", 0) else 1]


def _convolution(node: Node, output: Dims | None) -> int:
    weights = node.dims(3 if node.operator == "QLinearConv" else 1)
    return prod(output) * prod(weights[1:]) if output is not None and weights is not None else 0


def _transposed_convolution(node: Node, output: Dims | None) -> int:
    dims, weights = node.dims(), node.dims(1)
    return prod(dims) * prod(weights[1:]) if dims is not None and weights is not None else 0


def _pooling(node: Node, output: Dims | None) -> int:
    windows = window_count(node, None)
    return prod(output) * prod(length for _, length in windows) if output is not None and windows else 0


def _recurrent(node: Node, output: Dims | None) -> int:
    dims, weights = node.dims(), node.dims(1)
    if dims is None or weights is None:
        return 0
    hidden = weights[1] // _GATES[node.operator]
    return dims[0] * dims[1] * weights[0] * weights[1] * (weights[2] + hidden)


def _pairs_of_boxes(node: Node, output: Dims | None) -> int:
    boxes = node.dims()
    return boxes[0] * boxes[1] if boxes is not None else 0


def _attention(node: Node, output: Dims | None) -> int:
    query, key = node.dims(0), node.dims(1)
    return 2 * prod(query) * key[-2] if query is not None and key is not None else 0


def _einsum(node: Node, output: Dims | None) -> int:
    contraction = _contracted(node)
    return contraction[1] if contraction is not None else 0


def einsum_dims(node: Node) -> Dims | None:
    """Return the sizes of the result of an Einsum without an ellipsis; None if they are not known."""
    contraction = _contracted(node)
    return contraction[0] if contraction is not None else None


def _contracted(node: Node) -> tuple[Dims, int] | None:
    """Return the sizes of the result and the multiplications, operands being multiplied in their order, two at a time.

    ONNX Runtime does so, and first sums over each label that one operand alone has.
    """
    text = node.attributes.get("equation", b"")
    # The node is not valid, so it has no cost.
    if text.partition(b"->")[0].count(b",") + 1 != len(node.inputs):
        return None
    try:
        equation = parsed(text.decode())
    except (UnicodeDecodeError, NotAnEquation):
        return None
    sizes = _sizes(node, equation)
    if sizes is None:
        return None
    needed = _needed_later(equation)
    multiplications, current = 0, set(equation.operands[0])
    for labels, later in zip(equation.operands[1:], needed[1:], strict=True):
        own = set(labels)
        pair = (current & (own | later)) | (own & (current | later))
        multiplications += prod(sizes[label] for label in pair)
        current = pair & later
    return tuple(sizes[label] for label in equation.result), multiplications


def _needed_later(equation: Equation) -> list[set[str]]:
    """Return for each operand the labels that the result or a later operand has."""
    labels, needed = set(equation.result), []
    for operand in reversed(equation.operands):
        needed.append(labels)
        labels = labels | set(operand)
    return needed[::-1]


def _sizes(node: Node, equation: Equation) -> dict[str, int] | None:
    sizes: dict[str, int] = {}
    for index, labels in enumerate(equation.operands):
        dims = node.dims(index)
        if dims is None or ELLIPSIS in labels or len(dims) != len(labels):
            return None
        for label, size in zip(labels, dims, strict=True):
            # A size of 1 is broadcast to the size of the same label elsewhere.
            sizes[label] = max(size, sizes.get(label, 1))
    return sizes


_RULES: dict[str, Callable[[Node, Dims | None], int]] = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _matrix_product),
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv"), _convolution),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pooling),
    **dict.fromkeys(_GATES, _recurrent),
    "Attention": _attention,
    "ConvTranspose": _transposed_convolution,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "NonMaxSuppression": _pairs_of_boxes,
}
