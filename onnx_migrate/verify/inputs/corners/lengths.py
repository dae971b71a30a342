"""Other sizes for open dims: 1, odd ones, and sizes beyond every constant that a dim meets, like the rows of a position table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from onnx_migrate.verify.inputs.constraints.facts import Argument
from onnx_migrate.verify.inputs.corners.flow import Flow
from onnx_migrate.verify.inputs.corners.thresholds import numbers_at
from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.sizes import batch_keys, open_dims

__all__ = ["OtherSizes", "is_affordable", "other_sizes", "sizes_for"]

_LARGEST_SIZE = 4096
_MOST_ELEMENTS = 1 << 20
"""Elements of all inputs together at another size."""

_MOST_CONSTANTS = 3
"""Constants, the largest first, beyond which sizes are tried."""

_ODD = (3, 5, 9, 11, 13, 15)

OtherSizes = tuple[str, tuple[Mapping[str, int], ...]]
"""The name of a feed, and the sizes by dim that are tried for it in turn until the model runs."""


def other_sizes(source: RandomInputs, flow: Flow) -> Iterator[OtherSizes]:
    """Yield other sizes of the dims that both models leave open."""
    sizes = open_dims(source.model, source.shapes)
    # A dim may only look open.
    fixed = {key for key, size in sizes.items() if not _is_free(source, key, size)}
    sizes = {key: size for key, size in sizes.items() if key not in fixed}
    if not sizes:
        return
    batch = batch_keys(source.model) & sizes.keys()
    others = [key for key in sizes if key not in batch]
    every_one = dict.fromkeys(sizes, 1)
    yield "sizes of 1", (every_one, dict.fromkeys(batch, 1), *({key: 1} for key in others))
    odd = {key: _odd(size, position) for position, (key, size) in enumerate(sizes.items())}
    yield "odd sizes", (odd, {key: odd[key] for key in batch}, *({key: odd[key]} for key in others))
    for number in _constants(flow)[:_MOST_CONSTANTS]:
        if number >= min(sizes.values()):
            tried = [
                dict.fromkeys(keys, size)
                for keys in dict.fromkeys((tuple(others), *((key,) for key in (*others, *batch))))
                for size in (number + 1, number)
            ]
            yield f"sizes beyond {number}", tuple(tried)


def is_affordable(source: RandomInputs) -> bool:
    """Whether inputs at other sizes are small."""
    return sum(map(prod, source.shapes.values())) <= _MOST_ELEMENTS


def _is_free(source: RandomInputs, key: str, size: int) -> bool:
    """Whether a dim can have another size. It cannot if the result declares one."""
    changed = replace(source, sizes={**source.sizes, key: size + 1})
    return changed.shapes != source.shapes


def sizes_for(source: RandomInputs, name: str, shape: tuple[int, ...]) -> dict[str, int]:
    """Return sizes of open dims, by key, that make an input as long as a shape.

    Only the last axes count, and of those only the ones longer than 1.
    """
    sizes_by_key: dict[str, int] = {}
    usual = source.shapes[name]
    axes = {len(usual) - len(shape) + at: size for at, size in enumerate(shape) if size > 1}
    # An axis of the right length needs no change.
    missing = {axis: size for axis, size in axes.items() if axis >= 0 and usual[axis] != size}
    for key, size in open_dims(source.model, source.shapes).items() if missing else ():
        # The axis belongs to the open dim if it grows with it.
        longer = replace(source, sizes={**source.sizes, key: size + 1}).shapes[name]
        moved = [axis for axis in missing if longer[axis] != usual[axis]]
        sizes_by_key.update((key, missing[axis]) for axis in moved)
    return sizes_by_key


def _odd(size: int, place: int) -> int:
    """Return an odd number that is not the size, nor a multiple or divisor of it, and another for each dim."""
    larger = size + 1 + size % 2 + 2 * place
    return next((odd for odd in _ODD[place % 3 :] if size % odd and odd % max(size, 2)), larger)


def _constants(flow: Flow) -> list[int]:
    """Return the constants that dims meet, the largest first."""
    constants: set[int] = set()
    for node in flow.nodes:
        for index, _ in enumerate(node.input):
            constants.update(_ends(Argument(node, index, flow.facts)))
        # Dims also become numbers that nodes compare.
        if node.op_type in ("Shape", "Size"):
            for meeting in flow.meetings(node.output[0]):
                numbers = [meeting.path.to_input(number) for number in numbers_at(meeting.argument)]
                constants.update(round(number) for number in numbers if number is not None)
                constants.update(_rows(meeting.argument))
    # A limit of 1 or an enormous one cannot be crossed.
    return sorted((number for number in constants if 1 < number <= _LARGEST_SIZE), reverse=True)


def _ends(argument: Argument) -> Iterator[int]:
    """The constant ends at which Slice cuts a value, and the positive starts."""
    node, index = argument.node, argument.index
    if node.op_type != "Slice" or index:
        return
    for position, name in enumerate(("starts", "ends"), 1):
        constant = argument.facts.value(node.input[position]) if len(node.input) > position else None
        ends = argument.attribute(name, []) if constant is None else constant.ravel().tolist()
        yield from (end for end in ends if 0 < end <= _LARGEST_SIZE)


def _rows(argument: Argument) -> Iterator[int]:
    """Yield the lengths of a table if a dim chooses rows of it."""
    node, index = argument.node, argument.index
    if node.op_type in ("Slice", "Gather", "GatherND", "GatherElements") and index:
        yield from (size for size in (argument.shape(0) or ()) if size > 1)
