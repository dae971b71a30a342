"""Compares a value of two runs, element by element: within a tolerance, or bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import all_nodes, initializer_types
from onnx_migrate.verdicts import Comparison
from onnx_migrate.verify.compare.arrays import (
    Array,
    differing_bits,
    in_blocks,
    is_float,
    paired,
    same_bits,
    sum_of_squares,
    widened,
)

__all__ = [
    "NOTHING_OBSERVED",
    "OTHER_ELEMENTS",
    "Difference",
    "Observed",
    "Rounding",
    "Tolerance",
    "allowance",
    "bit_difference",
    "coarsest_eps",
    "compare",
    "finite_parts",
    "is_quantized",
]


_EPS: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-23,
    TensorProto.FLOAT16: 2.0**-10,
    TensorProto.BFLOAT16: 2.0**-7,
    TensorProto.DOUBLE: 2.0**-52,
}
"""The distance from 1 to the next larger number of a type."""


@dataclass(frozen=True)
class Tolerance:
    """What may differ. With `rtol` or `atol`: `|after - before| <= atol + rtol * |before|`, per element.

    Otherwise, per output: `max(floor * eps * scale, min(factor * noise, ceiling * scale))`. The scale is the largest
    finite magnitude of the original's output, eps that of the coarsest float type in the model, and noise the
    difference measured between runs of the original (noise.py). `quantum` lets int8 and uint8 outputs differ by one
    quantisation step. Other integers, bools and strings must be equal.
    """

    rtol: float | None = None
    atol: float | None = None
    floor: float = 8.0
    factor: float = 10.0
    ceiling: float = 1e-2
    quantum: bool = False
    eps: float = 0.0

    @property
    def is_given(self) -> bool:
        """Whether the user said what may differ, in place of the rule."""
        return self.rtol is not None or self.atol is not None


def allowance(tolerance: Tolerance, scale: float, noise: float, dtype: np.dtype[Any]) -> float:
    """Return the absolute difference that rounding explains in an output of this scale, noise and type.

    Numbers below the least normal one are as far apart as those just above it: two of these steps are always allowed.
    """
    eps = max(tolerance.eps, _eps(dtype))
    floor = max(tolerance.floor * eps * scale, 2 * _eps(dtype) * _LEAST_NORMAL.get(dtype.name, 0.0))
    return max(floor, min(tolerance.factor * noise, tolerance.ceiling * scale))


def coarsest_eps(model: onnx.ModelProto) -> float:
    """Return the largest eps of the float types of inputs, constants and casts; 0 without any."""
    kinds = {dtype for _, dtype, _ in initializer_types(model.graph)}
    kinds.update(value.type.tensor_type.elem_type for value in model.graph.input)
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                kinds.add(attribute.t.data_type)
            elif node.op_type == "Cast" and attribute.name == "to":
                kinds.add(attribute.i)
    return max((_EPS[kind] for kind in kinds if kind in _EPS), default=0.0)


def is_quantized(model: onnx.ModelProto) -> bool:
    """Whether the model rounds to integers by design, so that a rounding error can become a quantisation step."""
    return any(
        "QLinear" in n.op_type or "Quantize" in n.op_type or "Integer" in n.op_type for n in all_nodes(model)
    )


def _eps(dtype: np.dtype[Any]) -> float:
    if dtype.kind == "c":
        return float(np.finfo(dtype).eps)
    known = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
    return known.get(dtype.name, 2.0**-3)


_LEAST_NORMAL = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}

OTHER_ELEMENTS = "another number of elements, or other keys"
"""What differs in a sequence or map whose tensors cannot be compared one by one."""


@dataclass(frozen=True)
class Rounding:
    """By how much a run that differs by rounding only differs, at most, and in how many elements."""

    largest: float = 0.0
    elements: int = 0


@dataclass(frozen=True)
class Observed:
    """What is known of a tensor of the original: what rounding changes in it, and its scale.

    `largest` is the largest difference between runs of the original that differ by rounding only, infinite where discrete
    values change (an index near a tie): then up to a hundredth of the elements may differ. `typical` is the same in the root
    mean square, which does not grow with the number of elements, infinite where it was not measured. `scale` is the largest
    finite magnitude over all feeds. `changed` is the share of discrete elements that rounding changes. `proved` is what a
    model changed that is proved to differ by rounding only: twice as much is allowed.
    """

    largest: float = 0.0
    typical: float = float("inf")
    scale: float = 0.0
    changed: float = 0.0
    proved: Rounding = field(default_factory=Rounding)


NOTHING_OBSERVED = Observed()


def compare(
    name: str,
    original: Array | None,
    result: Array | None,
    tolerance: Tolerance,
    known: Observed = NOTHING_OBSERVED,
) -> Comparison:
    """Compare one tensor of an output, of which something is known; None stands for an absent optional."""
    if original is None or result is None:
        problem = "" if original is result else "it is present in only one of the models"
        return Comparison(name, None, None, "none", "none", problem=problem)
    shapes, types = (original.shape, result.shape), (str(original.dtype), str(result.dtype))
    entry = Comparison(name, *shapes, *types, elements=original.size)
    if original.shape != result.shape:
        return replace(entry, problem=f"shape {list(original.shape)} became {list(result.shape)}")
    if original.dtype != result.dtype:
        return replace(entry, problem=f"element type {types[0]} became {types[1]}")
    if not is_float(original):
        return _discrete(entry, original, result, tolerance, known)
    differing = differing_bits(original, result)
    if differing == 0:
        return entry
    return _continuous(replace(entry, differing=differing), original, result, tolerance, known)


def bit_difference(name: str, original: object, result: object) -> str:
    """Describe the first tensor in which two values are not bit for bit the same; "" where they are."""
    parts = paired(name, original, result)
    if parts is None:
        return f"{name!r} has {OTHER_ELEMENTS}"
    for part, a, b in parts:
        entry = compare(part, a, b, Tolerance(atol=float("inf")))
        if entry.problem:
            return f"{part!r} differs: {entry.problem}"
        if not entry.identical:
            size = f"{entry.largest_absolute:.3g} ({entry.largest_relative:.3g} of the largest magnitude)"
            return f"{part!r} differs in {entry.differing} of {count_of(entry.elements, 'element')}, by up to {size}"
    return ""


def _continuous(
    entry: Comparison, original: Array, result: Array, tolerance: Tolerance, known: Observed
) -> Comparison:
    found = Difference.between(original, result)
    scale, largest, problem = found.scale, found.largest, found.problem
    if tolerance.is_given:
        rtol, atol = tolerance.rtol or 0.0, tolerance.atol or 0.0
        allowed = atol + rtol * scale if found.elements else 0.0
        wrong = sum(
            int(np.count_nonzero(error > atol + rtol * magnitude))
            for magnitude, error in finite_parts(original, result)
        )
    else:
        # A saturated output (a Sigmoid near zero) has rounding errors of the scale it had before it saturated.
        whole = known.scale if scale < 1e-3 * known.scale else scale
        allowed = allowance(tolerance, whole, known.largest, original.dtype)
        allowed = max(allowed, 2 * known.proved.largest)
        wrong = 0
        if largest > allowed:
            wrong = sum(int(np.count_nonzero(error > allowed)) for _, error in finite_parts(original, result))
        usual = allowance(tolerance, whole, known.typical, original.dtype)
        if not wrong and found.typical > max(usual, 2 * known.proved.largest):
            problem = problem or (
                f"elements differ by {found.typical:.3g} in the root mean square, by more than the {usual:.3g} allowed"
            )
    if wrong and not problem:
        problem = f"{wrong} of {count_of(original.size, 'element')} differ by more than is allowed:"
        problem += f" the largest difference is {largest:.3g}, allowed is {allowed:.3g}"
    whole = max(scale, known.scale) or found.scale_after
    return replace(
        entry,
        largest_absolute=largest,
        largest_relative=largest / whole if whole else 0.0,
        allowed=allowed,
        problem=problem,
    )


def _discrete(
    entry: Comparison, original: Array, result: Array, tolerance: Tolerance, known: Observed
) -> Comparison:
    unequal = np.asarray(original != result)
    differing = int(np.count_nonzero(unequal))
    largest, allowed, problem = 0.0, 0.0, ""
    integers = original.dtype.kind in "iu"
    if differing and integers:
        largest = float(np.max(np.abs(original.astype(np.float64) - result.astype(np.float64))))
    near_ties = max(1, original.size // 100) if known.largest == float("inf") else 0
    is_proved = differing <= 2 * known.proved.elements and largest <= 2 * known.proved.largest
    if differing:
        problem = f"{differing} of {count_of(original.size, 'element')} are not equal"
        problem += f", by up to {largest:.3g}" if largest else ""
        if tolerance.quantum and original.dtype in (np.int8, np.uint8) and largest <= 1:
            allowed, problem = 1.0, ""
        elif differing <= near_ties or is_proved:
            problem = ""
    scale = float(np.max(np.abs(original.astype(np.float64)), initial=0.0)) if integers else 0.0
    return replace(
        entry,
        largest_absolute=largest,
        largest_relative=largest / scale if scale else 0.0,
        allowed=allowed,
        differing=differing,
        problem=problem,
    )


@dataclass
class Difference:
    """What is measured of two arrays, of floats over the elements that are finite in both.

    `scale` and `scale_after` are the largest magnitudes, `largest` and `typical` the largest and the root mean square
    difference, `problem` says whether those that are not finite differ. Of discrete values `largest` alone is measured: 0
    where they are equal, else infinity, as for arrays of another shape or dtype. All is 0 for floats of the same bits.
    """

    scale: float = 0.0
    scale_after: float = 0.0
    largest: float = 0.0
    typical: float = 0.0
    elements: int = 0
    problem: str = ""

    @classmethod
    def between(cls, original: Array, result: Array) -> Difference:
        """Measure in blocks, which takes little memory."""
        if original.shape != result.shape or original.dtype != result.dtype:
            return cls(largest=float("inf"))
        if not is_float(original):
            return cls(largest=0.0 if np.array_equal(original, result) else float("inf"))
        if same_bits(original, result):
            return cls()
        found, squares, infinities = cls(), 0.0, ""
        for one, other in in_blocks(original, result):
            a, b = widened(one), widened(other)
            finite = np.isfinite(a)
            if not np.array_equal(np.isnan(a), np.isnan(b)):
                found.problem = "NaN at different positions"
            elif not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
                a[~finite], b[~finite], equal_nan=True
            ):
                infinities = "infinities at different positions or of different sign"
            finite &= np.isfinite(b)
            a, b = a[finite], b[finite]
            error = np.abs(b - a)
            found.scale = max(found.scale, float(np.max(np.abs(a), initial=0.0)))
            found.scale_after = max(found.scale_after, float(np.max(np.abs(b), initial=0.0)))
            found.largest = max(found.largest, float(np.max(error, initial=0.0)))
            squares, found.elements = squares + sum_of_squares(error), found.elements + error.size
        found.typical = float(np.sqrt(squares / found.elements)) if found.elements else 0.0
        found.problem = found.problem or infinities
        return found


def finite_parts(original: Array, result: Array) -> Iterator[tuple[Array, Array]]:
    """Yield magnitudes and differences of the elements that are finite in both arrays, in blocks."""
    for one, other in in_blocks(original, result):
        a, b = widened(one), widened(other)
        finite = np.isfinite(a) & np.isfinite(b)
        yield np.abs(a[finite]), np.abs(b[finite] - a[finite])
