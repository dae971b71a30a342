"""Groups of nodes that a search lets be narrow together: cheap nodes by kinds of operators, products along the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from onnx_migrate.facts.typed_graph import Step
from onnx_migrate.standard.retyping import FLOATS
from onnx_migrate.standard.schema import RECURRENT
from onnx_migrate.verify.evaluators.strict import is_exact
from onnx_migrate.verify.precision.closeness import MATRIX
from onnx_migrate.verify.precision.groups import MOST_GROUPS, Group

from .island_steps import islands_of

__all__ = [
    "as_group",
    "computing",
    "groups_by_bytes",
    "groups_by_kind",
    "is_product",
    "parts_of",
    "weight_of",
]

_KINDS = (
    ("Hardmax", "LogSoftmax", "Softmax"),
    (
        "BatchNormalization", "GroupNormalization", "InstanceNormalization", "LRN", "LayerNormalization", "LpNormalization",
        "MeanVarianceNormalization", "RMSNormalization",
    ),
    (
        "CumSum", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum",
        "ReduceSumSquare",
    ),
    ("Div", "Exp", "Log", "Pow", "Reciprocal", "Sqrt"),
    ("Affine", "GridSample", "Resize", "RoiAlign", "Upsample"),
    ("Cos", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "Mish", "Sigmoid", "Sin", "Softplus", "Tanh"),
    ("AveragePool", "GlobalAveragePool", "LpPool"),
    ("Add", "Mean", "Sum"),
    ("Sub",),
    ("Mul",),
)  # fmt: skip
"""Kinds of operators that lose accuracy and cost little in float32."""

_ATTENTION = (
    "Attention",
    "FusedMatMul",
    "MultiHeadAttention",
    "GroupQueryAttention",
    "QAttention",
    "FusedConv",
)


def is_product(step: Step) -> bool:
    """Return whether a node takes most of a model's time."""
    return step.is_a(*MATRIX, *RECURRENT, "Attention") or step.node.op_type in _ATTENTION


def computing(steps: Iterable[Step]) -> list[Step]:
    """Return the nodes, with those inside of them, that compute numbers, and do more than to move them."""
    computing_steps: list[Step] = []
    for step in steps:
        if step.inner:
            for _, frame in step.inner:
                computing_steps += computing(frame.steps)
        elif (
            step.outputs and step.outputs[0] is not None and not (_only_moves(step) or step.is_a("Constant"))
        ):
            computing_steps.append(step)
    return computing_steps


def _only_moves(step: Step) -> bool:
    # A constant is rounded to the type, so a node that moves one changes numbers after all.
    return is_exact(step) and not any(
        value.tensor is not None and value.dtype in FLOATS for value in step.read
    )


def groups_by_kind(steps: Sequence[Step]) -> list[list[Step]]:
    """Return nodes grouped by kind of operator. Products are split along the graph, into as many parts as MOST_GROUPS allows."""
    groups = [[step for step in steps if step.is_a(*kind)] for kind in _KINDS]
    others = [step for step in steps if not is_product(step) and not any(map(step.is_a, sum(_KINDS, ())))]
    groups = [group for group in (*groups, others) if group]
    return [*groups, *_chunks([step for step in steps if is_product(step)], MOST_GROUPS - len(groups))]


def parts_of(groups: Sequence[Sequence[Step]], most: int) -> list[list[Step]]:
    """Return the nodes of groups in up to `most` groups: larger groups are split into more parts along the graph."""
    total = sum(map(len, groups))
    free = most - len(groups)
    parts: list[list[Step]] = []
    for group in groups:
        parts += _chunks(group, 1 + free * len(group) // max(total, 1))
    return parts


def groups_by_bytes(steps: Sequence[Step]) -> list[list[Step]]:
    """Return the nodes that read weights: those with the most alone, the others in parts along the graph."""
    reading = [step for step in steps if weight_of(step)]
    order = sorted(reading, key=lambda step: (-weight_of(step), step.index))
    alone = {*order[: MOST_GROUPS // 2]}
    rest = [step for step in reading if step not in alone]
    return [*([step] for step in reading if step in alone), *_chunks(rest, MOST_GROUPS // 2)]


def as_group(steps: Sequence[Step]) -> Group:
    """Return nodes as a group."""
    return Group(tuple(sorted(islands_of(steps))), sum(map(is_product, steps)))


def weight_of(step: Step) -> int:
    """Return how many numbers the constants hold that a node reads."""
    return sum(prod(value.tensor.dims) for value in step.read if value.tensor is not None)


def _chunks(steps: Sequence[Step], count: int) -> list[list[Step]]:
    length = max(1, -(-len(steps) // max(count, 1)))
    return [list(steps[start : start + length]) for start in range(0, len(steps), length)]
