"""If: the branch of a known condition, or both branches and a choice between their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.advice import FIX_DIMS, Advice
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.standard.schema import is_onnx

from .cost import MOVES, multiplications
from .evaluate import RANDOM, BranchFails, Env, Evaluator, Held, OptionalOf, SequenceOf, handles
from .guards import INDEXED, guard, indexed_sizes

_TOTAL = MOVES | frozenset(
    {
        "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "AveragePool",
        "BatchNormalization", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil", "Celu", "Clip", "ConstantOfShape",
        "Conv", "ConvInteger", "ConvTranspose", "Cos", "Cosh", "CumSum", "DequantizeLinear", "DynamicQuantizeLinear", "Einsum",
        "Elu", "Equal", "Erf", "Exp", "EyeLike", "Floor", "GRU", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "Greater",
        "GreaterOrEqual", "GroupNormalization", "HardSigmoid", "HardSwish", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
        "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "MatMul",
        "MatMulInteger", "Max", "MaxPool", "Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "QLinearConv",
        "QLinearMatMul", "QuantizeLinear", "RMSNormalization", "RNN", "Range", "Reciprocal", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
        "ReduceSumSquare", "Relu", "Resize", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus",
        "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
    }
)  # fmt: skip
"""Operators that give a result for all values of tensors, once the shapes fit, as they do where those of outputs are known."""

_OF_FLOATS = frozenset(("Div", "Mod"))
"""Operators that fail for a 0 among integers."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)


_OPEN = (
    FIX_DIMS,
    Advice(
        "sizes behind NonZero or NonMaxSuppression depend on data and stay open: leave that part to your program, with --split"
    ),
)
_GUARD = "let the model give it values for which it is defined: by a Clip around an index, or a Where around a divisor"


@handles("If")
def branch(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Take the branch of a known condition; for an unknown one compute both branches, and choose."""
    graphs = {attribute: graph for attribute, _, graph in subgraphs(node)}
    # The nodes that are written from here on belong to this node.
    condition, start = at.number(env, node.input[0]), len(at.rw.preceding)
    if condition is not None:
        branch_name = "then_branch" if condition else "else_branch"
        with at.inside(node, branch_name):
            results = at.body(graphs[branch_name], env.new_child())
        at.expanded(f"its condition is always {bool(condition)}: {branch_name} takes its place", start)
        return results
    outputs_by_branch, written = {}, {}
    for name in ("then_branch", "else_branch"):
        first = len(at.rw.preceding)
        outputs_by_branch[name] = _attempt(at, node, name, graphs[name], env)
        written[name] = at.rw.preceding[first:]
    failing = {
        name: branch_outputs
        for name, branch_outputs in outputs_by_branch.items()
        if isinstance(branch_outputs, BranchFails)
    }
    if failing:
        return _other(at, outputs_by_branch, failing, start)
    for name, nodes in written.items():
        _check_defined(at, nodes, name)
    extra = _extra(at, at.rw.preceding[start:])
    chosen = at.tensor(env, node.input[0])
    if at.rw.shape(chosen) != ():
        # A scalar condition works with values of any shape.
        chosen = at.name_of(at.op.Reshape(at.value(chosen), np.zeros(0, np.int64)))
    results = [
        _choice(at, chosen, then_value, other)
        for then_value, other in zip(*outputs_by_branch.values(), strict=True)
    ]
    at.expanded(
        f"its condition is of values: both branches are computed, {extra:,} multiplications, and Where chooses",
        start,
    )
    return results


def _attempt(
    at: Evaluator, node: onnx.NodeProto, name: str, graph: onnx.GraphProto, env: Env
) -> list[Held] | BranchFails:
    """Write a branch that the model may not take, and return its outputs. A branch that fails leaves nothing behind."""
    nodes, expansions, outer = len(at.rw.preceding), len(at.expansions), at.guard
    # The branch may run with values for which it is not defined.
    at.guard = partial(guard, at)
    try:
        with at.inside(node, name):
            return at.body(graph, env.new_child())
    except BranchFails as error:
        # The nodes so far have no reader.
        del at.rw.preceding[nodes:], at.expansions[expansions:]
        return error
    finally:
        at.guard = outer


def _other(
    at: Evaluator, given: dict[str, list[Held] | BranchFails], failing: dict[str, BranchFails], start: int
) -> list[Held]:
    """Return the outputs of the branch that does not fail."""
    working = next(
        (branch_outputs for branch_outputs in given.values() if not isinstance(branch_outputs, BranchFails)),
        None,
    )
    name, error = next(iter(failing.items()))
    # The caller may remove the whole outer branch.
    if working is None and at.guard is not None:
        raise error
    if working is None:
        at.refuse(f"its condition is computed at run time, and both branches fail at these sizes: {error}")
    at.expanded(
        f"its condition is of values, and {name} fails at these sizes for all of them, as {error}: the other takes its place",
        start,
    )
    return working


def _choice(at: Evaluator, condition: str, one: Held, other: Held) -> Held:
    """Return a value of the first branch where a condition holds, else that of the second."""
    # Both branches give one value.
    if one == other:
        return one
    if (
        isinstance(one, SequenceOf)
        and isinstance(other, SequenceOf)
        and len(one.elements) == len(other.elements)
    ):
        pairs = zip(one.elements, other.elements, strict=True)
        return SequenceOf(tuple(_choice(at, condition, *pair) for pair in pairs))
    if isinstance(one, OptionalOf) and isinstance(other, OptionalOf) and one.element and other.element:
        return OptionalOf(_choice(at, condition, one.element, other.element))
    if not isinstance(one, str) or not isinstance(other, str):
        at.refuse(
            "its branches give sequences of different lengths, or an optional that only one of them fills",
            code="sequences",
        )
    shapes = at.static(one), at.static(other)
    # With different shapes, the operator Where would broadcast one value.
    if None in shapes or shapes[0] != shapes[1]:
        texts = [
            str(list(shape)) if shape is not None else "of unknown dims"
            for shape in map(at.rw.shape, (one, other))
        ]
        at.refuse(
            f"its condition is computed at run time, and a value is {texts[0]} in one branch and {texts[1]} in the other",
            hint=_OPEN
            if None in shapes
            else "fix the input that it follows from with --fix-value, if one branch is wanted",
        )
    return at.name_of(at.op.select(at.value(condition), at.value(one), at.value(other)))


def _extra(at: Evaluator, nodes: Sequence[onnx.NodeProto]) -> int:
    """Return the multiplications of both branches; refuse more than the bound."""
    extra = sum(multiplications(node, at.rw) for node in nodes)
    if extra > at.bounds.extra:
        at.refuse(
            f"its condition is computed at run time, and both branches take {extra:,} multiplications, more than"
            f" {at.bounds.extra:,}",
            code="unroll-limit",
            hint="raise --branch-limit, if both may be computed each time",
        )
    return extra


def _check_defined(at: Evaluator, nodes: Sequence[onnx.NodeProto], name: str) -> None:
    """Refuse a branch that draws random numbers, or that may fail when the model does not take it."""
    for node in nodes:
        reason = _undefined(at, node)
        if reason:
            at.refuse(
                f"its condition is computed at run time, and {node.op_type} {node.name or node.output[0]!r} of its {name}"
                f" {reason}, so that both branches cannot be computed",
                hint=_OPEN if "unknown dims" in reason else "" if node.op_type in RANDOM else _GUARD,
            )


def _undefined(at: Evaluator, node: onnx.NodeProto) -> str:
    """Return why a node must not run when the model would not run it, "" if it may."""
    # Nothing is known about operators of other domains.
    if not is_onnx(node.domain):
        return f"is of {node.domain}, and may fail"
    if any(at.static(name) is None for name in node.output if name):
        return "has an output of unknown dims"
    operator = node.op_type
    if operator in RANDOM:
        return "draws random numbers"
    # A guarded index or divisor is safe.
    if len(node.input) > 1 and node.input[1] in at.guarded:
        return ""
    if operator in _OF_FLOATS:
        divisor = at.known(node.input[1])
        # A division of floats by 0 gives infinity.
        whole = at.rw.dtype(node.input[0]) not in _FLOATS
        return "may divide by 0" if whole and (divisor is None or not divisor.all()) else ""
    if operator in INDEXED:
        indices, sizes = at.known(node.input[1]), indexed_sizes(at, node)
        if indices is None or sizes is None:
            return "may read out of range"
        return "" if bool(((indices >= -sizes) & (indices < sizes)).all()) else "reads out of range"
    if operator == "Cast":
        return "reads numbers from texts" if at.rw.dtype(node.input[0]) in (None, TensorProto.STRING) else ""
    if operator in ("Reshape", "Expand", "Tile") and at.known(node.input[1]) is None:
        return "takes a shape that depends on data"
    # The list names operators that accept all inputs.
    return "" if operator in _TOTAL else "is not known to be defined for all inputs"
