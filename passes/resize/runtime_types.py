"""The shapes that values have at run time: onnx's inference, with the lengths of Resizes that ONNX Runtime computes.

onnx infers with a copy of the model. If onnx and ONNX Runtime differ on the length of a Resize, the copy gets other scales.
onnx then infers ONNX Runtime's length. If the sizes of a Resize follow from known shapes, the copy gets them as a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.facts.onnx_inference import skeleton
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.facts.value_types import TypeTable, ValueType
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.graphs import BodyKey, FunctionKey, called, function_key, nested_bodies
from onnx_migrate.model.model import Model
from onnx_migrate.standard.resize import lengths_agree_always, lengths_differ, resized_axes, run_length
from onnx_migrate.standard.schema import is_onnx

__all__ = ["RunTimeTypes", "run_time_types"]

_ROUNDS = 32
"""The largest number of inferences. Each settles the values that depend on one more Resize in a row."""


@dataclass
class _ResizeCopy:
    """A Resize, in the model and in the copy that inference is run on."""

    node: onnx.NodeProto
    copy: onnx.NodeProto
    body: onnx.GraphProto | onnx.FunctionProto
    """The body of the copy."""
    scope: Scope
    tensor: TensorProto | None = None
    """The scales, or sizes, that only this node of the copy reads, once it has some."""

    @property
    def by_sizes(self) -> bool:
        """Whether it is resized by sizes."""
        return len(self.node.input) > 3 and bool(self.node.input[3])


class _UnsettledError(Exception):
    """The lengths of a Resize in a local function cannot be corrected in the copy."""


def run_time_types(model: Model, plan: DimPlan) -> TypeTable | None:
    """Return the types of all values, with the lengths that run; None if inference does not reach a fixed point.

    Dims of inputs that a later pass makes dynamic by `plan` count as unknown. The dims 0 and -1 do too, since exporters write
    them for unknown ones. onnx infers nothing for operators of other domains. Declared shapes of inner values and outputs are
    used only after these, and only if no dim becomes dynamic.
    """
    copy = skeleton(model.proto)
    # Declared shapes may come from a run at other sizes.
    _forget_shapes(copy.graph, set(map(function_key, copy.functions)), everything=not plan.is_empty)
    symbols = plan.axes
    for value in copy.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            symbol = symbols.get(value.name, {}).get(axis)
            if symbol:
                dim.dim_param = symbol
            elif dim.HasField("dim_value") and dim.dim_value <= 0:
                dim.ClearField("value")
    types = TypeTable(copy)
    resizes = list(_resizes(model, copy, types))
    # A corrected scale may give another length to a Resize further down, so this repeats until nothing changes.
    for _ in range(_ROUNDS):
        changed = False
        facts_by_body: dict[int, ValueFacts] = {}
        producers = Producers()
        for resize in resizes:
            resize.scope.types = types
            at = facts_by_body.setdefault(id(resize.scope.body), ValueFacts(resize.scope, producers))
            try:
                changed |= _give_sizes(resize, at) if resize.by_sizes else _correct(resize, at)
            except _UnsettledError:
                return None
        if not changed:
            return types
        types = TypeTable(copy)
    return None


def _forget_shapes(main: onnx.GraphProto, functions: set[FunctionKey], *, everything: bool) -> None:
    for _, graph in nested_bodies(main):
        assert isinstance(graph, onnx.GraphProto)
        foreign = {
            name
            for node in graph.node
            if not everything and not is_onnx(node.domain) and called(node) not in functions
            for name in node.output
        }
        # Inference has no rule for these nodes, so that their declarations are the only source.
        foreign_values = [value for value in graph.value_info if value.name in foreign]
        del graph.value_info[:]
        graph.value_info.extend(foreign_values)
        for value in graph.output:
            if value.type.WhichOneof("value") == "tensor_type":
                value.type.tensor_type.ClearField("shape")


def _resizes(model: Model, copy: onnx.ModelProto, types: TypeTable) -> Iterator[_ResizeCopy]:
    bodies: Sequence[Any] = [copy.graph, *copy.functions]
    own = scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version, types=types)
    for top, top_copy in zip(own, bodies, strict=True):
        for scope, (_, body) in zip(top.nested(), nested_bodies(top_copy), strict=True):
            for node, other in zip(scope.body.node, body.node, strict=True):
                if node.op_type == "Resize" and is_onnx(node.domain) and any(node.input[2:4]):
                    yield _ResizeCopy(node, other, body, scope)


def _correct(resize: _ResizeCopy, known: ValueFacts) -> bool:
    """Set the copy's scales so that onnx infers the lengths that run; return whether they changed."""
    name = resize.node.input[2]
    scales = known.value(name)
    shape = resize.scope.value_type(resize.node.input[0]).shape
    # Scales of another type are not valid.
    if scales is None or scales.dtype != np.float32:
        return False
    in_function = resize.scope.function is not None and not lengths_agree_always(scales)
    if in_function and (shape is None or None in shape):
        raise _UnsettledError  # the calls may have several shapes, for which one constant cannot serve
    if shape is None:
        return False
    axes = resized_axes(
        next((attribute.ints for attribute in resize.node.attribute if attribute.name == "axes"), ()),
        len(shape),
    )
    if scales.shape != (len(axes),):
        return False
    # From these onnx infers, in float64, the lengths that run.
    corrected = [
        scale if size is None or not lengths_differ(size, scale) else (run_length(size, scale) + 0.25) / size
        for size, scale in zip((shape[axis] for axis in axes), scales, strict=True)
    ]
    name_of_own = f"{resize.node.output[0]} scales of its own"
    wanted = numpy_helper.from_array(np.array(corrected, np.float32), name_of_own)
    if resize.tensor is None:
        # Nothing changes if the scales are right already.
        if resize.scope.constant(name) is not None and wanted.raw_data == scales.tobytes():
            return False
        if not isinstance(resize.body, onnx.GraphProto):
            resize.tensor = _own_constant(resize.body, name)
        else:
            resize.tensor = resize.body.initializer.add()
            resize.copy.input[2] = wanted.name
    elif resize.tensor.raw_data == wanted.raw_data:
        return False
    resize.tensor.CopyFrom(wanted)
    return True


def _give_sizes(resize: _ResizeCopy, known: ValueFacts) -> bool:
    """Give the copy sizes that are known and that onnx's inference does not follow, once; return whether it did."""
    name = resize.node.input[3]
    sizes = known.value(name)
    if sizes is None or resize.tensor is not None or resize.scope.constant(name) is not None:
        return False
    if not isinstance(resize.body, onnx.GraphProto):
        return False
    resize.tensor = resize.body.initializer.add()
    resize.tensor.CopyFrom(numpy_helper.from_array(sizes, f"{resize.node.output[0]} sizes of its own"))
    resize.copy.input[3] = resize.tensor.name
    return True


def _own_constant(body: onnx.FunctionProto, name: str) -> TensorProto:
    """Return the tensor of a Constant that one node reads, which can be edited; a new node would shift indices."""
    # A tensor with other readers must not change for them.
    readers = sum(list(node.input).count(name) for node in body.node)
    for node in body.node:
        if (
            name in node.output
            and readers == 1
            and [attribute.name for attribute in node.attribute] == ["value"]
        ):
            return node.attribute[0].t
    raise _UnsettledError


class RunTimeTypes(TypeTable):
    """The types of `run_time_types`, computed at the first query; all unknown if there are none."""

    def __init__(self, model: Model, plan: DimPlan) -> None:
        self._make: Callable[[], TypeTable | None] | None = partial(run_time_types, model, plan)
        self._real: TypeTable | None = None

    @property
    def asked(self) -> bool:
        """Whether there was a query."""
        return self._make is None

    def lookup(self, function: FunctionKey | None, body: BodyKey, name: str) -> ValueType:
        """Return the known facts of a value that is visible in a body."""
        if self._make is not None:
            self._real, self._make = self._make(), None
        return ValueType() if self._real is None else self._real.lookup(function, body, name)
