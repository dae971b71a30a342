"""Makes initializers of Constant nodes, for a target that has no Constant."""

from __future__ import annotations

import onnx
from onnx import AttributeProto, helper

from onnx_migrate.model.graphs import bodies
from onnx_migrate.standard.element_types import CONSTANT_TYPES
from onnx_migrate.standard.schema import is_onnx

__all__ = ["store_constants"]


def store_constants(proto: onnx.ModelProto) -> int:
    """Make initializers of the Constants in graphs, and return how many; functions have no initializers and keep theirs.

    Before IR version 4 all stay: there an initializer is an input of the main graph.
    """
    if proto.ir_version < 4:
        return 0
    count = 0
    for located in bodies(proto):
        graph = located.body
        if isinstance(graph, onnx.GraphProto) and isinstance(located.owner, onnx.ModelProto):
            stored = [node for node in graph.node if _is_constant(node) and _store(node, graph)]
            # A constant that could not be stored stays a node.
            gone = {node.output[0] for node in stored}
            remaining = [node for node in graph.node if not (_is_constant(node) and node.output[0] in gone)]
            if stored:
                del graph.node[:]
                graph.node.extend(remaining)
            count += len(stored)
    return count


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and is_onnx(node.domain) and len(node.attribute) == 1


def _store(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    attribute, name = node.attribute[0], node.output[0]
    # A sparse value has its own kind of initializer.
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        graph.sparse_initializer.add().CopyFrom(attribute.sparse_tensor)
        graph.sparse_initializer[-1].values.name = name
    elif attribute.type == AttributeProto.TENSOR:
        graph.initializer.add().CopyFrom(attribute.t)
        graph.initializer[-1].name = name
    elif attribute.name in CONSTANT_TYPES:
        value = helper.get_attribute_value(attribute)
        # The plural names hold vectors.
        listed = attribute.name.endswith("s")
        values = list(value) if listed else [value]
        graph.initializer.append(
            helper.make_tensor(name, CONSTANT_TYPES[attribute.name], [len(values)] if listed else [], values)
        )
    else:
        return False
    return True
