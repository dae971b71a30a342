"""Nodes that a search keeps before it gives up, by the kinds of operators that lose most, and products that it lets be narrow."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.standard.schema import RECURRENT
from onnx_migrate.verify.precision.closeness import MATRIX

__all__ = ["largest_products", "sensitive_kinds"]

_SENSITIVE = (
    ("Softmax", "LogSoftmax", "Hardmax"),
    (
        "BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization",
        "RMSNormalization",
    ),
    (
        "CumSum", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum",
        "ReduceSumSquare",
    ),
    ("Div", "Exp", "Log", "Pow", "Reciprocal", "Sqrt"),
    ("GridSample", "Resize", "RoiAlign", "Upsample"),
    ("Cos", "Erf", "Sigmoid", "Sin", "Tanh"),
    ("ConvTranspose",),
    ("AveragePool", "GlobalAveragePool", "LpPool"),
    ("Add", "Sub", "Sum"),
    ("Mul",),
    ("Einsum", "Gemm", "MatMul"),
    ("Conv",),
    tuple(sorted(RECURRENT)),
)  # fmt: skip
"""Kinds of operators that lose accuracy, those that cost least in float32 first."""

_MOST_PRODUCTS = 6
"""Products of which each is tried as the only narrow node."""


def sensitive_kinds(graph: Frame, causes: Collection[str]) -> list[list[Step]]:
    """Return sets of nodes to keep: each kind of operators that the graph has, and then these kinds on top of each other.

    The kind of the node at which the result left the original comes first.
    """
    by_kind = [[step for step in graph.steps if step.is_a(*kind)] for kind in _SENSITIVE]
    kinds = [steps for steps in by_kind if steps]
    kinds.sort(key=lambda steps: not any(step.node.output[0] in causes for step in steps))
    sums = [[step for steps in kinds[: count + 1] for step in steps] for count in range(1, len(kinds))]
    return [*kinds, *sums]


def largest_products(graph: Frame) -> list[Step]:
    """Return the products with the largest weights, the last node first among equals."""
    products = [step for step in graph.steps if step.is_a(*MATRIX, *RECURRENT)]
    return sorted(products, key=lambda step: (_weight(step), step.index), reverse=True)[:_MOST_PRODUCTS]


def _weight(step: Step) -> int:
    return sum(prod(value.tensor.dims) for value in step.read if value.tensor is not None)
