"""Feeds on which two models may differ: extreme and random ones, made from one feed on which the original runs.

This generator shares nothing with that of `verify`. A feed is valid only if the original runs on it; the caller tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from tests.campaigns.proof.mutations import nodes_of

__all__ = ["feeds"]

Feed = dict[str, Any]

_NAN_DEFINED = {
    "Abs", "Add", "And", "Atan", "Ceil", "Clip", "Concat", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Expand",
    "Flatten", "Floor", "Gather", "Greater", "GreaterOrEqual", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less",
    "LessOrEqual", "Mul", "Neg", "Not", "Or", "Pad", "PRelu", "Relu", "Reshape", "Selu", "Sigmoid", "Sin", "Slice",
    "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Unsqueeze", "Where", "Constant",
}  # fmt: skip
"""Operators whose results of NaN and infinities the standard, or IEEE 754, defines."""

_DIVIDING = {"Div", "Mod"}
_INDEXING = {"ScatterElements", "ScatterND", "Scatter", "TensorScatter"}
"""Indices that repeat have no defined result in these, unless there is a reduction: the recorded ones are kept."""

_EXACT_INTEGERS = {
    "Abs", "Cast", "Clip", "Concat", "Equal", "Expand", "Flatten", "Gather", "Greater", "GreaterOrEqual", "Identity",
    "Less", "LessOrEqual", "Max", "Min", "Neg", "Not", "Reshape", "Sign", "Slice", "Squeeze", "Tile", "Transpose",
    "Unsqueeze", "Where", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "Constant",
}  # fmt: skip
"""Operators in which large integers overflow nothing."""


def feeds(
    model: onnx.ModelProto, base: Feed, other: onnx.ModelProto, seed: int = 0
) -> Iterator[tuple[str, Feed]]:
    """Yield feeds with the name of the corner that they reach, the recorded one first."""
    yield "recorded", base
    rng = np.random.default_rng(seed)
    operators = {node.op_type for node in nodes_of(model.graph)}
    for function in model.functions:
        operators |= {node.op_type for node in function.node}
    thresholds = sorted(_numbers(model) | _numbers(other))
    for name, make in _floats(operators, thresholds).items():
        yield name, _replaced(base, "f", make, rng)
    for name, make in _integers(operators, thresholds).items():
        kept = _kept_inputs(model, operators)
        yield name, _replaced(base, "iu", make, rng, kept)
        yield (
            f"{name}, other floats",
            _replaced(
                _replaced(base, "iu", make, rng, kept), "f", lambda a, r: r.standard_normal(a.shape) * 2, rng
            ),
        )
    yield from _booleans(base, rng)
    yield from _strings(base, other, model, rng)
    yield from _maps(base)
    yield from _sizes(model, base, rng)


def _replaced(
    base: Feed, kinds: str, make: Any, rng: np.random.Generator, kept: frozenset[str] = frozenset()
) -> Feed:
    def other(value: Any) -> Any:
        if isinstance(value, list):
            return [other(one) for one in value]
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or not value.dtype.isnative:
            return value
        made = make(value, rng)
        if value.dtype.kind in "iu":
            limits = np.iinfo(value.dtype)
            made = np.clip(made, max(limits.min, -(2**62)), min(limits.max, 2**62))
        with np.errstate(all="ignore"):
            return np.asarray(made).astype(value.dtype).reshape(value.shape)

    return {name: value if name in kept else other(value) for name, value in base.items()}


Make = Callable[[Any, np.random.Generator], Any]


def _floats(operators: set[str], thresholds: list[float]) -> dict[str, Make]:
    made: dict[str, Make] = {
        "normal": lambda a, r: r.standard_normal(a.shape),
        "near recorded": lambda a, r: (
            a * (1 + 0.3 * r.standard_normal(a.shape)) + 0.1 * r.standard_normal(a.shape)
        ),
        "wide": lambda a, r: 10 * r.standard_normal(a.shape),
        "positive": lambda a, r: r.uniform(0, 1, a.shape),
        "above one": lambda a, r: r.uniform(1, 4, a.shape),
        "ties": lambda a, r: r.integers(-3, 4, a.shape) * 0.5,
        "repeated": lambda a, r: r.choice([1.0, 2.0], a.shape),
        "zeros": lambda a, r: r.choice([0.0, -0.0, 1.0], a.shape),
        "all zero": lambda a, r: np.zeros(a.shape),
        "hundreds": lambda a, r: 300 * r.standard_normal(a.shape),
        "one sign, large": lambda a, r: r.uniform(100, 1000, a.shape),
        "thousands": lambda a, r: 5000 * r.standard_normal(a.shape),
        "tiny": lambda a, r: 1e-3 * r.standard_normal(a.shape),
        "denormal": lambda a, r: 1e-6 * r.standard_normal(a.shape),
        "one large": lambda a, r: np.where(r.random(a.shape) < 0.1, 1e4, r.standard_normal(a.shape)),
    }
    if thresholds:

        def near(a: Any, r: np.random.Generator) -> Any:
            chosen = r.choice(thresholds, a.shape).astype(np.float32 if a.dtype.itemsize > 2 else a.dtype)
            moved = [
                chosen,
                np.nextafter(chosen, chosen.dtype.type(np.inf)),
                np.nextafter(chosen, chosen.dtype.type(-np.inf)),
            ]
            return np.choose(r.integers(0, 3, a.shape), moved)

        made["thresholds"] = near
        made["thresholds alone"] = lambda a, r: r.choice(thresholds, a.shape)
        made["beside thresholds"] = lambda a, r: (
            r.choice(thresholds, a.shape) * (1 + 0.02 * r.standard_normal(a.shape))
        )
    if operators <= _NAN_DEFINED:
        made["NaN and infinities"] = lambda a, r: np.resize(
            r.permutation([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0]), a.shape
        )
        made["infinities"] = lambda a, r: np.where(
            r.random(a.shape) < 0.2, np.inf, r.standard_normal(a.shape)
        )
    return made


def _integers(operators: set[str], thresholds: list[float]) -> dict[str, Make]:
    low = 1 if operators & _DIVIDING else 0
    made: dict[str, Make] = {
        "zero and one": lambda a, r: r.integers(low, 2 + low, a.shape),
        "small integers": lambda a, r: r.integers(low, 10, a.shape),
        "equal integers": lambda a, r: np.full(a.shape, 1),
        "all zero integers": lambda a, r: np.full(a.shape, low),
        "negative integers": lambda a, r: (
            np.where(r.random(a.shape) < 0.5, -1, 1) * r.integers(1, 8, a.shape)
        ),
        "minus one": lambda a, r: np.full(a.shape, -1),
        "hundreds of integers": lambda a, r: r.integers(-300, 300, a.shape) * 2 + 1,
        "last rows": lambda a, r: np.where(r.random(a.shape) < 0.5, a, a + 1),
    }
    whole = [
        int(one) for one in thresholds if float(one).is_integer() and (one or not low) and abs(one) < 2**31
    ]
    if whole:
        made["integers of the model"] = lambda a, r: (
            r.choice(whole, a.shape) + (0 if low else r.integers(-1, 2, a.shape))
        )
        made["integers of the model alone"] = lambda a, r: r.choice(whole, a.shape)
    if operators <= _EXACT_INTEGERS:
        made["large integers"] = lambda a, r: r.integers(-(2**31) + 1, 2**31 - 1, a.shape)
    return made


def _kept_inputs(model: onnx.ModelProto, operators: set[str]) -> frozenset[str]:
    """Return the inputs of integers that have no other valid value: indices to write at, and amounts of a shift."""
    if operators & (_INDEXING | {"BitShift", "Pow"}):
        return frozenset(
            value.name for value in model.graph.input if value.type.tensor_type.elem_type != TensorProto.FLOAT
        )
    return frozenset()


def _booleans(base: Feed, rng: np.random.Generator) -> Iterator[tuple[str, Feed]]:
    if not any(isinstance(value, np.ndarray) and value.dtype == bool for value in base.values()):
        return
    makes: dict[str, Make] = {
        "all true": lambda a, r: np.ones(a.shape),
        "all false": lambda a, r: np.zeros(a.shape),
        "random bits": lambda a, r: r.random(a.shape) < 0.5,
        "left padding": lambda a, r: np.broadcast_to(
            np.arange(max(1, a.shape[-1] if a.ndim else 1)) > 0, a.shape
        ),
    }
    for name, make in makes.items():
        for floats in (lambda a, r: a, lambda a, r: r.standard_normal(a.shape) * 2):
            yield name, _replaced(_replaced(base, "b", make, rng), "f", floats, rng)


def _strings(
    base: Feed, other: onnx.ModelProto, model: onnx.ModelProto, rng: np.random.Generator
) -> Iterator[tuple[str, Feed]]:
    arrays = [value for value in base.values() if isinstance(value, np.ndarray) and value.dtype.kind in "OUS"]
    if not arrays:
        return
    words = {str(one) for array in arrays for one in array.ravel()} | _texts(model) | _texts(other)
    words |= {word.upper() for word in words} | {word.lower() for word in words}
    for name, pool in (
        ("strings of the model", sorted(words)),
        ("unknown strings", [*sorted(words)[:3], "Zz", "", "été", "a b"]),
    ):
        for _ in range(3):
            made: Feed = {}
            for key, value in base.items():
                is_text = isinstance(value, np.ndarray) and value.dtype.kind in "OUS"
                made[key] = rng.choice(pool, value.shape).astype(object) if is_text else value
            yield name, made


def _maps(base: Feed) -> Iterator[tuple[str, Feed]]:
    for key, value in base.items():
        if isinstance(value, dict) and value:
            text = isinstance(next(iter(value)), str)
            yield "other keys", {**base, key: {"b": 3.0, "c": -1.0} if text else {0: 2.0, 1: 5.0}}
            yield "unknown key", {**base, key: {"zz": 3.0, "a": 1.0} if text else {1: 7.0}}


def _sizes(model: onnx.ModelProto, base: Feed, rng: np.random.Generator) -> Iterator[tuple[str, Feed]]:
    """Yield feeds of other sizes for dims that are open, equal symbols with equal sizes."""
    symbols = {}
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param and value.name in base and isinstance(base[value.name], np.ndarray):
                symbols[dim.dim_param] = base[value.name].shape[axis]
    for symbol in symbols:
        for size in (1, symbols[symbol] + 1, 2 * symbols[symbol], 7, 50):
            yield f"{symbol} of {size}", _resized(model, base, {**symbols, symbol: size}, rng)


def _resized(model: onnx.ModelProto, base: Feed, sizes: Mapping[str, int], rng: np.random.Generator) -> Feed:
    made = dict(base)
    for value in model.graph.input:
        array = base.get(value.name)
        if not isinstance(array, np.ndarray) or not array.size:
            continue
        dims = value.type.tensor_type.shape.dim
        shape = [sizes.get(dim.dim_param, size) for dim, size in zip(dims, array.shape, strict=False)]
        if array.dtype.kind == "f":
            made[value.name] = rng.standard_normal(shape).astype(array.dtype)
        else:
            made[value.name] = np.resize(array, shape)
    return made


def _numbers(model: onnx.ModelProto) -> set[float]:
    """Return the numbers of small constants and attributes, which an input may be compared with."""
    found: set[float] = set()
    for node in nodes_of(model.graph):
        for attribute in node.attribute:
            found.update([attribute.f] if attribute.type == onnx.AttributeProto.FLOAT else attribute.floats)
            found.update([*attribute.ints][:20])
    for tensor in model.graph.initializer:
        if tensor.data_type in (1, 6, 7, 10, 11) and int(np.prod(tensor.dims)) <= 64:
            found.update(float(one) for one in numpy_helper.to_array(tensor).ravel())
    return {one for one in found if np.isfinite(one) and abs(one) < 1e30}


def _texts(model: onnx.ModelProto) -> set[str]:
    return {
        text.decode(errors="replace")
        for node in nodes_of(model.graph)
        for attribute in node.attribute
        for text in attribute.strings
    }
