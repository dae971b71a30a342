"""Inputs made up within what a model allows: types, shapes, and the range of values that its nodes can take."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, ValueInfoProto

from onnx_migrate.errors import UsageError
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import Array
from onnx_migrate.verify.inputs.value_ranges import Range, input_ranges

__all__ = ["Sizes", "make_feed", "plan_behind", "size_plans"]

MEMORY_BOUND = 1 << 28
"""No made-up input takes more bytes than this."""

_UNTRUSTED = frozenset({"", "?", "None", "none", "-1", "0", "unk", "dynamic"})
"""Symbols that exporters write for "unknown": twice the same does not mean the same size."""

_BATCHES = (2, 1, 3)
_PLANES = (
    (64, 96),
    (48, 96),
    (32, 100),
    (224, 224),
    (256, 320),
    (48, 192),
    (112, 112),
    (299, 299),
    (512, 512),
    (8, 12),
)
_LENGTHS = (7, 16, 1, 64, 128, 256, 512, 1600, 16000)
"""Of sequences; the last are windows of sound."""
_CHANNELS = (1, 3, 4)
_PLANS = 64


@dataclass(frozen=True)
class Sizes:
    """One choice of sizes for what a model leaves open."""

    batch: int
    plane: tuple[int, int]
    length: int
    rank: int


def size_plans(model: onnx.ModelProto) -> list[Sizes]:
    """Return the choices of sizes to try, best first; only one where the model leaves nothing open."""
    inputs = [value.type.tensor_type for value in fed_inputs(model.graph)]
    ranked = all(kind.HasField("shape") for kind in inputs)
    open_dims = [
        (axis, len(kind.shape.dim))
        for kind in inputs
        for axis, dim in enumerate(kind.shape.dim)
        if dim.dim_value <= 0
    ]
    batches = _BATCHES if any(axis == 0 for axis, _ in open_dims) or not ranked else _BATCHES[:1]
    planes = (
        _PLANES if any(rank >= 4 and axis >= 2 for axis, rank in open_dims) or not ranked else _PLANES[:1]
    )
    lengths = (
        _LENGTHS if any(rank < 4 and axis > 0 for axis, rank in open_dims) or not ranked else _LENGTHS[:1]
    )
    ranks = (0,) if ranked else (4, 2, 3, 1)
    places = product(range(len(ranks)), range(len(lengths)), range(len(planes)), range(len(batches)))
    # Those first that leave the best of each least: with all of one before the next, most would never be tried.
    ordered = sorted(places, key=sum)[:_PLANS]
    return [Sizes(batches[b], planes[p], lengths[n], ranks[r]) for r, n, p, b in ordered]


def plan_behind(plans: list[Sizes], failed: int) -> int:
    """Return the place of the next plan whose lengths differ from all up to `failed`, or their number."""
    seen = {(plan.plane, plan.length) for plan in plans[: failed + 1]}
    following = range(failed + 1, len(plans))
    return next((at for at in following if (plans[at].plane, plans[at].length) not in seen), len(plans))


def make_feed(
    model: onnx.ModelProto, other: onnx.ModelProto | None, sizes: Sizes, style: str, seed: int
) -> dict[str, Any] | None:
    """Return values for every input, None if too large. Raises UsageError for types that cannot be made.

    `style`: "normal" (standard normal), "wide" (ten times that, with zeros), "uniform" (0 to 1), "pixels" (0
    to 255), "small".
    A dim that `model` leaves open takes the number that `other` gives for it, if any.
    """
    rng = np.random.default_rng([seed, *style.encode()])
    ranges = input_ranges(model)
    twin = {value.name: value for value in other.graph.input} if other is not None else {}
    symbols: dict[str, int] = {}
    feed: dict[str, Any] = {}
    for value in fed_inputs(model.graph):
        kind = value.type
        copies = 1
        if kind.WhichOneof("value") == "optional_type":
            kind = kind.optional_type.elem_type
        if kind.WhichOneof("value") == "sequence_type":
            kind, copies = kind.sequence_type.elem_type, 3
        if kind.WhichOneof("value") != "tensor_type":
            raise UsageError(
                f"input {value.name!r} is no tensor; no value can be made up for it", code="input-data"
            )
        shape = _shape(kind, twin.get(value.name), sizes, symbols)
        if prod(shape) * 8 > MEMORY_BOUND:
            return None
        element = kind.tensor_type.elem_type
        made = [
            _values(rng, element, shape, ranges.get(value.name), value.name, style) for _ in range(copies)
        ]
        feed[value.name] = made if copies > 1 else made[0]
    return feed


def _shape(
    kind: TypeProto, twin: ValueInfoProto | None, sizes: Sizes, symbols: dict[str, int]
) -> tuple[int, ...]:
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return _unranked(sizes)
    known = list(twin.type.tensor_type.shape.dim) if twin is not None else []
    rank = len(tensor.shape.dim)
    dims = tensor.shape.dim
    channel = rank - 1 if rank >= 4 and dims[1].dim_value <= 0 and dims[-1].dim_value in _CHANNELS else 1
    shape = []
    for axis, dim in enumerate(dims):
        size = dim.dim_value
        if size <= 0 and len(known) == rank:
            size = known[axis].dim_value
        if size <= 0:
            wanted = _size(axis, rank, channel, sizes) + (
                len(symbols) if rank < 4 and axis > 0 and sizes.length == 7 else 0
            )
            if rank == 3 and axis == 1 and dims[0].dim_value > 1:
                wanted = sizes.batch  # the state of a recurrent network: layers, batch, features
            trusted = dim.dim_param not in _UNTRUSTED
            size = symbols.setdefault(dim.dim_param, wanted) if trusted else wanted
        shape.append(size)
    return tuple(shape)


def _size(axis: int, rank: int, channel: int, sizes: Sizes) -> int:
    if axis == 0:
        return sizes.batch
    if rank < 4:
        return sizes.length
    return 3 if axis == channel else sizes.plane[min(axis - (2 if axis > channel else 1), 1)]


def _unranked(sizes: Sizes) -> tuple[int, ...]:
    return (sizes.batch, 3, *sizes.plane) if sizes.rank == 4 else (sizes.batch, sizes.length, 4)[: sizes.rank]


def _values(
    rng: np.random.Generator,
    element: int,
    shape: tuple[int, ...],
    limits: Range | None,
    name: str,
    style: str,
) -> Array:
    if element == TensorProto.STRING:
        words = np.array(["", "a", "Straße", "zebra 7"], dtype=object)
        return words[rng.integers(0, len(words), shape)]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    if element == TensorProto.BOOL:
        if limits is not None and limits.low == limits.high == 1:
            return np.ones(shape, dtype)
        return np.full(shape, style != "wide", dtype) if prod(shape) <= 1 else rng.random(shape) < 0.5
    if limits is not None and limits.pattern:
        return np.resize(np.array(limits.pattern), shape).astype(dtype)
    if dtype.kind in "iu":
        return _integers(rng, dtype, shape, limits, name, style)
    if limits is not None and not limits.weak:
        return rng.uniform(limits.low, limits.high, shape).astype(dtype)
    if limits is not None and "mask" in name.lower():
        return (rng.random(shape) < 0.8).astype(dtype)
    values = _floats(rng, shape, style)
    if dtype.kind == "c":
        values = values + 1j * _floats(rng, shape, style)
    return np.asarray(values).astype(dtype)


def _floats(rng: np.random.Generator, shape: tuple[int, ...], style: str) -> Array:
    if style in ("uniform", "pixels"):
        return rng.random(shape) * (255.0 if style == "pixels" else 1.0)
    values = rng.standard_normal(shape) * {"normal": 1.0, "wide": 10.0, "small": 0.01}[style]
    return np.where(rng.random(shape) < 0.05, 0.0, values) if style == "wide" else values


def _integers(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    limits: Range | None,
    name: str,
    style: str,
) -> Array:
    if (limits is None or limits.weak) and "mask" in name.lower():
        values = (rng.random(shape) < 0.8).astype(dtype)
        if values.ndim > 1:
            values[..., 0] = 1  # a row without a single place to look at is no case for attention
        return values
    if limits is not None:
        low, high = int(limits.low), int(limits.high)
    else:
        info = np.iinfo(dtype)
        reach = 255 if dtype.itemsize == 1 else 100 if style == "wide" else 8
        low, high = max(int(info.min), -reach), min(int(info.max), reach)
    return rng.integers(low, high + 1, shape).astype(dtype)
