"""Slice, whose axes count from the front below opset 11 and whose bounds are attributes below 10, and Gather."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.errors import InvalidModel
from onnx_migrate.plural import listed
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_MOST_AXES = 64
"""The most axes of a tensor in any runtime."""

_ASSUMED = "runtimes are assumed to take a negative axis below opset 11"


@lowering("Slice", leaves=11)
def slice_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axes` are counted from the front.

    What changes: negative ones among constant axes are replaced by the same ones counted from the front.

    Why equal: version 11 adds negative axes, and forbids steps of 0.

    Limits: where the rank is unknown or the axes are computed at run time, they stay, and the report says so; ONNX Runtime
    takes negative ones at opset 10.
    """
    import numpy as np

    if not rw.input(3):
        return
    axes = rw.known(rw.input(3))
    if axes is not None and (axes >= 0).all():
        return
    rank = rw.rank(rw.input(0))
    if axes is None or rank is None:
        rw.note(
            f"{_ASSUMED}, since the {'axes are' if axes is None else 'rank is'} unknown", Exactness.ASSUMED
        )
        return
    rw.set_input(3, rw.constant(np.where(axes < 0, axes + rank, axes).astype(axes.dtype), "axes"))


@lowering("Gather", leaves=11)
def gather_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Indices and `axis` are counted from the front.

    What changes: a negative axis, and negative ones among constant indices, are replaced by the same ones counted from
    the front.

    Why equal: version 11 adds negative indices, and nothing else.

    Limits: what is not known, a length, a rank or indices that are computed at run time, stays, and the report says so;
    ONNX Runtime takes negative indices and axes at opset 10 and below.
    """
    import numpy as np

    source, axis = rw.input(0), int(rw.get("axis", 0))
    shape = rw.shape(source)
    indices = rw.known(rw.input(1))
    if axis < 0 and shape is not None:
        axis += len(shape)
        rw.set("axis", axis)
    elif axis < 0:
        rw.note(f"{_ASSUMED}, since the rank is unknown", Exactness.ASSUMED)
    if indices is not None and (indices >= 0).all():
        return
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if indices is None or length is None:
        what = "the indices, computed at run time," if indices is None else "the negative indices"
        rw.note(f"runtimes are assumed to count {what} from the end below opset 11", Exactness.ASSUMED)
        return
    positive = np.where(indices < 0, indices + length, indices).astype(indices.dtype)
    rw.set_input(1, rw.constant(positive, "indices"))


@lowering("Slice", leaves=10)
def slice_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`starts`, `ends` and `axes` move from inputs to attributes.

    What changes: constant bounds become attributes. An axis with a step other than 1, or with bounds that are computed at
    run time, is written as a Gather of the indices that the Slice takes: constant ones where bounds and length are known,
    else those that a comparison of all indices with the bounds selects.

    Why equal: the changelog of version 10 moves the bounds, and adds the steps. Bounds are clamped as the text of Slice-13
    has it.

    Limits: axes and steps must be constants. Indices that are selected at run time need opset 9.
    """
    source = rw.input(0)
    starts, ends = rw.known(rw.input(1)), rw.known(rw.input(2))
    steps = rw.need_constant(4, "steps").reshape(-1).tolist() if rw.input(4) else []
    axes = (
        rw.need_constant(3, "axes").reshape(-1).tolist()
        if rw.input(3)
        else list(range(len(steps) or _count(rw)))
    )
    if len(axes) > _MOST_AXES:
        raise InvalidModel(
            f"slices {len(axes):,} axes, and a tensor has {_MOST_AXES} at most", code="invalid-node"
        )
    steps = steps or [1] * len(axes)
    counts = [len(axes), len(steps), *(bound.size for bound in (starts, ends) if bound is not None)]
    if len(set(counts)) > 1:
        rw.refuse(
            "its starts, ends, axes and steps must have as many elements as each other, and what is known of them has"
            f" {listed(map(str, counts))}",
            code="invalid-node",
        )
    fixed = starts is not None and ends is not None
    plain = [index for index, step in enumerate(steps) if step == 1 and fixed]
    bounds = rw.input(1), rw.input(2)
    gathered = [index for index in range(len(axes)) if index not in plain]
    for index in gathered:
        at = _constant_indices(rw, source, axes[index], steps[index], index)
        if at is None:
            for place, what in ((1, "starts"), (2, "ends")):
                if rw.known(rw.input(place)) is None:
                    rw.use_at_run_time(place, what)
            at = _selected_indices(rw, source, bounds, axes[index], steps[index], index)
        name = "" if plain or index != gathered[-1] else rw.output(0)
        if name:
            rw.after("Gather", [source, at], [name], axis=axes[index])
            rw.remove()
        else:
            source = rw.before("Gather", [source, at], hint="cut", axis=axes[index])
    node.input[:] = [source]
    if plain and starts is not None and ends is not None:
        for field, values in (("starts", starts.reshape(-1)), ("ends", ends.reshape(-1)), ("axes", axes)):
            rw.set(field, [int(values[index]) for index in plain])
    elif not gathered:
        rw.rename("Identity")


def _count(rw: LoweringRewriter) -> int:
    """Return how many axes are cut where they are not given: as many as there are starts."""
    shape = rw.shape(rw.input(1))
    if shape is not None and len(shape) == 1 and shape[0] is not None:
        return shape[0]
    return rw.need_rank(rw.input(0))


def _constant_indices(rw: LoweringRewriter, source: str, axis: int, step: int, index: int) -> str | None:
    """Return constant indices, None where a bound or the length of the axis is not known."""
    import numpy as np

    starts, ends = rw.partly_known(rw.input(1)), rw.partly_known(rw.input(2))
    shape = rw.shape(source)
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if starts is None or ends is None or length is None:
        return None
    start, end = starts[index], ends[index]
    if start is None or end is None:
        return None
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    if step > 0:
        taken = range(max(start, 0), min(end, length), step)
    else:
        taken = range(max(min(start, length - 1), 0), max(end, -1), step)
    return rw.constant(np.array(taken if length else [], np.int64), f"indices_{index}")


def _selected_indices(
    rw: LoweringRewriter, source: str, bounds: tuple[str, str], axis: int, step: int, index: int
) -> str:
    """Write the indices that a Slice takes of an axis, and return their name."""
    import numpy as np

    def number(value: int) -> str:
        return rw.constant(np.array([value]), f"number_{value}".replace("-", "minus_"))

    length = rw.before("Gather", [rw.before("Shape", [source], hint="shape"), number(axis)], axis=0)
    one = onnx.helper.make_tensor("", TensorProto.INT64, [1], [1])
    ones = rw.before("ConstantOfShape", [length], hint="ones", value=one)
    places = rw.before("Squeeze", [rw.before("NonZero", [ones])], hint="places", axes=[0])
    last = rw.before("Sub", [length, number(1)], hint="last")
    start, end = (_from_the_front(rw, name, length, index, number) for name in bounds)
    if step < 0:  # count from the end of the axis: the index i is n - 1 - i there
        start, end = (rw.before("Sub", [last, bound], hint="mirrored") for bound in (start, end))
        beyond = rw.before("Cast", [rw.before("Less", [last, start])], to=TensorProto.INT64)
        start = rw.before("Add", [start, rw.before("Mul", [beyond, rw.before("Sub", [last, start])])])
    below = rw.before("Cast", [rw.before("Less", [start, number(0)])], to=TensorProto.INT64)
    start = rw.before("Mul", [start, rw.before("Sub", [number(1), below])], hint="start")
    taken = rw.before("And", [
        rw.before("Not", [rw.before("Less", [places, start])]), rw.before("Less", [places, end])
    ])  # fmt: skip
    if abs(step) != 1:
        offset = rw.before("Sub", [places, start], hint="offset")
        whole = rw.before("Mul", [rw.before("Div", [offset, number(abs(step))]), number(abs(step))])
        taken = rw.before("And", [taken, rw.before("Equal", [offset, whole])])
    found = rw.before("Squeeze", [rw.before("NonZero", [taken])], hint="taken", axes=[0])
    return found if step > 0 else rw.before("Sub", [last, found], hint="from_the_end")


def _from_the_front(
    rw: LoweringRewriter, bounds: str, length: str, index: int, number: Callable[[int], str]
) -> str:
    """Write one bound of several as a vector of one, counted from the front."""
    bound = rw.before("Cast", [bounds], to=TensorProto.INT64)
    bound = rw.before("Gather", [bound, number(index)], hint="bound", axis=0)
    negative = rw.before("Cast", [rw.before("Less", [bound, number(0)])], to=TensorProto.INT64)
    return rw.before("Add", [bound, rw.before("Mul", [negative, length])], hint="bound")
