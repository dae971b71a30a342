"""Read a Resize that is lowered, with sizes that are known in part or are lengths of its own input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.plugins import LoweringRewriter
from onnx_migrate.rewrite.resize.spec import Axis, Origin, ResizeSpec, policy_of, read_resize
from onnx_migrate.standard.resize import sizes_are_lengths
from onnx_migrate.standard.schema import is_onnx

__all__ = ["read_lowered", "resampled"]

_OUTER = {2: 0, 3: 0, 4: 2, 5: 2}
"""Of each rank, the first axis that the kernels for linear and cubic resize."""


def read_lowered(rw: LoweringRewriter) -> ResizeSpec:
    """Return the known facts of a Resize of any version; refuses with `needs-rank` if the rank is unknown.

    Refuses a keep_aspect_ratio_policy whose sizes or lengths are not known.
    """
    rw.need_rank(rw.input(0))
    spec = read_resize(rw, rw.known, elements=rw.partly_known, origins=lambda value: _trace(rw, value))
    if spec is None:
        rw.refuse(
            "its scales or sizes are not of as many axes as it resizes",
            code="bad-scales",
            hint="one is required for every axis",
        )
    if (
        spec.by_sizes
        and not sizes_are_lengths(policy_of(rw))
        and any(axis.size is None for axis in spec.named)
    ):
        policy = policy_of(rw)
        if any(size is None for size in rw.partly_known(rw.input(3)) or [None]):
            rw.need_constant(3, f"sizes, which keep_aspect_ratio_policy={policy} applies to,")
        rw.refuse(
            f"keep_aspect_ratio_policy is {policy!r}, and below opset 18 the lengths of its input must be known to apply it",
            code="needs-shape",
            hint=FIX_DIMS,
        )
    return _keep_outer_axes(spec)


def _keep_outer_axes(spec: ResizeSpec) -> ResizeSpec:
    """Of axes that are not known to change, keep those that no kernel for linear and cubic resizes."""
    axes, rank = list(spec.axes), len(spec.axes)
    if spec.sampling.mode == "nearest" or rank not in (4, 5):
        return spec
    # If neither the second axis of four nor the last is known to stay, all axes but the first are resampled.
    layout_known = rank == 5 or axes[1].kept or axes[3].kept or axes[3].scale not in (None, 1)
    for index in (0, 1) if layout_known and not (rank == 4 and axes[3].kept) else (0,):
        if not axes[index].kept and axes[index].scale is None:
            axes[index] = axes[index].keep()
    return replace(spec, axes=tuple(axes))


def resampled(spec: ResizeSpec) -> list[Axis]:
    """Return the axes to resample: those that change, and those that the kernel for the mode resamples with them."""
    changed = {axis.place for axis in spec.axes if not axis.kept}
    rank = len(spec.axes)
    if spec.sampling.mode != "nearest":
        channels_last = rank == 4 and 1 in changed and 3 not in changed
        kernel = {1, 2} if channels_last else set(range(_OUTER.get(rank, rank), rank))
        changed |= {index for index in kernel if spec.axes[index].length is not None}
    return [spec.axes[index] for index in sorted(changed)]


# Sizes that equal lengths of the input, for any lengths at run time

_DEPTH = 32
_SAME = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


def _trace(rw: LoweringRewriter, value: str, depth: int = _DEPTH) -> list[Origin | None] | None:
    """Return of each element of a vector (or scalar) of lengths whose length it is, None for an element of other origin.

    Follows Shape, Slice, Gather and Concat, as exporters write them. None if the count of elements is not known.
    """
    node = rw.producer(value) if depth else None
    if node is None or not is_onnx(node.domain) or any(entry.ref_attr_name for entry in node.attribute):
        return _untraced(rw, value)
    ints = {entry.name: list(entry.ints) or [entry.i] for entry in node.attribute}
    if node.op_type == "Shape":
        rank = rw.rank(node.input[0])
        if rank is None:
            return None
        cut = slice(ints.get("start", [0])[0], ints["end"][0] if "end" in ints else None)
        lengths: list[Origin | None] = [(node.input[0], axis) for axis in range(rank)]
        return lengths[cut]
    if node.op_type in _SAME:
        return _trace(rw, node.input[0], depth - 1)
    if node.op_type == "Concat":
        parts = [_trace(rw, name, depth - 1) for name in node.input]
        if any(part is None for part in parts):
            return None
        return [entry for part in parts if part is not None for entry in part]
    inner = _trace(rw, node.input[0], depth - 1) if node.op_type in ("Slice", "Gather") else None
    if inner is None:
        return _untraced(rw, value)
    if node.op_type == "Gather":
        indices = _constants(rw, node.input[1])
        if indices is None or any(not -len(inner) <= at < len(inner) for at in indices):
            return None
        return [inner[at] for at in indices]
    bounds = [
        ints[name] if name in ints else _constants(rw, node.input[index]) if index < len(node.input) else [1]
        for name, index in (("starts", 1), ("ends", 2), ("steps", 4))
    ]
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end, step = (bound[0] for bound in bounds if bound is not None)
    return inner[start:end] if step == 1 else None


def _untraced(rw: LoweringRewriter, value: str) -> list[Origin | None] | None:
    shape = rw.shape(value)
    if shape is None or len(shape) > 1:
        entries = rw.partly_known(value)
        return None if entries is None else [None] * len(entries)
    count = shape[0] if shape else 1
    return None if count is None else [None] * count


def _constants(rw: LoweringRewriter, value: str) -> Sequence[int] | None:
    array = rw.known(value)
    return None if array is None else [int(number) for number in array.reshape(-1)]
