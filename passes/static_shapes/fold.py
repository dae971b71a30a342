"""Folds values that follow from fixed dims and small constants: shape arithmetic, and the types that depend on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce

import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.facts.shape_arithmetic import LARGEST, OPERATORS, Array
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx

__all__ = ["Folded", "fold_shapes"]

_FOLLOWED = OPERATORS | {"Size"}

_SUMS = frozenset({"ReduceProd", "ReduceSum"})
"""Operators whose float results depend on the order of the elements, which kernels choose."""

_KINDS = "biuf"
"""The kinds of NumPy's element types that are folded: NumPy computes with them as kernels do."""


@dataclass(frozen=True)
class Folded:
    """The result of folding: the number of folded nodes of each operator, and the main graph with the types of its values."""

    scope: Scope
    operators: Counter[str]


def fold_shapes(model: Model) -> Folded:
    """Fold in place the values that follow from fixed dims and constants, up to LARGEST elements each, and remove dead nodes.

    A folded node becomes a Constant of the same name. Local functions stay unchanged. The time is linear in the nodes.
    """
    proto = model.proto
    opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version) or 1
    operators: Counter[str] = Counter()
    while True:
        scope = scopes(proto, model.weights, result_ir_version=proto.ir_version)[0]
        folder = _Folder(opset)
        folder.body(scope, None)
        if not folder.operators:
            return Folded(scope, operators)
        operators += folder.operators
        remove_dead_values(proto, folder.unread)  # moves nodes, so the loop builds the scopes again


@dataclass
class _Folder:
    opset: int
    operators: Counter[str] = field(default_factory=Counter)
    producers: Producers = field(default_factory=Producers)
    unread: set[str] = field(default_factory=set)

    def body(self, scope: Scope, outer: ValueFacts | None) -> None:
        """Fold the nodes of a body in order; for a sub-graph, use the facts that are known at its node."""
        facts = ValueFacts(
            scope, self.producers, followed=_FOLLOWED, largest=LARGEST, all_dims=True, outer=outer
        )
        for index, node in enumerate(scope.body.node):
            branches: list[list[ValueType]] = []
            for attribute, graph_index, graph in subgraphs(node):
                inner = scope.inner(node, index, attribute, graph_index, graph)
                # Nodes inside may fold before the node around them.
                self.body(inner, facts)
                branches.append([inner.value_type(value.name) for value in graph.output])
            if node.op_type == "If" and is_onnx(node.domain):
                _join(scope, node, branches)
            facts.refine(node, self.opset)
            # A node whose value is known needs no computation.
            array = self._value(node, facts)
            if array is not None:
                self.operators[node.op_type] += 1
                self.unread.update(filter(None, node.input))
                _make_constant(node, array)
                scope.register(node)
                scope.record_type(
                    node.output[0], ValueType(node.attribute[0].t.data_type, tuple(array.shape))
                )

    def _value(self, node: onnx.NodeProto, facts: ValueFacts) -> Array | None:
        if not is_onnx(node.domain) or node.op_type not in _FOLLOWED | {"Shape"} or len(node.output) != 1:
            return None
        array = facts.value(node.output[0])
        if array is None or array.dtype.kind not in _KINDS or array.dtype.itemsize == 2:
            return None
        if node.op_type in _SUMS and array.dtype.kind == "f":
            return None
        return array


def _join(scope: Scope, node: onnx.NodeProto, branches: list[list[ValueType]]) -> None:
    """Enter the types of an If's outputs in which its branches agree."""
    for name, *types in zip(node.output, *branches, strict=False):
        if name and not scope.value_type(name).container:
            scope.record_type(name, reduce(ValueType.meet, types))


def _make_constant(node: onnx.NodeProto, array: Array) -> None:
    tensor: TensorProto = numpy_helper.from_array(array)
    node.op_type = "Constant"
    del node.input[:], node.attribute[:]
    node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(tensor)
