"""Values that can be told before run time: constants, and what shape arithmetic makes of known shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.model.graphs import producers
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.schema import is_onnx

__all__ = ["Known", "Place", "Producers"]

Array = np.ndarray[Any, Any]

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Min": np.minimum,
    "Max": np.maximum,
    "Less": np.less,
}
_UNARY: dict[str, Callable[[Array], Array]] = {"Floor": np.floor, "Ceil": np.ceil, "Identity": np.array}


class Producers:
    """Which node of a body, or of the bodies around it, gives a value; as the nodes were when first asked."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[str, onnx.NodeProto]] = {}

    def find(self, scope: Scope, name: str) -> onnx.NodeProto | None:
        """Return the node that gives `name`, None for inputs and initializers."""
        at: Scope | None = scope
        while at is not None:
            table = self._tables.get(id(at.body))
            if table is None:
                table = self._tables[id(at.body)] = producers(at.body)
            if name in table:
                return table[name]
            at = at.parent
        return None


@dataclass(frozen=True)
class Partial:
    """An array of which only the elements that `sure` marks are known."""

    values: Array
    sure: Array

    @classmethod
    def of(cls, array: Array) -> Partial:
        """Return an array that is known throughout."""
        return cls(array, np.ones(array.shape, bool))


class Known:
    """Answers for the values of one body. Exact: each operator in the arithmetic that runtimes use."""

    def __init__(self, scope: Scope, producers: Producers) -> None:
        self.scope = scope
        self.producers = producers
        self._seen: dict[str, Partial | None] = {}

    def value(self, name: str) -> Array | None:
        """Return a value that is known throughout, else None."""
        found = self.partial(name)
        return found.values if found is not None and bool(found.sure.all()) else None

    def partial(self, name: str) -> Partial | None:
        """Return what is known of a small value, None when nothing is."""
        if name not in self._seen:
            self._seen[name] = None  # a cycle knows nothing
            self._seen[name] = self._find(name)
        return self._seen[name]

    def _find(self, name: str) -> Partial | None:
        shape = self.scope.value_type(name).shape
        if shape is not None and (len(shape) > 2 or any(size is not None and size > 64 for size in shape)):
            return None  # no shape, scale or size: spare the reading
        constant = self.scope.constant(name)
        if constant is not None:
            return Partial.of(constant)
        node = self.producers.find(self.scope, name)
        if node is None or not is_onnx(node.domain) or len(node.output) != 1:
            return None
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return None
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        if node.op_type == "Shape":
            return self._shape(node, attributes)
        given = [self.partial(value) if value else None for value in node.input]
        if not given or given[0] is None:
            return None
        try:
            return _apply(node.op_type, given, attributes)
        except (ValueError, IndexError, TypeError, KeyError):
            return None  # not a valid node; others say so

    def _shape(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> Partial | None:
        shape = self.scope.value_type(node.input[0]).shape
        if shape is None:
            return None
        shape = shape[slice(attributes.get("start", 0), attributes.get("end"))]
        values = np.array([size or 0 for size in shape], np.int64)
        return Partial(values, np.array([size is not None for size in shape], bool))


def _apply(operator: str, given: list[Partial | None], attributes: dict[str, Any]) -> Partial | None:
    """Compute one node whose first input is known in part; None for what is not shape arithmetic."""
    first, second = given[0], given[1] if len(given) > 1 else None
    assert first is not None
    if operator in _UNARY:
        return Partial(_UNARY[operator](first.values), first.sure)
    if operator == "Cast":
        kind = helper.tensor_dtype_to_np_dtype(attributes["to"])
        return Partial(first.values.astype(kind), first.sure) if kind.kind in "fi" else None
    if operator == "ReduceMin" and first.sure.all() and first.values.size and "axes" not in attributes:
        return Partial.of(np.min(first.values, keepdims=bool(attributes.get("keepdims", 1))))
    if operator == "Concat":
        parts = [part for part in given if part is not None]
        if len(parts) < len(given):
            return None
        axis = attributes.get("axis", 1)
        values = np.concatenate([part.values for part in parts], axis)
        return Partial(values, np.concatenate([part.sure for part in parts], axis))
    if operator in _BINARY or operator == "Div":
        if second is None or len(given) != 2:
            return None
        with np.errstate(all="ignore"):
            values = (
                _BINARY[operator](first.values, second.values)
                if operator != "Div"
                else _divide(first, second)
            )
        return Partial(values, np.broadcast_to(first.sure & second.sure, values.shape))
    settled = [None if part is None or not part.sure.all() else part.values for part in given[1:]]
    if operator == "Gather" and settled and settled[0] is not None:
        axis = attributes.get("axis", 0)
        return Partial(np.take(first.values, settled[0], axis), np.take(first.sure, settled[0], axis))
    if operator == "Slice":
        return _slice(first, settled, attributes)
    if operator in ("Squeeze", "Unsqueeze"):
        axes = attributes.get("axes") or (settled[0].tolist() if settled and settled[0] is not None else None)
        if axes is None:
            return (
                Partial(np.squeeze(first.values), np.squeeze(first.sure)) if operator == "Squeeze" else None
            )
        change = np.squeeze if operator == "Squeeze" else np.expand_dims
        return Partial(change(first.values, tuple(axes)), change(first.sure, tuple(axes)))
    return None


def _divide(first: Partial, second: Partial) -> Array:
    if first.values.dtype.kind == "f":
        return np.asarray(first.values / second.values)
    # Integers are divided towards zero; what is not known may be a zero.
    safe = np.where(second.values == 0, 1, second.values)
    quotient = np.abs(first.values) // np.abs(safe)
    return np.asarray(np.where((first.values < 0) != (safe < 0), -quotient, quotient), first.values.dtype)


def _slice(first: Partial, settled: list[Array | None], attributes: dict[str, Any]) -> Partial | None:
    if "starts" in attributes:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes"), None
    else:
        if len(settled) < 2 or any(part is None for part in settled[:2]):
            return None
        lists = [None if part is None else part.tolist() for part in settled]
        starts, ends = lists[0], lists[1]
        axes = lists[2] if len(lists) > 2 else None
        steps = lists[3] if len(lists) > 3 else None
    if first.values.ndim != 1 or len(starts) != 1 or (axes and axes[0] not in (0, -1)):
        return None
    cut = slice(starts[0], ends[0], steps[0] if steps else None)
    return Partial(first.values[cut], first.sure[cut])


@dataclass
class Place:
    """One node, and what is known where it stands."""

    rw: Rewriter
    known: Known
    producers: Producers

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The shape of what is resized."""
        return self.rw.scope.value_type(self.rw.input(0)).shape
