"""onnx's shape inference of one node, in another process: it aborts the process for some nodes that are not valid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import onnx
from onnx import defs

from onnx_migrate.analysis.onnx_inference import InferenceError
from onnx_migrate.isolate import Raised, Returned, call_in_fork
from onnx_migrate.spec.custom_operators import schema_generation

__all__ = ["infer_node_outputs"]

_SECONDS, _MEMORY = 20.0, 1 << 29
"""What one node may take: thousands of times what it does."""

_ASKS_FIRST = tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 18)
"""Whether the installed onnx must be asked whether an operator has an inference function."""


def infer_node_outputs(
    schema: Any,
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    imports: Mapping[str, int],
    ir_version: int,
) -> dict[str, onnx.TypeProto]:
    """Return the types of a node's outputs, as `onnx.shape_inference.infer_node_outputs` does.

    `schema` is of the operator as which the node is inferred, and `data` has the values of inputs that are known. The names of
    inputs that are left out are ignored. Raises InferenceError.
    """
    ending = call_in_fork(
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
    if isinstance(ending, Returned):
        return {name: onnx.TypeProto.FromString(type_) for name, type_ in ending.value.items()}
    raise InferenceError(" ".join((ending.message if isinstance(ending, Raised) else str(ending)).split()))


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
    """What runs in the other process."""
    schema = _schema(*operator)
    if _ASKS_FIRST and not schema.has_type_and_shape_inference_function:
        return {}
    found: dict[str, bytes] = schema._infer_node_outputs(node, types, data, {}, imports, ir_version)
    return found
