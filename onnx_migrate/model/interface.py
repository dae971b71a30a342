"""A model's interface to its callers: the names, types and order of its inputs and outputs, and references of users to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import onnx
from onnx import TensorProto

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import did_you_mean
from onnx_migrate.model.graphs import fed_inputs, initializer_names

__all__ = [
    "UNNAMED",
    "Interface",
    "Port",
    "axis_of",
    "dims_text",
    "list_initializers",
    "listed_initializers",
    "lists_some_initializers",
    "port_named",
    "tokens_of",
    "unlist_initializers",
]

UNNAMED = frozenset({"?", "None", "none", "-1", "0", "unk", "dynamic"})
"""Words that exporters write for any open dim. Two dims of one of these words may have different lengths."""


@dataclass(frozen=True)
class Port:
    """One input or output: its name, its type, and its dims: an int, a symbol, or None for unknown."""

    name: str
    kind: str
    """The type without the dims, as in "float" or "seq(int64)"; "?" if none is declared."""
    shape: tuple[int | str | None, ...] | None
    """None if not even the number of dims is declared, or the value is no tensor."""

    @classmethod
    def of(cls, value: onnx.ValueInfoProto) -> Port:
        """Return the port that a declaration describes."""
        return cls(value.name, _kind(value.type), _shape(value.type))

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}{'' if self.shape is None else dims_text(self.shape)}"


def dims_text(dims: Sequence[int | str | None]) -> str:
    """Return the dims of a value, as in "[N, 3, ?]"."""
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


@dataclass(frozen=True)
class Interface:
    """The inputs that a caller must feed, those without an initializer, and the outputs, in order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @classmethod
    def of(cls, proto: onnx.ModelProto) -> Interface:
        """Return a model's interface."""
        inputs = tuple(map(Port.of, fed_inputs(proto.graph)))
        return cls(inputs, tuple(map(Port.of, proto.graph.output)))

    def difference(self, other: Interface) -> str | None:
        """Return how names, types or order of `other` differ, as a message; None if they are equal. Dims are ignored."""
        for direction, mine, theirs in (
            ("input", self.inputs, other.inputs),
            ("output", self.outputs, other.outputs),
        ):
            if [port.name for port in mine] != [port.name for port in theirs]:
                before, after = (", ".join(port.name for port in ports) for ports in (mine, theirs))
                return f"the {direction}s were {before or 'none'} and became {after or 'none'}"
            for old, new in zip(mine, theirs, strict=True):
                # An undeclared type may become known.
                if old.kind != new.kind and old.kind != "?":
                    return f"{direction} {old.name!r} was {old.kind} and became {new.kind}"
        return None


def listed_initializers(graph: onnx.GraphProto) -> list[str]:
    """Return the names of initializers that are inputs of the graph too, in the order of these."""
    initialized = initializer_names(graph)
    return [value.name for value in graph.input if value.name in initialized]


def lists_some_initializers(proto: onnx.ModelProto) -> bool:
    """Return whether some initializers are listed as inputs and others are not, so that callers may override the listed.

    Before IR version 4 all must be listed, so a listing says nothing (onnx/docs/IR.md, "Graphs").
    """
    initialized = initializer_names(proto.graph)
    listed = initialized & {value.name for value in proto.graph.input}
    return proto.ir_version >= 4 and bool(listed) and len(listed) < len(initialized)


def list_initializers(graph: onnx.GraphProto) -> int:
    """List all dense initializers of a graph as inputs after the real ones, in place; return how many were added.

    Before IR version 4 all must be listed, and are constants all the same.
    """
    listed = {value.name for value in graph.input}
    added = [tensor for tensor in graph.initializer if tensor.name not in listed]
    graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims) for tensor in added
    )
    return len(added)


def unlist_initializers(graph: onnx.GraphProto) -> list[str]:
    """Remove initializers from the graph's inputs, in place, and return their names.

    From IR version 4 on they need not be listed (onnx/docs/IR.md, "Graphs"). A caller can override one that is, so a
    runtime cannot treat it as a constant.
    """
    gone = listed_initializers(graph)
    if gone:
        # A list of its own: the next line empties the graph's inputs.
        remaining_inputs = fed_inputs(graph)
        del graph.input[:]
        graph.input.extend(remaining_inputs)
    return gone


def _kind(type_: onnx.TypeProto) -> str:
    value_kind = type_.WhichOneof("value")
    if value_kind == "tensor_type":
        return _element(type_.tensor_type.elem_type)
    if value_kind == "sparse_tensor_type":
        return f"sparse {_element(type_.sparse_tensor_type.elem_type)}"
    if value_kind == "sequence_type":
        return f"seq({_kind(type_.sequence_type.elem_type)})"
    if value_kind == "optional_type":
        return f"optional({_kind(type_.optional_type.elem_type)})"
    if value_kind == "map_type":
        key = _element(type_.map_type.key_type)
        return f"map({key}, {_kind(type_.map_type.value_type)})"
    return str(value_kind or "?")


_ELEMENTS = {dtype: name.lower() for name, dtype in TensorProto.DataType.items()}


def _element(dtype: int) -> str:
    """Return the name of an element type, or its number if the installed onnx does not know it."""
    return _ELEMENTS.get(dtype) or f"type {dtype}"


def _shape(type_: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    if type_.WhichOneof("value") != "tensor_type" or not type_.tensor_type.HasField("shape"):
        return None
    dims: list[int | str | None] = []
    for dim in type_.tensor_type.shape.dim:
        dim_kind = dim.WhichOneof("value")
        dims.append(dim.dim_value if dim_kind == "dim_value" else (dim.dim_param or None))
    return tuple(dims)


def port_named(name: str, ports: Mapping[str, Port], *, inputs: bool = False) -> Port:
    """Return the input or output of this name; with `inputs`, `ports` has only inputs, and the error says so.

    Raises UsageError, which suggests a similar name.
    """
    if name not in ports:
        raise UsageError(
            f"the model has no input{'' if inputs else ' or output'} {name!r}",
            code="no-such-input",
            hint=_nearest(name, ports, "inputs" if inputs else "inputs and outputs"),
        )
    return ports[name]


def _nearest(name: str, ports: Mapping[str, Port], what: str) -> str:
    shown = [*islice(ports, 10), *(["..."] if len(ports) > 10 else [])]
    return f"{did_you_mean(name, ports)} its {what} are {', '.join(shown)}".lstrip()


def axis_of(axis: object, port: Port) -> int:
    """Return the number of an axis, counted from 0. Raises UsageError if the port has no such axis."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise UsageError(f"{axis!r} is not an axis of {port.name!r}", hint="axes are integers")
    # Without a declared rank, any axis may exist.
    rank = len(port.shape) if port.shape is not None else None
    if rank is not None and not -rank <= axis < rank:
        raise UsageError(f"{port} has no axis {axis}", code="no-such-axis")
    if axis < 0 and rank is None:
        raise UsageError(
            f"axis {axis} of {port.name!r} counts from the end, but {port.name!r} declares no shape",
            hint="count axes from 0",
        )
    return axis % rank if rank else axis


def tokens_of(dims: str) -> list[str]:
    """Return the text of each axis; brackets around all of it, as of a list, have no meaning."""
    dims = dims.strip()
    if (dims[:1], dims[-1:]) in (("[", "]"), ("(", ")")):
        dims = dims[1:-1]
    return [token.strip() for token in dims.split(",")]
