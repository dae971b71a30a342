"""The shapes a model really has: onnx's inference, with each Resize as long as it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.analysis.known_values import KnownValues, Producers
from onnx_migrate.analysis.scope import Scope, scopes
from onnx_migrate.analysis.shapes import dims_of
from onnx_migrate.analysis.skeleton import skeleton
from onnx_migrate.analysis.value_types import TypeTable, ValueType
from onnx_migrate.model.dim_plan import DimPlan
from onnx_migrate.model.graphs import BodyKey, FunctionKey, called, function_key, nested_bodies
from onnx_migrate.model.model import Model
from onnx_migrate.spec.resize import lengths_agree_always, lengths_differ, run_length
from onnx_migrate.spec.schema import is_onnx

from .node_context import axes_of

__all__ = [
    "RealTypes",
    "contradicts",
    "real_types",
]

_ROUNDS = 32
"""How often shapes are inferred anew. Each round settles all that depends on one more level of Resizes."""


@dataclass
class _Place:
    """A Resize by scales, in the model and in the copy that inference is run on."""

    node: onnx.NodeProto
    twin: onnx.NodeProto
    body: onnx.GraphProto | onnx.FunctionProto
    """The copy's."""
    scope: Scope
    tensor: TensorProto | None = None
    """The copy's own scales, once it has some."""


class _UnsettledError(Exception):
    """The lengths of a Resize in a local function cannot be put right in the copy."""


def real_types(model: Model, plan: DimPlan) -> TypeTable | None:
    """Return the types of all values, with the lengths that run; None when they could not be settled.

    Dims of inputs that become dynamic by `plan` count as unknown, and so do those of 0
    and -1, which exporters write for what they do not know. What value_info and outputs declare is believed
    only where nothing else is known: behind operators of other domains, if nothing becomes dynamic.
    """
    twin = skeleton(model.proto)
    _forget(twin.graph, set(map(function_key, twin.functions)), everything=not plan.is_empty)
    symbols = plan.axes
    for value in twin.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            symbol = symbols.get(value.name, {}).get(axis)
            if symbol:
                dim.dim_param = symbol
            elif dim.HasField("dim_value") and dim.dim_value <= 0:
                dim.ClearField("value")
    types = TypeTable(twin)
    places = list(_places(model, twin, types))
    for _ in range(_ROUNDS):
        changed = False
        known: dict[int, KnownValues] = {}
        producers = Producers()
        for place in places:
            place.scope.types = types
            at = known.setdefault(id(place.scope.body), KnownValues(place.scope, producers))
            try:
                changed |= _correct(place, at)
            except _UnsettledError:
                return None
        if not changed:
            return types
        types = TypeTable(twin)
    return None


def _forget(main: onnx.GraphProto, functions: set[FunctionKey], *, everything: bool) -> None:
    for _, graph in nested_bodies(main):
        if isinstance(graph, onnx.GraphProto):
            _forget_shapes(graph, functions, everything=everything)


def _forget_shapes(graph: onnx.GraphProto, functions: set[FunctionKey], *, everything: bool) -> None:
    foreign = {
        name
        for node in graph.node
        if not everything and not is_onnx(node.domain) and called(node) not in functions
        for name in node.output
    }
    kept = [value for value in graph.value_info if value.name in foreign]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for value in graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")


def _places(model: Model, twin: onnx.ModelProto, types: TypeTable) -> Iterator[_Place]:
    bodies: Sequence[Any] = [twin.graph, *twin.functions]
    own = scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version, types=types)
    for scope, body in zip(own, bodies, strict=True):
        yield from _in_body(scope, body)


def _in_body(top: Scope, twin: onnx.GraphProto | onnx.FunctionProto) -> Iterator[_Place]:
    for scope, (_, copy) in zip(top.nested(), nested_bodies(twin), strict=True):
        for node, other in zip(scope.body.node, copy.node, strict=True):
            if node.op_type == "Resize" and is_onnx(node.domain) and len(node.input) > 2 and node.input[2]:
                yield _Place(node, other, copy, scope)


def _correct(place: _Place, known: KnownValues) -> bool:
    """Give the copy scales that inference makes the right lengths of; tell whether that changed them."""
    name = place.node.input[2]
    scales = known.value(name)
    shape = place.scope.value_type(place.node.input[0]).shape
    if scales is None or scales.dtype != np.float32:
        return False
    if place.scope.function is not None and not lengths_agree_always(scales):
        _hold_known(shape)
    if shape is None:
        return False
    axes = axes_of(place.node, len(shape))
    if scales.shape != (len(axes),):
        return False
    told = [
        scale if size is None or not lengths_differ(size, scale) else _telling(size, scale)
        for size, scale in zip((shape[axis] for axis in axes), scales, strict=True)
    ]
    wanted = numpy_helper.from_array(np.array(told, np.float32), f"{place.node.output[0]} scales of its own")
    if place.tensor is None:
        if place.scope.constant(name) is not None and wanted.raw_data == scales.tobytes():
            return False
        if not isinstance(place.body, onnx.GraphProto):
            place.tensor = _own_constant(place.body, name)
        else:
            place.tensor = place.body.initializer.add()
            place.twin.input[2] = wanted.name
    elif place.tensor.raw_data == wanted.raw_data:
        return False
    place.tensor.CopyFrom(wanted)
    return True


def _hold_known(shape: tuple[int | None, ...] | None) -> None:
    """Make sure that all calls of a function agree on a shape: one constant cannot be right for several."""
    if shape is None or None in shape:
        raise _UnsettledError


def _own_constant(body: onnx.FunctionProto, name: str) -> TensorProto:
    """Return the tensor of a Constant of the body that one node reads; a node more would move the others."""
    readers = sum(list(node.input).count(name) for node in body.node)
    for node in body.node:
        if name in node.output and readers == 1 and [item.name for item in node.attribute] == ["value"]:
            return node.attribute[0].t
    raise _UnsettledError


def _telling(length: int, scale: float) -> float:
    return (run_length(length, scale) + 0.25) / length


class RealTypes(TypeTable):
    """The types with the lengths that run, inferred when first asked; unknown if these did not settle."""

    def __init__(self, model: Model, plan: DimPlan) -> None:
        self._make: Callable[[], TypeTable | None] | None = partial(real_types, model, plan)
        self._real: TypeTable | None = None

    @property
    def asked(self) -> bool:
        """Whether anything had to be inferred."""
        return self._make is None

    def lookup(self, function: FunctionKey | None, body: BodyKey, name: str) -> ValueType:
        """Return what is known of a value that a body sees."""
        if self._make is not None:
            self._real, self._make = self._make(), None
        return ValueType() if self._real is None else self._real.lookup(function, body, name)


def contradicts(value: onnx.ValueInfoProto, real: ValueType) -> bool:
    """Tell whether what is declared of a value is not what runs."""
    declared = dims_of(value)
    if declared is None or real.shape is None:
        return False
    if len(declared) != len(real.shape):
        return True
    pairs = zip(declared, real.shape, strict=True)
    return any(isinstance(size, int) and run is not None and size != run for size, run in pairs)
