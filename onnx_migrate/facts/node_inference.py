"""onnx's shape inference of one node, and the types of the outputs of nodes that a rewrite has written.

It runs in another process: it aborts the process for some nodes that are not valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx
from onnx import AttributeProto, TensorProto, defs, helper

from onnx_migrate import process
from onnx_migrate.facts.onnx_inference import InferenceError
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shape_arithmetic import ELEMENTWISE
from onnx_migrate.facts.value_types import ValueType, value_type_of
from onnx_migrate.model.validity.equations import equation_complaint
from onnx_migrate.standard.schema import schema_generation

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "infer_node_outputs",
    "infer_types",
    "inference_refusal",
    "inferred_output",
    "is_unknown",
    "record_outputs",
]

_SECONDS, _MEMORY = 20.0, 1 << 29
"""Limits in seconds and bytes for the inference of one node: thousands of times the usual need."""

_ASKS_FIRST = tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 18)
"""Whether onnx-migrate must check before an inference that the operator has an inference function: before onnx 1.18."""

_SMALL = 64
"""Elements of a constant input up to which its values are given to the inference."""

_KEPT, _KEPT_BYTES = 4096, 4096
"""How many answers are remembered, and up to how many bytes of attributes."""


class _Question(NamedTuple):
    """All that the types of a node's outputs follow from: a rewrite writes the same few nodes again and again."""

    operator: str
    domain: str
    opset: int
    attributes: tuple[bytes, ...]
    inputs: tuple[tuple[ValueType, bytes] | None, ...]
    """The type of each input, and its value as a TensorProto if that is known and small; None for an omitted input.

    The types of element-wise operators do not depend on values.
    """
    outputs: tuple[bool, ...]
    """Whether each output is there."""


Computed = Callable[[str], "np.ndarray[Any, Any] | None"]

_Answer = tuple[ValueType | None, ...] | str
"""The type of each output, with None for a type that onnx does not infer; or the reason for which it refuses the node."""


def is_unknown(known: ValueType, *, dims: bool = False) -> bool:
    """Return whether the rank or element type of a tensor is not known; with `dims`, also whether any dim is not."""
    if known.container:
        return False
    return known.shape is None or known.dtype is None or (dims and None in known.shape)


def record_outputs(
    scope: Scope, node: onnx.NodeProto, opset: int, *, dims: bool = False, computed: Computed | None = None
) -> bool:
    """Enter the unknown types of a node's outputs into the scope's types, as far as onnx infers them.

    Returns False if onnx's inference refuses the node.

    `opset` is the version of the node's domain whose form the node has. With `dims`, shapes that lack a dim are
    replaced too. `computed` returns the arrays of known values that are no constants of the model. Nodes with
    sub-graphs are skipped.
    """
    missing = {name for name in node.output if name and is_unknown(scope.value_type(name), dims=dims)}
    if not missing or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
        return True
    # A text is the message of onnx's refusal.
    inferred = _inferred(scope, node, opset, computed)
    if isinstance(inferred, str):
        return False
    for name, type_ in zip(node.output, inferred, strict=True):
        if (
            name in missing
            and type_ is not None
            and (type_.shape is not None or scope.value_type(name).dtype is None)
        ):
            recorded_type = scope.value_type(name)
            # A recorded shape stays, unless `dims` asks to replace it by one with more dims.
            keeps = recorded_type.shape is not None and not (dims and type_.shape is not None)
            scope.record_type(name, replace(recorded_type, dtype=type_.dtype) if keeps else type_)
    return True


def inferred_output(scope: Scope, node: onnx.NodeProto, name: str, opset: int) -> ValueType | None:
    """Return the type that onnx's inference gives an output of a node from its inputs alone; None if it gives none."""
    inferred = _inferred(scope, node, opset)
    return None if isinstance(inferred, str) else inferred[list(node.output).index(name)]


def inference_refusal(scope: Scope, node: onnx.NodeProto, opset: int) -> str | None:
    """Return the message of onnx's inference if it refuses a node, else None.

    `opset` is the version of the node's domain whose form the node has.
    """
    inferred = _inferred(scope, node, opset)
    return f"is refused by onnx's inference: {inferred}" if isinstance(inferred, str) else None


def infer_types(node: onnx.NodeProto, opset: int, inputs: Sequence[ValueType]) -> list[ValueType | None]:
    """Return the types of the outputs of a node outside of any model, from those of its inputs; [] if onnx refuses the node."""
    question = _Question(
        node.op_type,
        node.domain,
        opset,
        tuple([attribute.SerializeToString() for attribute in node.attribute]),
        tuple([(input_type, b"") for input_type in inputs]),
        tuple([bool(name) for name in node.output]),
    )
    inferred = _answer(question)
    return [] if isinstance(inferred, str) else list(inferred)


def _inferred(scope: Scope, node: onnx.NodeProto, opset: int, computed: Computed | None = None) -> _Answer:
    # Only shapes decide for these operators, so constants would make the cache larger.
    reads_values = node.op_type not in ELEMENTWISE
    question = _Question(
        node.op_type,
        node.domain,
        opset,
        tuple([attribute.SerializeToString() for attribute in node.attribute]),
        tuple(
            [
                (_known(scope, name), _constant(scope, name, computed) if reads_values else b"")
                if name
                else None
                for name in node.input
            ]
        ),
        tuple([bool(name) for name in node.output]),
    )
    is_small = sum(map(len, question.attributes)) <= _KEPT_BYTES
    # A large question would fill the cache.
    return (_answer if is_small else _answer.__wrapped__)(question)


@lru_cache(maxsize=_KEPT)
def _answer(question: _Question) -> _Answer:
    inputs = {
        f"i{index}": input_type for index, input_type in enumerate(question.inputs) if input_type is not None
    }
    outputs = [f"o{index}" if there else "" for index, there in enumerate(question.outputs)]
    node = onnx.NodeProto(
        op_type=question.operator,
        domain=question.domain,
        input=[f"i{index}" if input_type else "" for index, input_type in enumerate(question.inputs)],
        output=outputs,
        attribute=[AttributeProto.FromString(attribute) for attribute in question.attributes],
    )
    try:
        inferred = infer_node_outputs(
            defs.get_schema(question.operator, question.opset, question.domain),
            node,
            {name: _type(type_) for name, (type_, _) in inputs.items()},
            {name: TensorProto.FromString(value) for name, (_, value) in inputs.items() if value},
            {question.domain: question.opset},
            onnx.IR_VERSION,
        )
    # onnx has no schema of this operator at this opset, so nothing is known about its outputs.
    except defs.SchemaError:
        return (None,) * len(outputs)
    except InferenceError as error:
        return str(error)
    return tuple([value_type_of(inferred[name]) if name in inferred else None for name in outputs])


def _known(scope: Scope, name: str) -> ValueType:
    recorded_type = scope.value_type(name)
    # A constant has a shape even if no table of the model declares it.
    if recorded_type.shape is None and (array := scope.constant(name)) is not None:
        return ValueType(int(helper.np_dtype_to_tensor_dtype(array.dtype)), tuple(array.shape))
    return recorded_type


def _type(known: ValueType) -> onnx.TypeProto:
    if known.dtype is None:
        return onnx.TypeProto()
    if known.shape is None or not known.symbols:
        return helper.make_tensor_type_proto(known.dtype, known.shape)
    dims = [
        size if size is not None else name or None
        for size, name in zip(known.shape, known.symbols, strict=True)
    ]
    return helper.make_tensor_type_proto(known.dtype, dims)


def _constant(scope: Scope, name: str, computed: Computed | None) -> bytes:
    """Return the value of a small constant as a TensorProto, b"" for any other."""
    array = scope.constant(name)
    if array is None and computed is not None:
        array = computed(name)
    if array is None or array.size > _SMALL:
        return b""
    return onnx.numpy_helper.from_array(array, name="").SerializeToString()


def infer_node_outputs(
    schema: Any,
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    imports: Mapping[str, int],
    ir_version: int,
) -> dict[str, onnx.TypeProto]:
    """Return the types of a node's outputs, as `onnx.shape_inference.infer_node_outputs` does.

    `schema` is that of the operator that the inference assumes, and `data` has the values of known inputs. Names of
    omitted inputs are ignored. Raises InferenceError.
    """
    complaint = equation_complaint(node, ()) if node.op_type == "Einsum" else ""
    if complaint:  # on which onnx's inference may not end
        raise InferenceError(complaint)
    ending = process.call_in_fork(
        f"{__name__}:_infer",
        (schema.name, schema.since_version, schema.domain),
        node.SerializeToString(),
        {name: type_.SerializeToString() for name, type_ in types.items() if name},
        {name: tensor.SerializeToString() for name, tensor in data.items() if name in node.input},
        dict(imports),
        ir_version,
        seconds=_SECONDS,
        memory=_MEMORY,
        state=schema_generation(),
    )
    if isinstance(ending, process.Returned):
        return {name: onnx.TypeProto.FromString(type_) for name, type_ in ending.value.items()}
    raise InferenceError(
        " ".join((ending.message if isinstance(ending, process.Raised) else str(ending)).split())
    )


@cache
def _schema(operator: str, version: int, domain: str) -> Any:
    return defs.get_schema(operator, version, domain)


def _infer(
    operator: tuple[str, int, str],
    node: bytes,
    types: dict[str, bytes],
    data: dict[str, bytes],
    imports: dict[str, int],
    ir_version: int,
) -> dict[str, bytes]:
    """The function that runs in the other process."""
    schema = _schema(*operator)
    # Without an inference function there is no answer, and some versions of onnx fail when asked.
    if _ASKS_FIRST and not schema.has_type_and_shape_inference_function:
        return {}
    output_types: dict[str, bytes] = schema._infer_node_outputs(node, types, data, {}, imports, ir_version)
    return output_types
