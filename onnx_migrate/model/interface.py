"""What a model shows the world: the names, types and order of its inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import fed_inputs, initializer_names

__all__ = ["Interface", "Port", "unlist_initializers"]


@dataclass(frozen=True)
class Port:
    """One input or output: its name, the type without the dims, and the dims (int, name, or None)."""

    name: str
    kind: str
    shape: tuple[int | str | None, ...] | None

    @classmethod
    def of(cls, value: onnx.ValueInfoProto) -> Port:
        """Describe a declared input or output."""
        return cls(value.name, _kind(value.type), _shape(value.type))

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}: {self.kind}"
        return (
            f"{self.name}: {self.kind}[{', '.join('?' if dim is None else str(dim) for dim in self.shape)}]"
        )


@dataclass(frozen=True)
class Interface:
    """The inputs that must be fed (no initializer gives them a value) and the outputs, in order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @classmethod
    def of(cls, proto: onnx.ModelProto) -> Interface:
        """Read a model's interface."""
        inputs = tuple(map(Port.of, fed_inputs(proto.graph)))
        return cls(inputs, tuple(map(Port.of, proto.graph.output)))

    def difference(self, other: Interface) -> str | None:
        """Say how the names, kinds or order of `other` differ, or None when they are the same; dims may differ."""
        for what, mine, theirs in (
            ("input", self.inputs, other.inputs),
            ("output", self.outputs, other.outputs),
        ):
            if [port.name for port in mine] != [port.name for port in theirs]:
                before, after = (", ".join(port.name for port in ports) for ports in (mine, theirs))
                return f"{what}s were {before} and became {after}"
            for old, new in zip(mine, theirs, strict=True):
                if old.kind != new.kind and old.kind != "?":
                    return f"{what} {old.name!r} was {old.kind} and became {new.kind}"
        return None


def unlist_initializers(graph: onnx.GraphProto) -> list[str]:
    """Take initializers out of the graph's inputs, which no IR version from 4 on asks for; return their names.

    An initializer that is listed can be overridden by a caller, and is therefore no constant to a runtime.
    """
    given = initializer_names(graph)
    gone = [value.name for value in graph.input if value.name in given]
    if gone:
        kept = fed_inputs(graph)
        del graph.input[:]
        graph.input.extend(kept)
    return gone


def _kind(type_: onnx.TypeProto) -> str:
    which = type_.WhichOneof("value")
    if which == "tensor_type":
        return TensorProto.DataType.Name(type_.tensor_type.elem_type).lower()
    if which == "sparse_tensor_type":
        return f"sparse {TensorProto.DataType.Name(type_.sparse_tensor_type.elem_type).lower()}"
    if which == "sequence_type":
        return f"seq({_kind(type_.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({_kind(type_.optional_type.elem_type)})"
    if which == "map_type":
        key = TensorProto.DataType.Name(type_.map_type.key_type).lower()
        return f"map({key}, {_kind(type_.map_type.value_type)})"
    return str(which or "?")


def _shape(type_: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    if type_.WhichOneof("value") != "tensor_type" or not type_.tensor_type.HasField("shape"):
        return None
    dims: list[int | str | None] = []
    for dim in type_.tensor_type.shape.dim:
        which = dim.WhichOneof("value")
        dims.append(dim.dim_value if which == "dim_value" else (dim.dim_param or None))
    return tuple(dims)
