"""The settings of a node, beside the values that depend on the input: its attributes, with defaults, and its constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.kernel.arrays import Array

from .records import Recorded

__all__ = ["NodeSettings", "kind_of", "kinds_of", "settings_of"]

_FUSED = {"FusedConv": "Conv", "FusedGemm": "Gemm", "FusedMatMul": "MatMul", "Upsample": "Resize"}
"""Operators that do the work of another one, and more."""

_UPSAMPLE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
"""How Upsample and Resize-10 map coordinates, by their specification; later versions of Resize have attributes for it."""

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@dataclass(frozen=True)
class NodeSettings:
    """The attributes of a node by name, and its constant inputs by their names in the operator's schema."""

    attributes: dict[str, Any]
    constants: dict[str, tuple[str, Array]]
    """The constant's own name, and its data."""


def kind_of(node: onnx.NodeProto) -> str:
    """Return the operator of a node, or the one that it extends, for example Conv for ONNX Runtime's FusedConv."""
    return _FUSED.get(node.op_type, node.op_type)


def kinds_of(node: onnx.NodeProto) -> list[str]:
    """Return the operators that a node stands for, for example Conv and Relu for a FusedConv with that activation."""
    activation = next(
        # A fused node states its activation in an attribute.
        (attribute.s.decode() for attribute in node.attribute if attribute.name == "activation"),
        "",
    )
    kinds = [kind_of(node)]
    if node.op_type == "Gemm":
        # Gemm without a bias is a MatMul.
        kinds = ["MatMul", "Add"] if len(node.input) > 2 else ["MatMul"]
    return [*kinds, *([activation] if activation and node.op_type.startswith("Fused") else [])]


def settings_of(node: onnx.NodeProto, side: Recorded) -> NodeSettings:
    """Return the settings of a node of a model, without attributes that are graphs."""
    schema = _schema(node, side.model)
    attributes: dict[str, Any] = {}
    if schema is not None:
        for name, attribute in schema.attributes.items():
            if attribute.default_value.type != AttributeProto.UNDEFINED:
                attributes[name] = _value(attribute.default_value)
    if node.op_type == "Upsample" or (
        node.op_type == "Resize" and schema is not None and schema.since_version == 10
    ):
        attributes |= _UPSAMPLE
    # The attributes of the node come last, because they replace the defaults.
    attributes |= {
        node_attribute.name: _value(node_attribute)
        for node_attribute in node.attribute
        if node_attribute.type not in _GRAPHS
    }
    constants = {}
    for input_index, name in enumerate(node.input):
        array = side.constants.get(name)
        if array is not None:
            constants[_formal(schema, input_index)] = (name, array)
    return NodeSettings(attributes, constants)


def _schema(node: onnx.NodeProto, model: onnx.ModelProto) -> onnx.defs.OpSchema | None:
    domain = "" if is_onnx(node.domain) else node.domain
    opsets = {
        ("" if is_onnx(opset_import.domain) else opset_import.domain): opset_import.version
        for opset_import in model.opset_import
    }
    version = opsets.get(domain, 1)
    if onnx.defs.has(node.op_type, version, domain):
        return onnx.defs.get_schema(node.op_type, version, domain)
    kind = kind_of(node)
    # A fused operator has the attributes of its plain form.
    return onnx.defs.get_schema(kind) if kind != node.op_type and onnx.defs.has(kind) else None


def _formal(schema: onnx.defs.OpSchema | None, place: int) -> str:
    if schema is None or place >= len(schema.inputs):
        return f"input {place}"
    formal: str = schema.inputs[place].name
    is_variadic = schema.inputs[place].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    return f"{formal} {place}" if is_variadic else formal


def _value(attribute: AttributeProto) -> Any:
    """Return an attribute's value, so that equal ones compare equal."""
    value = onnx.helper.get_attribute_value(attribute)
    # The data is not in memory, so that the place in the file stands for it.
    if attribute.type == AttributeProto.TENSOR and value.data_location == TensorProto.EXTERNAL:
        return [list(value.dims), [(entry.key, entry.value) for entry in value.external_data]]
    if attribute.type == AttributeProto.TENSOR:
        array = onnx.numpy_helper.to_array(value)
        return array.tolist() if array.size <= 16 else array.tobytes()
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if attribute.type == AttributeProto.FLOAT:
        return float(np.float32(value))
    return list(value) if isinstance(value, (list, tuple)) else value
