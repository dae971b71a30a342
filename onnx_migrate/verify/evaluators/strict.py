"""Writes a model of float16 or bfloat16 as hardware computes it: every value is rounded to its type after each node.

ONNX Runtime's CPU provider has few kernels of these types. It computes chains of float16 nodes in float32 and drops the Casts
between them (InsertCastTransformer in onnxruntime/core/optimizer/insert_cast_transformer.cc). An overflow inside of a chain does
not show then. Here each node computes in float32, between Casts of the model itself, which that transformer keeps.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np
import onnx
import onnx.inliner
from onnx import TensorProto

from onnx_migrate.facts.narrow_floats import NARROW, is_narrow
from onnx_migrate.facts.typed_graph import Frame, Step, Value, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.names import Names
from onnx_migrate.model.tensors import numbers
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.retyping import TYPE_BY_ATTRIBUTE, retyping
from onnx_migrate.verify.evaluators.configurations import COARSE, STRICT
from onnx_migrate.verify.evaluators.interface import Evaluator, Runnable
from onnx_migrate.verify.evaluators.onnxruntime import OnnxRuntime
from onnx_migrate.verify.evaluators.scopes import with_own_names

__all__ = [
    "COARSER",
    "LARGEST_HALF",
    "LOADERS",
    "STORED_ONCE",
    "is_exact",
    "rounded_weights",
    "rounding",
    "strict",
]

COARSER = 8.0
"""Ratio of the rounding errors in COARSE to those in STRICT."""

LARGEST_HALF = 65504.0
"""The largest number of float16."""

_CLIP_BY_INPUTS = 11
"""The first opset in which Clip reads its bounds as inputs."""

STORED_ONCE = 256
"""A constant with more elements has one type in a result, whichever nodes read it. A smaller one may be stored in two types."""

_AS_WRITTEN = ("Cast", "CastLike", "Constant", "ConstantOfShape", "If", "Loop", "Scan")
"""Operators that round their outputs themselves, or that compute nothing."""

_EXACT = (
    "Abs", "Clip", "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
    "GlobalMaxPool", "Identity", "Max", "MaxPool", "Min", "Neg", "ReduceMax", "ReduceMin", "Relu", "Reshape",
    "ReverseSequence", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze",
    "Where",
)  # fmt: skip
"""Operators that give nothing but numbers that they read, 0, or these with another sign: all of a narrow type if those are."""


def strict(runnable: Runnable, *, coarse: bool = False) -> Runnable:
    """Return the model with each node of a narrow type computing in float32, and its outputs rounded to their types."""
    runnable = with_own_names(runnable)
    if not is_narrow(runnable.model):
        return runnable
    model = runnable.proto()
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    frames, names = frames_of(model, TypeTable(model)), Names(model)
    opset = (onnx_opset(model.opset_import, ir_version=model.ir_version) or 1) if coarse else 0
    for frame in reversed(frames):  # a body is copied with those inside it
        _Wrapping(frame, names, opset).write()
    return runnable.with_structure(model)


def is_exact(step: Step) -> bool:
    """Return whether the outputs of a node need no rounding if all of its inputs are rounded."""
    return step.is_a(*_EXACT) and not (step.is_a("Clip") and step.version < _CLIP_BY_INPUTS)


class _Wrapping:
    """Writes the Casts of one body. A value of an outer body is cast here, before the node that reads it."""

    def __init__(self, frame: Frame, names: Names, coarse: int) -> None:
        """`coarse` is the model's opset for coarse rounding, and 0 otherwise."""
        self._frame, self._names, self._coarse = frame, names, coarse
        self._nodes: list[onnx.NodeProto] = []
        self._wide: dict[Value, str] = {}
        self._sparse = {sparse.values.name for sparse in frame.body.sparse_initializer}
        self._bounds: tuple[str, ...] = ()
        """The constants of coarse rounding, once they are written: the bounds, and how often the rounding error is added."""

    def write(self) -> None:
        for step in self._frame.steps:
            if self._coarse and self._rounds_computed(step):
                self._round(step.node.input[0], step.node.output[0], TensorProto.FLOAT16)
            elif self._is_wrapped(step):
                self._wrap(step)
            else:
                self._nodes.append(step.node)
        del self._frame.body.node[:]
        self._frame.body.node.extend(self._nodes)

    @staticmethod
    def _is_wrapped(step: Step) -> bool:
        if step.is_a(*_AS_WRITTEN):
            return False
        values = [*step.read, *step.made]
        return any(value.dtype in NARROW for value in values) and not any(value.container for value in values)

    def _is_read_narrow(self, value: Value) -> bool:
        """Return whether anything but nodes of this body that compute in float32 reads a value."""
        return value.is_output or any(
            step.frame is not self._frame or not self._is_wrapped(step) for step, _ in value.readers
        )

    @staticmethod
    def _rounds_computed(step: Step) -> bool:
        """Return whether a node casts a computed float32, or an input, to float16."""
        source, cast_output = (
            step.inputs[0] if step.inputs else None,
            step.outputs[0] if step.outputs else None,
        )
        return (
            step.is_a("Cast")
            and (source is not None and source.dtype == TensorProto.FLOAT and source.tensor is None)
            and (cast_output is not None and cast_output.dtype == TensorProto.FLOAT16)
        )

    def _wrap(self, step: Step) -> None:
        node = step.node
        exact = is_exact(step) and all(value.dtype != TensorProto.FLOAT for value in step.read)
        for index, value in enumerate(step.inputs):
            if value is not None and value.dtype in NARROW:
                node.input[index] = self._widened(value)
        # An attribute that states a narrow type would narrow the result again.
        attribute = TYPE_BY_ATTRIBUTE.get(node.op_type) if not step.domain else None
        for stated in node.attribute:
            if stated.name == attribute and stated.i in NARROW:
                stated.i = TensorProto.FLOAT
        self._nodes.append(node)
        for index, value in enumerate(step.outputs):
            if value is not None and value.dtype in NARROW:
                wide = self._names.fresh(f"{value.name}_wide")
                node.output[index] = wide
                if not exact:
                    self._round(wide, value.name, value.dtype)
                    continue
                self._wide[value] = wide
                # Some readers still need the value in its narrow type.
                if self._is_read_narrow(value):
                    self._cast(wide, value.name, value.dtype)

    def _round(self, wide: str, name: str, kind: int) -> None:
        """Round to a type. Coarse rounding gives `r + 7 * (r - wide)`, and r is the rounded number."""
        if not self._coarse or kind != TensorProto.FLOAT16:
            self._cast(wide, name, kind)
            return
        narrow, near, held, off, more, sum_ = (
            self._names.fresh(f"{name}_{part}") for part in ("narrow", "near", "held", "off", "more", "sum")
        )
        if not self._bounds:
            self._bounds = tuple(self._names.fresh(part) for part in ("low", "high", "times"))
            for constant, number in zip(
                self._bounds, (-LARGEST_HALF, LARGEST_HALF, COARSER - 1), strict=True
            ):
                tensor = onnx.helper.make_tensor("", TensorProto.FLOAT, [], [number])
                self._nodes.append(onnx.helper.make_node("Constant", [], [constant], value=tensor))
        low, high, times = self._bounds
        self._nodes += rounding(wide, narrow, near, kind)
        clip = onnx.helper.make_node("Clip", [wide, low, high], [held])
        if self._coarse < _CLIP_BY_INPUTS:
            clip = onnx.helper.make_node("Clip", [wide], [held], min=-LARGEST_HALF, max=LARGEST_HALF)
        self._nodes += [
            clip,  # of infinity less itself
            onnx.helper.make_node("Sub", [near, held], [off]),
            onnx.helper.make_node("Mul", [off, times], [more]),
            onnx.helper.make_node("Add", [near, more], [sum_]),
        ]
        self._cast(sum_, name, kind)

    def _widened(self, value: Value) -> str:
        if value not in self._wide:
            self._wide[value] = wide = self._names.fresh(f"{value.name}_widened")
            tensor = None if value.name in self._sparse else value.tensor
            # Data in files is not read here, so the model casts it.
            if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
                self._cast(value.name, wide, TensorProto.FLOAT)
            else:
                held = numbers(onnx.numpy_helper.to_array(tensor)).astype("<f4").tobytes()
                stored = TensorProto(data_type=TensorProto.FLOAT, dims=tensor.dims, raw_data=held)
                value_attribute = onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR, t=stored)
                self._nodes.append(
                    onnx.NodeProto(op_type="Constant", output=[wide], attribute=[value_attribute])
                )
        return self._wide[value]

    def _cast(self, source: str, target: str, kind: int) -> None:
        to = onnx.AttributeProto(name="to", type=onnx.AttributeProto.INT, i=kind)
        self._nodes.append(onnx.NodeProto(op_type="Cast", input=[source], output=[target], attribute=[to]))


def rounding(source: str, narrow: str, target: str, kind: int) -> list[onnx.NodeProto]:
    """Return nodes that round a float32 value to an element type and back, by way of the value `narrow`."""
    return [
        onnx.helper.make_node("Cast", [source], [narrow], to=kind),
        onnx.helper.make_node("Cast", [narrow], [target], to=TensorProto.FLOAT),
    ]


def rounded_weights(original: Runnable, kind: int, *, stored: bool = False) -> Runnable:
    """Return the original with its inputs and its weights rounded to `kind`, and all arithmetic in float32.

    Nodes read the rounded numbers if their operators support the type. So no result of that type is nearer to the original,
    except by chance. A constant that overflows or becomes 0 stays, as in a result. With `stored`, only those weights are rounded
    that a result stores in the type whatever nodes compute with them.
    """
    model = original.proto()
    names = Names(model)
    frames = frames_of(model, TypeTable(model))
    rounded = {frame: _round_constants(frame, kind, names, stored=stored) for frame in frames}
    for frame in reversed(frames):  # a body is copied with those inside it
        constants = [step.node for step in frame.steps if step.is_a("Constant")]
        others = [step.node for step in frame.steps if not step.is_a("Constant")]
        body = [*constants, *rounded[frame], *others]
        del frame.body.node[:]
        frame.body.node.extend(body)
    return original.with_structure(model)


def _round_constants(frame: Frame, kind: int, names: Names, *, stored: bool) -> list[onnx.NodeProto]:
    """Make the nodes that read constants of a body, or inputs of the model, read them rounded; return the nodes that round."""
    nodes: list[onnx.NodeProto] = []
    for value in frame.values.values():
        is_input = value.maker is None and value.tensor is None and not frame.key
        # Only inputs and constants of float32 are rounded here.
        if value.dtype != TensorProto.FLOAT or not (is_input or _fits(value.tensor, kind)):
            continue
        if stored and (value.tensor is None or prod(value.tensor.dims) <= STORED_ONCE):
            continue
        readers = [
            (step, input_index) for step, input_index in value.readers if _takes(step, input_index, kind)
        ]
        if readers:
            narrowed, rounded = names.fresh(f"{value.name}_narrow"), names.fresh(f"{value.name}_rounded")
            nodes += rounding(value.name, narrowed, rounded, kind)
        for step, input_index in readers:
            step.node.input[input_index] = rounded
    return nodes


def _takes(step: Step, place: int, kind: int) -> bool:
    """Return whether a node that computes in a type reads an input in that type too."""
    inputs = tuple(value is not None and value.dtype == TensorProto.FLOAT for value in step.inputs)
    outputs = tuple(value is not None and value.dtype == TensorProto.FLOAT for value in step.outputs)
    if step.inner:
        return inputs[place]
    change = retyping(step.domain, step.node.op_type, step.version, inputs, outputs, kind)
    return change is not None and change.inputs[place]


def _fits(tensor: TensorProto | None, kind: int) -> bool:
    """Return whether all numbers of a constant stay finite and nonzero; large weights count as fitting."""
    if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
        return tensor is not None
    held = onnx.numpy_helper.to_array(tensor).reshape(-1)
    with np.errstate(over="ignore", under="ignore"):
        narrow = numbers(held.astype(onnx.helper.tensor_dtype_to_np_dtype(kind))).astype(np.float32)
    return bool(np.all(np.isfinite(narrow) == np.isfinite(held)) and (narrow.any() or not held.any()))


def _load(runnable: Runnable, *, coarse: bool = False) -> Evaluator:
    return OnnxRuntime(strict(runnable, coarse=coarse))


LOADERS = {STRICT: _load, COARSE: partial(_load, coarse=True)}
