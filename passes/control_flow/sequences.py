"""Sequences and optionals: the evaluator knows their elements when a node makes them, and gives them to the readers."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.facts.shape_arithmetic import attributes_of

from ..split_parts import drops_axis, part_lengths
from .evaluate import Env, Evaluator, Held, OptionalOf, SequenceOf, handles


def _elements(at: Evaluator, node: onnx.NodeProto, env: Env) -> tuple[Held, ...]:
    """Return the content of the sequence that is a node's first input."""
    value = env.get(node.input[0])
    if not isinstance(value, SequenceOf):
        at.refuse(
            f"of {node.input[0]!r} it is not known which tensors it holds",
            code="sequences",
            hint="let the model take tensors in place of sequences",
        )
    return value.elements


def _place(at: Evaluator, node: onnx.NodeProto, env: Env, index: int, default: int, end: int) -> int | None:
    """Return a position from the front that lies before `end`; None if it is computed at run time."""
    # The position is an optional input.
    name = node.input[index] if len(node.input) > index else ""
    position = at.number(env, name) if name else default
    if position is None:
        return None
    if position < 0:  # from the end of the sequence; an insertion has one more place
        position += end - 1 if node.op_type == "SequenceInsert" and name else end
    if not 0 <= position < end:
        at.refuse(f"its position is not in the sequence, which has {end} places", code="sequences")
    return position


def _known(at: Evaluator, place: int | None) -> int:
    if place is None:
        at.refuse("its position is computed at run time", code="sequences")
    return place


@handles("SequenceEmpty", "SequenceConstruct")
def construct(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Hold the inputs."""
    return [SequenceOf(tuple(env.get(name, name) for name in node.input))]


@handles("SequenceInsert")
def insert(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Hold one element more, by default at the end."""
    elements = _elements(at, node, env)
    position = _known(at, _place(at, node, env, 2, len(elements), len(elements) + 1))
    return [SequenceOf((*elements[:position], env.get(node.input[1], node.input[1]), *elements[position:]))]


@handles("SequenceErase")
def erase(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Hold one element less, by default the last."""
    elements = _elements(at, node, env)
    position = _known(at, _place(at, node, env, 1, -1, len(elements)))
    return [SequenceOf((*elements[:position], *elements[position + 1 :]))]


@handles("SequenceAt")
def element(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Return an element; for a position that is computed, a Gather from all, which must be of one shape."""
    elements = _elements(at, node, env)
    position = _place(at, node, env, 1, 0, len(elements))
    if position is not None:
        return [elements[position]]
    names = [held_element for held_element in elements if isinstance(held_element, str)]
    shapes = {at.static(name) for name in names}
    # A sequence may hold sequences, which cannot be stacked.
    if len(names) < len(elements) or len(shapes) != 1 or None in shapes:
        at.refuse(
            "its position is computed at run time, and the elements are not known to be of one shape",
            code="sequences",
        )
    stacked = at.value(at.stack(names, 0))
    return [at.op.Gather(stacked, at.value(at.tensor(env, node.input[1])), axis=0).name]


@handles("SequenceLength")
def length(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Return the number of elements."""
    return [at.constant(len(_elements(at, node, env)))]


@handles("SplitToSequence")
def split(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Hold the outputs of a Split."""
    attributes, source = attributes_of(node), at.tensor(env, node.input[0])
    axis, shape = int(attributes.get("axis", 0)), at.rw.shape(source)
    lengths_name = node.input[1] if len(node.input) > 1 else ""
    lengths = at.known(at.tensor(env, lengths_name)) if lengths_name else np.array(1)
    size = None if shape is None else shape[axis]
    if shape is None or lengths is None or (size is None and not lengths.ndim):
        at.refuse(
            f"the lengths of its parts, or the size of axis {axis} of {source!r}, are not known",
            code="sequences",
            hint=FIX_DIMS,
        )
    # One number is the length of each part; several are the lengths of all.
    parts = part_lengths(lengths, size)
    if parts is None:
        at.refuse(f"an axis of {size} elements is not written as parts of {int(lengths)}", code="sequences")
    axis %= len(shape)
    names = (
        [source]
        if len(parts) == 1
        else [at.name_of(part) for part in at.split(at.value(source), parts, axis)]
    )
    # Only a sequence of single elements loses the axis.
    if drops_axis(attributes.get("keepdims", 1), lengths, parts):
        names = [at.name_of(at.op.Squeeze(at.value(name), [axis])) for name in names]
    return [SequenceOf(tuple(names))]


@handles("ConcatFromSequence")
def join(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Return the elements joined along an axis, or along a new one."""
    elements, attributes = _elements(at, node, env), attributes_of(node)
    names = [at.tensor(Env({"": held_element}), "") for held_element in elements]
    if not names:
        at.refuse("it joins the tensors of an empty sequence", code="invalid-node")
    axis, new = int(attributes["axis"]), bool(attributes.get("new_axis", 0))
    # A negative axis counts the new axis, too.
    if axis < 0:
        axis += at.value(names[0]).need_rank() + new
    if new:
        return [at.stack(names, axis)]
    if len(names) == 1:
        return [names[0]]
    return [at.name_of(at.op.write("Concat", *map(at.value, names), axis=axis))]


@handles("Optional")
def optional(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Hold the input, or nothing."""
    name = node.input[0] if node.input else ""
    return [OptionalOf(env.get(name, name) if name else None)]


@handles("OptionalHasElement")
def has_element(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Return whether an optional has an element; a tensor and a sequence count as elements, an absent input does not."""
    name = node.input[0] if node.input else ""
    value = env.get(name, name)
    if name and isinstance(value, str) and at.rw.scope.value_type(value).container.startswith("optional"):
        at.refuse(
            f"whether {name!r}, an optional that the model is given, holds something is not known",
            code="sequences",
        )
    return [at.constant(bool(value) and not (isinstance(value, OptionalOf) and value.element is None))]


@handles("OptionalGetElement")
def get_element(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Return the value in an optional."""
    value = env.get(node.input[0], node.input[0])
    # Nobody knows whether the caller fills it.
    if isinstance(value, str) and at.rw.scope.value_type(value).container.startswith("optional"):
        at.refuse(
            f"the content of the optional {node.input[0]!r}, an input of the model, is not known",
            code="sequences",
        )
    if not isinstance(value, OptionalOf):
        return [value]
    if value.element is None:
        at.refuse("it takes the element of an empty optional", code="sequences")
    return [value.element]
