"""The evaluator of shape arithmetic: the operators that exporters use to compute shapes, scales and sizes.

Each operator computes in the element type of its operands, as ONNX Runtime's kernels do. It rounds float32 products to
float32, and divides integers towards zero. A value may be known in part: in the shape [N, 3, 5, 7] all elements but the
first are known. `compute` evaluates the elements, and `propagate` also returns the mask of the known ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

__all__ = [
    "ELEMENTWISE",
    "LARGEST",
    "MOVEMENT",
    "OPERATORS",
    "Array",
    "PartialArray",
    "attributes_of",
    "compute",
    "propagate",
    "same_pads",
]

Array = np.ndarray[Any, Any]
Function = Callable[..., Array]

LARGEST = 1024
"""The largest number of elements, of the inputs together and of the output, that is evaluated."""


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    _reject_zeros(b)
    quotient = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient), a.dtype)


def _modulo(attributes: dict[str, Any], a: Array, b: Array) -> Array:
    if a.dtype.kind != "f":
        _reject_zeros(b)
    return np.asarray(np.fmod(a, b) if attributes.get("fmod") else np.mod(a, b))


def _reject_zeros(divisor: Array) -> None:
    if bool((divisor == 0).any()):
        raise ZeroDivisionError  # undefined for integers, for which numpy returns 0


def _slice(attributes: dict[str, Any], x: Array, *rest: Array | None) -> Array:
    if "starts" in attributes:
        starts, ends, axes = attributes["starts"], attributes["ends"], attributes.get("axes")
        steps = None
    else:
        starts, ends, axes, steps = (
            None if part is None else part.tolist() for part in (*rest, None, None, None, None)[:4]
        )
    axes = axes or range(len(starts))
    cuts = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts), strict=True):
        lowest = -x.shape[axis] if step < 0 else start  # a negative step starts at the first element at least
        cuts[axis] = slice(max(start, lowest), end, step)
    return x[tuple(cuts)]


def _axes(attributes: dict[str, Any], rest: tuple[Array, ...]) -> tuple[int, ...] | None:
    """Return the axes of an attribute (up to opset 12 or 17) or of an input, None for the default."""
    if attributes.get("axes") is not None:
        return tuple(attributes["axes"])
    return tuple(rest[0].tolist()) if rest else None


def _reduction(function: Callable[..., Any], **extra: Any) -> Function:
    def reduced(attributes: dict[str, Any], x: Array, *rest: Array) -> Array:
        axes = _axes(attributes, rest)
        if axes == () and not attributes.get("noop_with_empty_axes"):
            axes = None
        reduced_values = function(x, axes, keepdims=bool(attributes.get("keepdims", 1)), **extra)
        # NumPy widens sums of small integers, and ONNX keeps the type of the input.
        return np.asarray(reduced_values, x.dtype)

    return reduced


def _reshape(attributes: dict[str, Any], x: Array, shape: Array) -> Array:
    if attributes.get("allowzero"):
        return x.reshape(shape.tolist())
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(shape.tolist())])


def _constant_of_shape(attributes: dict[str, Any], shape: Array) -> Array:
    value = attributes.get("value")
    fill = np.zeros(1, np.float32) if value is None else np.asarray(numpy_helper.to_array(value))
    return np.full(shape.tolist(), fill.reshape(-1)[0], fill.dtype)


def _cast(x: Array, dtype: np.dtype[Any]) -> Array:
    if "O" in (x.dtype.kind, dtype.kind):
        raise TypeError  # texts: how kernels write and read numbers is their own
    return x.astype(dtype)


def _is_inf(attributes: dict[str, Any], x: Array) -> Array:
    signs = attributes.get("detect_negative", 1), attributes.get("detect_positive", 1)
    return np.isinf(x) & np.where(x < 0, *map(bool, signs))


_MOVEMENT: dict[str, Function] = {
    "Identity": lambda _, x: x,
    "Concat": lambda at, *parts: np.concatenate(parts, at["axis"]),
    "Gather": lambda at, x, index: np.take(x, index, at.get("axis", 0)),
    "Slice": _slice,
    "Squeeze": lambda at, x, *rest: np.squeeze(x, _axes(at, rest) or None),
    "Unsqueeze": lambda at, x, *rest: np.expand_dims(x, _axes(at, rest) or ()),
    "Reshape": _reshape,
    "Transpose": lambda at, x: np.transpose(x, at.get("perm")),
    "Expand": lambda _, x, shape: x * np.ones(shape.tolist(), x.dtype),
}

_ELEMENTWISE: dict[str, Function] = {
    "Add": lambda _, a, b: a + b,
    "Sub": lambda _, a, b: a - b,
    "Mul": lambda _, a, b: a * b,
    "Div": lambda _, a, b: _divide(a, b),
    "Mod": _modulo,
    "Min": lambda _, *parts: np.minimum.reduce(np.broadcast_arrays(*parts)),
    "Max": lambda _, *parts: np.maximum.reduce(np.broadcast_arrays(*parts)),
    "Neg": lambda _, x: -x,
    "Abs": lambda _, x: np.abs(x),
    "Floor": lambda _, x: np.floor(x),
    "Ceil": lambda _, x: np.ceil(x),
    "Sqrt": lambda _, x: np.sqrt(x),
    "IsInf": _is_inf,
    "IsNaN": lambda _, x: np.isnan(x),
    "Not": lambda _, x: ~x,
    "Equal": lambda _, a, b: a == b,
    "Less": lambda _, a, b: a < b,
    "Greater": lambda _, a, b: a > b,
    "LessOrEqual": lambda _, a, b: a <= b,
    "GreaterOrEqual": lambda _, a, b: a >= b,
    "And": lambda _, a, b: a & b,
    "Or": lambda _, a, b: a | b,
    "Xor": lambda _, a, b: a ^ b,
    "Where": lambda _, c, a, b: np.asarray(np.where(c, a, b)),
    "Cast": lambda at, x: _cast(x, helper.tensor_dtype_to_np_dtype(at["to"])),
}


def _range(_: dict[str, Any], start: Array, limit: Array, delta: Array) -> Array:
    """Return the numbers of a Range, if adding up gives the same as multiplying: kernels do either."""
    count = max(0, math.ceil((limit - start).item() / delta.item()))
    if count > LARGEST:
        raise OverflowError
    multiplied = np.asarray(start + np.arange(count).astype(start.dtype) * delta, start.dtype)
    added = np.add.accumulate(np.concatenate([start.reshape(1), np.full(count, delta, start.dtype)]))[:count]
    if not np.array_equal(multiplied, added):
        raise ValueError
    return multiplied


def _cumulated(attributes: dict[str, Any], x: Array, axis: Array) -> Array:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise ValueError  # no exporter counts sizes so
    return np.cumsum(x, axis.item(), dtype=x.dtype)


def _one_hot(attributes: dict[str, Any], index: Array, depth: Array, values: Array) -> Array:
    axis, size = attributes.get("axis", -1), int(depth.item())
    axis = axis if axis >= 0 else axis + index.ndim + 1
    depth_indices = np.arange(size).reshape([-1 if at == axis else 1 for at in range(index.ndim + 1)])
    # A negative index counts from the end.
    wrapped = np.expand_dims(np.where(index < 0, index + size, index), axis)
    return np.asarray(np.where(depth_indices == wrapped, values[1], values[0]), values.dtype)


def _place_of(function: Callable[..., Any]) -> Function:
    def found(attributes: dict[str, Any], x: Array) -> Array:
        if attributes.get("select_last_index") or x.dtype.kind == "f":
            raise ValueError  # no exporter asks so of sizes, and kernels differ in where they see a NaN
        return np.asarray(
            function(x, attributes.get("axis", 0), keepdims=bool(attributes.get("keepdims", 1))), np.int64
        )

    return found


_OTHER: dict[str, Function] = {
    "ArgMax": _place_of(np.argmax),
    "ArgMin": _place_of(np.argmin),
    "CastLike": lambda _, x, like: _cast(x, like.dtype),
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cumulated,
    "NonZero": lambda _, x: np.asarray(np.nonzero(np.atleast_1d(x)), np.int64),
    "OneHot": _one_hot,
    "Tile": lambda _, x, repeats: np.tile(x, repeats.tolist()),
    "Range": _range,
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(np.sum),
    "ReduceMin": _reduction(np.min),
    "ReduceMax": _reduction(np.max),
}  # fmt: skip

MOVEMENT = frozenset(_MOVEMENT)
"""Operators whose output holds elements of the first input (Concat: of all inputs), unchanged, at other indices."""

ELEMENTWISE = frozenset(_ELEMENTWISE)
"""Element-wise operators: each output element depends on one element of each input, after broadcasting."""

_FUNCTIONS = _MOVEMENT | _ELEMENTWISE | _OTHER

OPERATORS = frozenset(_FUNCTIONS)
"""All operators that `compute` evaluates."""


def compute(
    operator: str, attributes: dict[str, Any], given: Sequence[Array | None], largest: int = LARGEST
) -> Array | None:
    """Return the first output of a node; None stands for an omitted input.

    Returns None for an operator that is no shape arithmetic, and for a node that is not valid. It also returns None for
    an integer division by zero, and for more than `largest` elements.
    """
    function = _FUNCTIONS.get(operator)
    parts = list(given)
    # A node may omit optional inputs at the end with an empty name.
    while parts and parts[-1] is None:
        parts.pop()
    present_inputs = [part for part in parts if part is not None]
    if function is None or sum(part.size for part in present_inputs) > largest:
        return None
    if len(present_inputs) < len(parts) and operator != "Slice":
        return None  # only Slice may omit an input before another one
    # These operators may produce huge outputs, so the limit applies before they run.
    try:
        if (
            operator in ("ConstantOfShape", "Expand", "Tile")
            and np.prod(present_inputs[-1].astype(float)) > largest
        ):
            return None
        if operator == "OneHot" and present_inputs[0].size * abs(present_inputs[1].item()) > largest:
            return None
        if operator == "Range" and abs(present_inputs[1].item() - present_inputs[0].item()) > largest:
            return None
        with np.errstate(all="ignore"):
            result = np.asarray(function(attributes, *parts))
    except (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError):
        return None
    return result if result.size <= largest else None


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes by name, without graphs and without those that refer to a function's attribute."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    return {
        attribute.name: helper.get_attribute_value(attribute)
        for attribute in node.attribute
        if not attribute.ref_attr_name and attribute.type not in graphs
    }


@dataclass(frozen=True)
class PartialArray:
    """An array with some known elements; the boolean array `known` has the same shape and marks them."""

    values: Array
    known: Array

    @classmethod
    def of(cls, array: Array) -> PartialArray:
        """Return an array with all elements known."""
        return cls(array, np.ones(array.shape, bool))

    @property
    def complete(self) -> Array | None:
        """The values if all elements are known, else None."""
        return self.values if bool(self.known.all()) else None


def propagate(
    operator: str, attributes: dict[str, Any], given: list[PartialArray | None]
) -> PartialArray | None:
    """Return the first output of a node; None if nothing about it is known.

    None among `given` stands for an omitted input. A movement operator moves the mask as it moves the elements, if its
    other inputs (indices, axes, a shape) are known completely. An element of an element-wise operator is known if the
    elements of all inputs are. All other operators need all elements.
    """
    if operator in ELEMENTWISE:
        parts = [part for part in given if part is not None]
        # An element that is not known counts as 1, because a division by 1 never fails.
        operands = [np.where(part.known, part.values, np.ones((), part.values.dtype)) for part in parts]
        values = compute(operator, attributes, operands)
        if values is None:
            return None
        mask = np.ones(values.shape, bool)
        for part in parts:
            mask = mask & part.known
        return PartialArray(values, mask)
    count = len(given) if operator == "Concat" else int(operator in MOVEMENT)
    # Only movement operators accept unknown elements.
    moved = [part for part in given[:count] if part is not None]
    rest = [None if part is None else part.complete for part in given[count:]]
    if any(part is not None and array is None for part, array in zip(given[count:], rest, strict=True)):
        return None
    values = compute(operator, attributes, [*(part.values for part in moved), *rest])
    if values is None or not count:
        # The mask moves as the elements do, so the same operator applied to it tells which stay known.
        return None if values is None else PartialArray.of(values)
    element_mask = compute(operator, attributes, [*(part.known for part in moved), *rest])
    return None if element_mask is None else PartialArray(values, element_mask)


def same_pads(length: int, extent: int, stride: int, auto: str) -> tuple[int, int]:
    """Return the padding before and after an axis for auto_pad SAME_UPPER or SAME_LOWER."""
    needed = max(0, (-(-length // stride) - 1) * stride + extent - length)
    head = needed // 2 if auto == "SAME_UPPER" else needed - needed // 2
    return head, needed - head
