"""Nodes that keep their type by what they stand between: quantised values, loops that decide, sizes, the model's own islands."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.standard.retyping import FLOATS

from .candidates import is_product
from .plan import INTEGERS, Plan, moves, stays

__all__ = [
    "follow",
    "keep_around",
    "keep_deciding_loops",
    "keep_fused_concats",
    "keep_index_arithmetic",
    "keep_inside",
    "keep_islands_of_the_model",
]


def keep_fused_concats(steps: Iterable[Step], plan: Plan) -> None:
    """Keep a Concat between quantised values with its scales: ONNX Runtime makes a QLinearConcat of them, which takes float32.

    It does not look at the type of the scales first, so that the model would not load (1.32).
    """
    for step in steps:
        makers = [value.maker for value in step.read]
        readers = [reader for value in step.made for reader, _ in value.readers]
        if (
            step.is_a("Concat")
            and readers
            and all(reader.is_a("QuantizeLinear") for reader in readers)
            and all(maker is not None and maker.is_a("DequantizeLinear") for maker in makers)
        ):
            for node in filter(None, (*makers, step, *readers)):
                plan.keep(node, "ONNX Runtime joins quantised values only with scales of float32")


def keep_deciding_loops(frames: Iterable[Frame], plan: Plan) -> None:
    """Keep loops in which floats decide loop-carried integers: one changed decision changes all later iterations."""
    for frame in reversed(list(frames)):
        for step in frame.steps:
            if step.is_a("Loop", "Scan") and any(_decides(inner) for _, inner in step.inner):
                plan.keep(step, "its numbers decide what the loop does next")


def _decides(body: Frame) -> bool:
    """Return whether an integer or truth value that a body carries on or ends by is computed from floats."""
    decided: set[Value] = set()
    for step in body.steps:
        inputs = [value for value in step.read if value.tensor is None]
        floats = any(value.dtype in FLOATS and value.frame is body for value in inputs)
        if (floats or any(value in decided for value in inputs)) and not step.is_a("Shape", "Size"):
            decided.update(value for value in step.made if value.dtype in INTEGERS)
    return any(value in decided for value in map(body.find, (output.name for output in body.body.output)))


def keep_inside(frames: Iterable[Frame], plan: Plan) -> None:
    """Keep all nodes inside nodes that are kept."""
    kept_frames: set[Frame] = set()
    # A body comes after the one around it, so one pass reaches all levels.
    for frame in frames:
        for step in frame.steps:
            if frame in kept_frames:
                plan.keep(step, "the node around it keeps its type")
            if step.inner and step in plan.kept:
                kept_frames.update(inner for _, inner in step.inner)


def keep_around(frames: Iterable[Frame], plan: Plan) -> None:
    """Keep loops and branches without a changed node inside: Casts around them would only round."""
    # Inner bodies come first, because a kept loop counts for the loop around it.
    for frame in reversed(list(frames)):
        for step in frame.steps:
            inside = [other for _, inner in step.inner for other in inner.steps]
            if (
                inside
                and any(other in plan.kept for other in inside)
                and not any(other in plan.changes for other in inside)
            ):
                plan.keep(step, "no node inside it computes in the new type")


def keep_islands_of_the_model(steps: Iterable[Step], plan: Plan) -> None:
    """Keep nodes between Casts in another type, if the model computes mostly in the new type: their author chose the other type.

    Mostly is by nodes, or by the numbers of the constants that they read.
    """
    steps = [step for step in steps if not step.is_a("Cast")]
    narrow = [step for step in steps if any(value.dtype == plan.target for value in step.made)]
    if len(narrow) <= len(plan.changes) and _stored(narrow, {plan.target}) <= _stored(
        plan.changes, plan.sources
    ):
        return
    inside: set[Value] = set()
    for step in steps:
        if all(
            value in inside or value.maker is None or _is_cast_from(value, plan.target)
            for value in plan.computed(step)
        ):
            inside.update(filter(plan.changes_type, step.made))
            if step in plan.changes:
                plan.keep(step, "the model computes it in another type, between Casts")
                plan.intended.add(step)


def _stored(steps: Iterable[Step], kinds: Collection[int]) -> int:
    """Return how many numbers the constants of some types hold that nodes read."""
    read = {value for step in steps for value in step.read if value.dtype in kinds}
    return sum(prod(value.tensor.dims) for value in read if value.tensor is not None)


def _is_cast_from(value: Value, kind: int) -> bool:
    """Return whether a value is a Cast of a computed one of a type."""
    maker = value.maker
    source = maker.inputs[0] if maker is not None and maker.is_a("Cast") else None
    return source is not None and source.dtype == kind and source.maker is not None


def keep_index_arithmetic(steps: list[Step], plan: Plan) -> None:
    """Keep nodes between integers: sizes, offsets, and scales of a Resize, computed from integers.

    Nodes behind a product compute features of tokens or of an image of integers, and no sizes.
    """
    forward: set[Value] = set()
    for step in steps:
        outputs = [] if is_product(step) else list(filter(plan.changes_type, step.made))
        inputs = plan.computed(step)
        source = step.inputs[0] if step.inputs else None
        from_integers = step.is_a("Cast") and source is not None and source.dtype in INTEGERS
        if outputs and (from_integers or (inputs and all(value in forward for value in inputs))):
            forward.update(outputs)
    for step in reversed(steps):
        if step not in plan.changes or not any(value in forward for value in step.outputs):
            continue
        if all(value.readers and not value.is_output for value in step.made) and all(
            _counts(reader, index, plan) for value in step.made for reader, index in value.readers
        ):
            plan.keep(step, "it computes sizes or indices")


def _counts(reader: Step, index: int, plan: Plan) -> bool:
    """Return whether a node reads an input as a number that must be whole, or in its own type."""
    if reader.is_a("Cast"):
        output = reader.outputs[0]
        return output is not None and output.dtype in INTEGERS
    return _counts_as_it_is(reader, index, plan)


def follow(steps: list[Step], plan: Plan) -> None:
    """Let nodes that move numbers take the type of their neighbours, so that fewer Casts are needed."""
    for step in reversed(steps):
        if step in plan.changes and (moves(step) or step.is_a("Cast")):
            readers = [reader for value in filter(plan.changes_type, step.made) for reader in value.readers]
            if readers and all(_counts_as_it_is(reader, index, plan) for reader, index in readers):
                plan.keep(step, "its readers keep their type")
    for step in steps:
        if step in plan.changes and moves(step) and any(map(plan.changes_type, step.outputs)):
            inputs = plan.computed(step)
            if inputs and all(value.maker is not None and stays(value, plan) for value in inputs):
                plan.keep(step, "its inputs keep their type")


def _counts_as_it_is(reader: Step, index: int, plan: Plan) -> bool:
    value = reader.inputs[index]
    return value is not None and not value.is_output and plan.wanted(reader, index) == value.dtype
