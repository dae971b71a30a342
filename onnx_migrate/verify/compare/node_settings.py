"""Whether original and result compute a value with the same settings: constants and attributes that are floats."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from onnx_migrate.model.graphs import producers
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.compare.comparison import bit_difference

__all__ = ["NodeSettings"]

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


class NodeSettings:
    """The settings of two models, for the values that both compute by the same name."""

    def __init__(self, original: onnx.ModelProto, result: onnx.ModelProto) -> None:
        self._models = original, result
        self._tensors = _tensors(original), _tensors(result)
        self._producers = producers(original.graph), producers(result.graph)

    def difference(self, name: str, read: Iterable[str]) -> str:
        """Describe the first setting that differs of the node that computes a value from those in `read`; "" if none does.

        Constants are compared by name, as far as their data are in the models themselves; attributes where the operator
        is the same.
        """
        for constant in read:
            one, other = (tensors.get(constant) for tensors in self._tensors)
            if one is None or other is None:
                continue
            if difference := bit_difference(
                constant, numpy_helper.to_array(one), numpy_helper.to_array(other)
            ):
                return f"the constant {difference}"
        nodes = [made[name] for made in self._producers]
        if nodes[0].op_type != nodes[1].op_type or nodes[0].domain != nodes[1].domain:
            return ""
        one_has, other_has = (_floats(node, model) for node, model in zip(nodes, self._models, strict=True))
        for key in sorted(one_has.keys() & other_has.keys()):
            if one_has[key] != other_has[key]:
                return f"the attribute {key!r} is {other_has[key]:g}, not {one_has[key]:g}"
        return ""


def _floats(node: onnx.NodeProto, model: onnx.ModelProto) -> dict[str, float]:
    """Return the attributes of a node that are a float, with the defaults of its operator."""
    found: dict[str, float] = {}
    opset = next((item.version for item in model.opset_import if is_onnx(item.domain)), 1)
    if is_onnx(node.domain) and onnx.defs.has(node.op_type, opset):
        for name, attribute in onnx.defs.get_schema(node.op_type, opset).attributes.items():
            if attribute.default_value.type == AttributeProto.FLOAT:
                found[name] = attribute.default_value.f
    found.update({item.name: item.f for item in node.attribute if item.type == AttributeProto.FLOAT})
    return found


def _tensors(model: onnx.ModelProto) -> dict[str, TensorProto]:
    """Return the float tensors with data of their own, by the names of initializers and of Constant's outputs."""
    found = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and is_onnx(node.domain):
            found.update(zip(node.output, (a.t for a in node.attribute if a.name == "value"), strict=False))
    return {
        name: tensor
        for name, tensor in found.items()
        if tensor.data_type in _FLOATS and tensor.data_location != TensorProto.EXTERNAL
    }
