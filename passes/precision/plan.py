"""Which nodes compute in the new type, and which keep theirs: by their schemas, their constants, and what reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import prod

from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.model.graphs import BodyKey, node_label
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.retyping import FLOATS, TYPE_BY_ATTRIBUTE, Retyping, retyping, takes_any
from onnx_migrate.standard.targets import Target, Targets

from .numbers import Extent, largest, smallest
from .stored import StoredNumbers

__all__ = ["CONTROL_FLOW", "Plan", "is_meant", "plan_of", "refusing_target"]

CONTROL_FLOW = ("If", "Loop", "Scan")
"""Operators whose sub-graphs take part in the change; those inside any other node keep their types."""

_MOVERS = frozenset(
    {
        "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad",
        "Reshape", "ReverseSequence", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
        "Abs", "ArgMax", "ArgMin", "Dropout", "MaxPool", "GlobalMaxPool", "Max", "Min", "Neg", "ReduceMax", "ReduceMin",
        "Relu", "Sign",
    }
)  # fmt: skip
"""Operators that give the same numbers in either type: they take the type of what is around them."""

_BOUNDING = frozenset({"Clip", "Max", "Min", "Where"})
"""Operators in which a constant that becomes infinite bounds nothing, as before, or is a mask, as a Cast behind makes it."""

_GENERATORS = frozenset(TYPE_BY_ATTRIBUTE) - {"Cast", "ConstantOfShape", "DequantizeLinear"}
"""Operators that make numbers from nothing but sizes: ONNX Runtime has no kernels of them in narrow types."""

_AS_THEY_ARE = {
    ("", "BitCast"): "it reads the bits of its input",
    ("", "MeanVarianceNormalization"): "its function body, which runtimes run, has constants of float32",
    ("ai.onnx.ml", "TreeEnsemble"): "its attributes have the type of its input",
}
"""Operators that take narrow types by their schemas, and cannot be given them."""

_ADDED = dict.fromkeys(("Add", "Sub", "Sum"), (0, 1)) | dict.fromkeys(
    ("BatchNormalization", "Conv", "ConvTranspose", "Gemm", "GroupNormalization", "InstanceNormalization", "LayerNormalization"),
    (2,),
)  # fmt: skip
"""Where operators read what they add, which is no more than rounding if it becomes 0, unless what follows is steep at 0."""

_STEEP = frozenset({"Div", "Log", "Pow", "Reciprocal", "Sqrt"})
"""Operators that a number which becomes 0 makes infinite, or the slope of which it does."""

_UNITS = 8
"""How many of the smallest numbers of the type a number is at least that is told from 0."""

_INTEGERS = frozenset(
    {
        TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16,
        TensorProto.UINT32, TensorProto.UINT64, TensorProto.BOOL,
    }
)  # fmt: skip


@dataclass
class Plan:
    """Of each node of the model that has floating-point values, what changes, or why nothing does.

    `target` is the new type, `changes` has the nodes that compute in it, and `kept` the reasons, for reports, for all others
    that have values of another floating-point type.
    """

    target: int
    sources: frozenset[int]
    runtimes: Targets | None = None
    changes: dict[Step, Retyping] = field(default_factory=dict)
    kept: dict[Step, str] = field(default_factory=dict)
    vanishing: dict[Step, float] = field(default_factory=dict)
    """The nodes that read a constant which becomes 0, and that."""
    intended: set[Step] = field(default_factory=set)
    """The nodes that the model computes in another type between Casts, as it is meant."""

    @property
    def narrows(self) -> bool:
        """Whether numbers may be lost: float32 holds those of the other types."""
        return self.target != TensorProto.FLOAT

    def changes_type(self, value: Value | None) -> bool:
        """Return whether a value is a tensor of a type that is to change."""
        return value is not None and value.dtype in self.sources

    def wanted(self, step: Step, index: int) -> int | None:
        """Return the type in which a node reads an input; None where any will do, or there is nothing to choose."""
        value = step.inputs[index]
        if value is None or not self.changes_type(value) or takes_any(step.domain, step.node.op_type, index):
            return None
        change = self.changes.get(step)
        return self.target if change is not None and change.inputs[index] else value.dtype


def plan_of(
    frames: Iterable[Frame],
    target: int,
    stored: StoredNumbers,
    *,
    keep: Collection[str] = (),
    islands: Collection[tuple[BodyKey, str]] = (),
    runtimes: Targets | None = None,
) -> Plan:
    """Return which nodes compute in `target`; of what `runtimes` do not take in it, none.

    `keep` are operators, or names of nodes as patterns of fnmatch, that a user wants left as they are; `islands` are nodes,
    by their bodies and first outputs, whose numbers would leave the original.
    """
    frames = list(frames)
    plan = Plan(target, frozenset(FLOATS) - {target}, runtimes)
    steps = [step for frame in frames for step in frame.steps if not step.is_a("Constant")]
    for step in steps:
        values = [value for value in step.outputs if plan.changes_type(value)]
        if (
            not values
            and not step.inner
            and all(plan.wanted(step, place) is None for place in range(len(step.inputs)))
        ):
            continue
        change, reason = _by_itself(step, plan, stored, keep, islands)
        if change is None:
            plan.kept[step] = reason
        else:
            plan.changes[step] = change
    if plan.narrows:
        _keep_fused_concats(steps, plan)
        _keep_deciding_loops(frames, plan)
    _keep_inside(frames, plan)
    if plan.narrows:
        _keep_around(frames, plan)
        _keep_behind_small_constants(steps, plan, stored)
        _keep_islands_of_the_model(steps, plan)
        _keep_index_arithmetic(steps, plan)
        _follow(steps, plan)
    return plan


def _by_itself(
    step: Step,
    plan: Plan,
    stored: StoredNumbers,
    keep: Collection[str],
    islands: Collection[tuple[BodyKey, str]],
) -> tuple[Retyping | None, str]:
    """Return what of a node can change its type, or None and the reason why nothing does."""
    operator = step.node.op_type
    first = step.node.output[0] if step.node.output else ""
    if any(is_meant(step, wish) for wish in keep):
        return None, "as asked for"
    if (step.frame.key, first) in islands:
        return None, f"the numbers would leave the original's in {type_name(plan.target)}"
    inputs = tuple(map(plan.changes_type, step.inputs))
    outputs = tuple(map(plan.changes_type, step.outputs))
    if step.inner:
        if not step.is_a(*CONTROL_FLOW) or (step.is_a("Scan") and step.version < 9):
            return None, "its sub-graph keeps its types"
        return Retyping(inputs, outputs), ""
    if any(value is not None and value.container for value in (*step.inputs, *step.outputs)):
        return None, "sequences keep their element type"
    if plan.narrows and not step.domain and operator in _GENERATORS:
        return None, f"ONNX Runtime does not make numbers of {type_name(plan.target)}"
    if plan.narrows and (step.domain, operator) in _AS_THEY_ARE:
        return None, _AS_THEY_ARE[step.domain, operator]
    refusing = refusing_target(step, plan)
    if refusing is not None:
        return None, f"{refusing} does not take it in {type_name(plan.target)}"
    change = retyping(step.domain, operator, step.version, inputs, outputs, plan.target)
    if change is None:
        return None, f"the operator does not take {type_name(plan.target)}"
    return _unless_lost(step, change, plan, stored)


def is_meant(step: Step, wish: str) -> bool:
    """Return whether a user means a node by an operator, or by a name as a pattern of fnmatch."""
    return step.node.op_type == wish or fnmatchcase(node_label(step.node), wish)


def refusing_target(step: Step, plan: Plan) -> Target | None:
    """Return the first runtime of a plan that does not take a node in the new type, by what is known of it."""
    kind = type_name(plan.target)
    for runtime in plan.runtimes or ():
        if runtime.row.types and kind not in runtime.row.types:
            return runtime
    if plan.runtimes is None:
        return None
    rows = plan.runtimes.limits(step.domain, step.node.op_type)
    return next((runtime for runtime, row in rows if row.types and kind not in row.types), None)


def _unless_lost(
    step: Step, change: Retyping, plan: Plan, stored: StoredNumbers
) -> tuple[Retyping | None, str]:
    """Return the change, unless a constant that the node reads overflows or becomes 0."""
    tensors = [
        (place, value.tensor)
        for place, (value, changes) in enumerate(zip(step.inputs, change.inputs, strict=True))
        if changes and value is not None and value.tensor is not None
    ]
    tensors += [(0, attribute.t) for attribute in step.node.attribute if step.is_a("ConstantOfShape")]
    for place, tensor in tensors:
        if tensor.data_type not in plan.sources:
            continue
        extent = stored.extent(tensor)
        if extent.lost and not (extent.overflows and step.is_a(*_BOUNDING)):
            if not extent.overflows:
                plan.vanishing[step] = extent.vanishing
                if not step.domain and place in _ADDED.get(step.node.op_type, ()):
                    continue
            return None, _lost(extent, plan)
    return change, ""


def _lost(extent: Extent, plan: Plan) -> str:
    return f"of a constant {extent.lost} in {type_name(plan.target)}"


def _keep_fused_concats(steps: Iterable[Step], plan: Plan) -> None:
    """Keep a Concat between quantised values with its scales: ONNX Runtime makes a QLinearConcat of them, which takes float32.

    It does not look at the type of the scales first, so that the model would not load (1.32).
    """
    for step in steps:
        makers = [value.maker for value in step.inputs if value is not None]
        readers = [reader for value in step.outputs if value is not None for reader, _ in value.readers]
        if (
            not step.is_a("Concat")
            or not readers
            or not all(reader.is_a("QuantizeLinear") for reader in readers)
        ):
            continue
        if all(maker is not None and maker.is_a("DequantizeLinear") for maker in makers):
            for node in (*makers, step, *readers):
                if node is not None:
                    _keep(node, plan, "ONNX Runtime joins quantised values with scales of float32 alone")


def _keep_deciding_loops(frames: Iterable[Frame], plan: Plan) -> None:
    """Keep loops in which floats decide which integers are carried on: one that flips changes all that follows."""
    for frame in reversed(list(frames)):
        for step in frame.steps:
            if step.is_a("Loop", "Scan") and any(_decides(inner) for _, inner in step.inner):
                _keep(step, plan, "its numbers decide what the loop does next")


def _decides(body: Frame) -> bool:
    """Return whether an integer or truth value that a body carries on or ends by is computed from floats."""
    decided: set[Value] = set()
    for step in body.steps:
        given = [value for value in step.inputs if value is not None and value.tensor is None]
        floats = any(value.dtype in FLOATS and value.frame is body for value in given)
        if (floats or any(value in decided for value in given)) and not step.is_a("Shape", "Size"):
            decided.update(value for value in step.outputs if value is not None and value.dtype in _INTEGERS)
    return any(value in decided for value in map(body.find, (output.name for output in body.body.output)))


def _keep_inside(frames: Iterable[Frame], plan: Plan) -> None:
    """Keep all nodes inside nodes that are kept."""
    kept: set[Frame] = set()
    for frame in frames:
        for step in frame.steps:
            if frame in kept:
                _keep(step, plan, "the node that it is inside of keeps its type")
            if step.inner and step in plan.kept:
                kept.update(inner for _, inner in step.inner)


def _keep_around(frames: Iterable[Frame], plan: Plan) -> None:
    """Keep loops and branches of which nothing inside changes: Casts around them would do nothing but round."""
    for frame in reversed(list(frames)):
        for step in frame.steps:
            inside = [other for _, inner in step.inner for other in inner.steps]
            if (
                inside
                and any(other in plan.kept for other in inside)
                and not any(other in plan.changes for other in inside)
            ):
                _keep(step, plan, "nothing inside of it computes in the type")


def _keep_behind_small_constants(steps: Iterable[Step], plan: Plan, stored: StoredNumbers) -> None:
    """Keep what divides by, or takes a logarithm or root of, a number that a small constant keeps from being 0.

    So stay what adds the constant, what moves the sum, and behind a reciprocal that would be infinite, what multiplies by it.
    """
    small: dict[Value, tuple[float, tuple[Step, ...]]] = {}
    large: set[Value] = set()
    reason = "it divides by a small number, or takes its logarithm or root"
    for step in steps:
        given = [(place, value) for place, value in enumerate(step.inputs) if value in small]
        least, way = min(
            (small[value] for _, value in given if value), default=(0.0, ()), key=lambda one: one[0]
        )
        if step in plan.vanishing:
            small.update(dict.fromkeys(filter(None, step.outputs), (plan.vanishing[step], (step,))))
        elif step.is_a("Mul", "Div") and any(value in large for value in step.inputs):
            _keep(step, plan, reason)
        elif given and _moves(step):
            small.update(dict.fromkeys(filter(None, step.outputs), (least, (*way, step))))
        elif given and (beyond := _beyond_a_slope(step, given[-1][0], least, stored)):
            small.update(dict.fromkeys(filter(None, step.outputs), (beyond, (step,))))
            if beyond > largest(plan.target):
                large.update(filter(None, step.outputs))
            elif least >= _UNITS * smallest(plan.target):
                continue
            for other in (*way, step):
                if other in plan.vanishing and other in plan.changes:
                    _keep(
                        other,
                        plan,
                        f"of a constant {plan.vanishing[other]:.3g} becomes 0 in {type_name(plan.target)}",
                    )
                _keep(other, plan, reason)


def _beyond_a_slope(step: Step, place: int, least: float, stored: StoredNumbers) -> float:
    """Return how small or large a number becomes that a node reads and that is at least so large; 0 for no steep operator."""
    if step.domain or step.node.op_type not in _STEEP or (step.is_a("Div") and place == 0):
        return 0.0
    if step.is_a("Log"):
        return 1.0
    exponent = 0.5 if step.is_a("Sqrt") else -1.0
    if step.is_a("Pow"):
        value = step.inputs[1]
        exponent = 0.0 if value is None or value.tensor is None else float(stored.numbers(value.tensor).min())
        if place == 1 or exponent >= 1:
            return 0.0
    if step.is_a("Div") and step.inputs[0] is not None and step.inputs[0].tensor is None:
        return 1.0  # what is divided is as small
    return float(least**exponent)


def _keep(step: Step, plan: Plan, reason: str) -> None:
    if plan.changes.pop(step, None) is not None:
        plan.kept[step] = reason


def _computed(step: Step, plan: Plan) -> list[Value]:
    """Return the inputs of a node that are computed and of a type that changes."""
    return [
        value
        for value in step.inputs
        if value is not None and value.tensor is None and plan.changes_type(value)
    ]


def _keep_islands_of_the_model(steps: Iterable[Step], plan: Plan) -> None:
    """Keep what a model that computes mostly in the type already computes in another one, between Casts: it is meant so.

    Mostly is by nodes, or by the numbers of the constants that they read.
    """
    steps = [step for step in steps if not step.is_a("Cast")]
    narrow = [
        step
        for step in steps
        if any(value is not None and value.dtype == plan.target for value in step.outputs)
    ]
    if len(narrow) <= len(plan.changes) and _stored(narrow, {plan.target}) <= _stored(
        plan.changes, plan.sources
    ):
        return
    inside: set[Value] = set()
    for step in steps:
        if all(
            value in inside or value.maker is None or _is_cast_from(value, plan.target)
            for value in _computed(step, plan)
        ):
            inside.update(value for value in step.outputs if value is not None and plan.changes_type(value))
            if step in plan.changes:
                _keep(step, plan, "the model computes it in another type, between Casts")
                plan.intended.add(step)


def _stored(steps: Iterable[Step], kinds: Collection[int]) -> int:
    """Return how many numbers the constants of some types hold that nodes read."""
    read = {value for step in steps for value in step.inputs if value is not None and value.dtype in kinds}
    return sum(prod(value.tensor.dims) for value in read if value.tensor is not None)


def _is_cast_from(value: Value, kind: int) -> bool:
    """Return whether a value is a Cast of a computed one of a type."""
    maker = value.maker
    source = maker.inputs[0] if maker is not None and maker.is_a("Cast") else None
    return source is not None and source.dtype == kind and source.maker is not None


def _keep_index_arithmetic(steps: list[Step], plan: Plan) -> None:
    """Keep what computes integers, or what is read as it is, from integers: sizes, offsets, scales of a Resize."""
    forward: set[Value] = set()
    for step in steps:
        made = [value for value in step.outputs if value is not None and plan.changes_type(value)]
        given = _computed(step, plan)
        source = step.inputs[0] if step.inputs else None
        from_integers = step.is_a("Cast") and source is not None and source.dtype in _INTEGERS
        if made and (from_integers or (given and all(value in forward for value in given))):
            forward.update(made)
    for step in reversed(steps):
        if step not in plan.changes or not any(value in forward for value in step.outputs):
            continue
        outputs = [value for value in step.outputs if value is not None]
        if all(value.readers and not value.is_output for value in outputs) and all(
            _counts(reader, index, plan) for value in outputs for reader, index in value.readers
        ):
            _keep(step, plan, "it computes sizes or indices")


def _counts(reader: Step, index: int, plan: Plan) -> bool:
    """Return whether a node reads an input as a number that must be whole, or in its own type."""
    if reader.is_a("Cast"):
        output = reader.outputs[0]
        return output is not None and output.dtype in _INTEGERS
    value = reader.inputs[index]
    return value is not None and plan.wanted(reader, index) == value.dtype


def _follow(steps: list[Step], plan: Plan) -> None:
    """Let nodes that move numbers take the type of what they stand between, so that fewer Casts are needed."""
    for step in reversed(steps):
        if step in plan.changes and (_moves(step) or step.is_a("Cast")):
            outputs = [value for value in step.outputs if value is not None and plan.changes_type(value)]
            readers = [reader for value in outputs for reader in value.readers]
            if readers and all(_counts_as_it_is(reader, index, plan) for reader, index in readers):
                _keep(step, plan, "what reads it keeps its type")
    for step in steps:
        if step in plan.changes and _moves(step) and any(map(plan.changes_type, step.outputs)):
            given = _computed(step, plan)
            if given and all(value.maker is not None and _stays(value, plan) for value in given):
                _keep(step, plan, "what it reads keeps its type")


def _counts_as_it_is(reader: Step, index: int, plan: Plan) -> bool:
    value = reader.inputs[index]
    return value is not None and not value.is_output and plan.wanted(reader, index) == value.dtype


def _moves(step: Step) -> bool:
    return not step.domain and step.node.op_type in _MOVERS


def _stays(value: Value, plan: Plan) -> bool:
    """Return whether a computed value keeps its type."""
    maker = value.maker
    if maker is None:
        return False
    change = plan.changes.get(maker)
    return change is None or not change.outputs[maker.outputs.index(value)]
