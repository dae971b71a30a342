"""Finds the features of a model that are newer than IR version 3, and the first place of each.

The cost is linear in the nodes and declared values; the search looks into few of them. It reads no weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import onnx
from onnx import AttributeProto, NodeProto

from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import LocatedBody, bodies, function_path, initializer_names, node_label
from onnx_migrate.standard.element_types import TYPE_ATTRIBUTES
from onnx_migrate.standard.ir_versions import DTYPE_FEATURES, OLDEST_IR, IrFeature, minimal_ir_version
from onnx_migrate.standard.schema import is_onnx, schema_cache, signature, versions

__all__ = ["FoundFeature", "features", "required_ir"]

_TENSOR_KINDS = frozenset(
    (
        AttributeProto.TENSOR,
        AttributeProto.TENSORS,
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.SPARSE_TENSORS,
        AttributeProto.TYPE_PROTO,
        AttributeProto.TYPE_PROTOS,
    )
)
_RELEASED = ("ai.onnx", "ai.onnx.ml", "ai.onnx.training")
"""The domains whose opsets are released together with IR versions."""

_HAS_DEVICES = "device_configurations" in NodeProto.DESCRIPTOR.fields_by_name
_rare = attrgetter("metadata_props", "overload", *(["device_configurations"] if _HAS_DEVICES else []))
"""Returns the fields of a node that few models have."""


@dataclass(frozen=True, slots=True)
class FoundFeature:
    """A feature that a model has, the IR version it came with, the first place that has it, and the number of places."""

    feature: IrFeature
    since: int
    where: Where
    count: int = 1
    text: str = ""
    """Words that complete "the model has …"."""

    @property
    def place(self) -> str:
        """The first place as messages show it."""
        return str(self.where) if self.where.node else self.where.scope


def required_ir(proto: onnx.ModelProto, *, annotations: bool = True) -> int:
    """Return the oldest IR version that has all features of a model, at least 3.

    Without `annotations`, features that change no number do not count: programs that do not know them ignore them.
    """
    used_features = features(proto)
    return max(
        (
            used_feature.since
            for used_feature in used_features
            if annotations or not used_feature.feature.annotation
        ),
        default=OLDEST_IR,
    )


def features(proto: onnx.ModelProto) -> list[FoundFeature]:
    """Return the features of a model, of its sub-graphs and functions too, each once, the opsets that it imports first.

    Each opset of ai.onnx and ai.onnx.ml that the model or a function imports is a feature of its own.
    """
    finder = _Finder()
    finder.model(proto)
    return finder.result()


class _Finder:
    def __init__(self) -> None:
        self._first: dict[IrFeature, Where] = {}
        self._count: dict[IrFeature, int] = {}
        self._opsets: dict[tuple[str, int], FoundFeature] = {}

    def result(self) -> list[FoundFeature]:
        opsets = sorted(self._opsets.values(), key=lambda item: (-item.since, item.text))
        others = [
            FoundFeature(feature, feature.since, self._first[feature], self._count[feature], feature.text)
            for feature in IrFeature
            if feature in self._first
        ]
        return opsets + others

    def model(self, proto: onnx.ModelProto) -> None:
        self._imports(proto.opset_import, Where("model"))
        for _ in proto.training_info:
            self._add(IrFeature.TRAINING, Where("model"))
        for _ in getattr(proto, "configuration", ()):
            self._add(IrFeature.DEVICES, Where("model"))
        for function in proto.functions:
            self._function(function)
        for located in bodies(proto):
            self._body(located)

    def _function(self, function: onnx.FunctionProto) -> None:
        where = Where(function_path(function))
        self._imports(function.opset_import, where)
        self._add(IrFeature.FUNCTIONS, where)
        if function.attribute_proto:
            self._add(IrFeature.ATTRIBUTE_DEFAULTS, where)
            for attribute in function.attribute_proto:
                self._attribute(attribute, where)
        if function.overload:
            self._add(IrFeature.OVERLOADS, where)
        if function.value_info:
            self._add(IrFeature.FUNCTION_VALUE_INFO, where, len(function.value_info))
            self._values(function.value_info, where.scope)
        if function.metadata_props:
            self._add(IrFeature.METADATA, where)

    def _body(self, located: LocatedBody) -> None:
        body, path = located.body, located.path
        if isinstance(body, onnx.GraphProto):
            self._graph(body, path)
        types = any(_may_hold_types(*operator) for operator in located.operators)
        # One pass over rare fields is faster than checking each node.
        if not types and not any(chain.from_iterable(map(_rare, body.node))):
            # Most nodes have no such field, so their loop is skipped.
            return
        for node in body.node:
            if node.metadata_props:
                self._add(IrFeature.METADATA, _where(path, node))
            if _HAS_DEVICES and node.device_configurations:
                self._add(IrFeature.DEVICES, _where(path, node))
            if node.overload:
                self._add(IrFeature.OVERLOADS, _where(path, node))
            # Few operators have attributes with types.
            if types and node.attribute and _may_hold_types(node.domain, node.op_type):
                where = _where(path, node)
                is_standard = is_onnx(node.domain)
                for attribute in node.attribute:
                    self._attribute(attribute, where)
                    if is_standard and attribute.name in TYPE_ATTRIBUTES and not attribute.ref_attr_name:
                        self._dtype(attribute.i, where)

    def _graph(self, graph: onnx.GraphProto, path: str) -> None:
        for values in (graph.input, graph.output, graph.value_info):
            self._values(values, path)
        for tensor in graph.initializer:
            self._tensor(tensor, Where(path, tensor.name))
        for sparse in graph.sparse_initializer:
            self._sparse(sparse, Where(path, sparse.values.name))
        for note in graph.quantization_annotation:
            self._add(IrFeature.QUANTIZATION, Where(path, note.tensor_name))
        if graph.metadata_props:
            self._add(IrFeature.METADATA, Where(path))
        unlisted = initializer_names(graph)
        if unlisted:
            # An initializer that is an input is allowed in all IR versions.
            unlisted.difference_update(value.name for value in graph.input)
        if unlisted:
            self._add(IrFeature.UNLISTED, Where(path, min(unlisted)), len(unlisted))

    def _values(self, values: Iterable[onnx.ValueInfoProto], path: str) -> None:
        for value in values:
            if value.metadata_props:
                self._add(IrFeature.METADATA, Where(path, value.name))
            type_ = value.type
            if type_.HasField("tensor_type"):
                dtype = type_.tensor_type.elem_type
                if dtype in DTYPE_FEATURES:
                    self._dtype(dtype, Where(path, value.name))
            else:
                self._type(type_, Where(path, value.name))

    def _type(self, type_: onnx.TypeProto, where: Where) -> None:
        kind = type_.WhichOneof("value")
        if kind == "tensor_type":
            self._dtype(type_.tensor_type.elem_type, where)
        elif kind == "sparse_tensor_type":
            self._add(IrFeature.SPARSE_TYPE, where)
            self._dtype(type_.sparse_tensor_type.elem_type, where)
        elif kind == "optional_type":
            self._add(IrFeature.OPTIONAL, where)
            self._type(type_.optional_type.elem_type, where)
        elif kind == "sequence_type":
            self._type(type_.sequence_type.elem_type, where)
        elif kind == "map_type":
            self._type(type_.map_type.value_type, where)
        elif kind == "opaque_type":
            self._add(IrFeature.OPAQUE, where)

    def _attribute(self, attribute: AttributeProto, where: Where) -> None:
        kind = attribute.type
        if kind not in _TENSOR_KINDS or attribute.ref_attr_name:
            return
        if kind == AttributeProto.TENSOR:
            self._tensor(attribute.t, where)
        elif kind == AttributeProto.TENSORS:
            for tensor in attribute.tensors:
                self._tensor(tensor, where)
        elif kind == AttributeProto.SPARSE_TENSOR:
            self._sparse(attribute.sparse_tensor, where)
        elif kind == AttributeProto.SPARSE_TENSORS:
            for sparse in attribute.sparse_tensors:
                self._sparse(sparse, where)
        else:
            types = [attribute.tp] if kind == AttributeProto.TYPE_PROTO else attribute.type_protos
            self._add(IrFeature.TYPE_ATTRIBUTE, where)
            for type_ in types:
                self._type(type_, where)

    def _tensor(self, tensor: onnx.TensorProto, where: Where) -> None:
        if tensor.data_type in DTYPE_FEATURES:
            self._dtype(tensor.data_type, where)
        if tensor.metadata_props:
            self._add(IrFeature.METADATA, where)

    def _sparse(self, sparse: onnx.SparseTensorProto, where: Where) -> None:
        self._add(IrFeature.SPARSE, where)
        self._tensor(sparse.values, where)

    def _dtype(self, dtype: int, where: Where) -> None:
        feature = DTYPE_FEATURES.get(dtype)
        if feature is not None:
            self._add(feature, where)

    def _imports(self, imports: Iterable[onnx.OperatorSetIdProto], where: Where) -> None:
        for entry in imports:
            domain = "ai.onnx" if is_onnx(entry.domain) else entry.domain
            key = domain, int(entry.version)
            if domain in _RELEASED and key not in self._opsets:
                since = minimal_ir_version(key[1], domain)
                self._opsets[key] = FoundFeature(
                    IrFeature.OPSET, since, where, text=f"opset {entry.version} of {domain}"
                )

    def _add(self, feature: IrFeature, where: Where, count: int = 1) -> None:
        self._first.setdefault(feature, where)
        self._count[feature] = self._count.get(feature, 0) + count


def _where(path: str, node: NodeProto) -> Where:
    return Where(path, node_label(node), node.op_type)


@schema_cache
def _may_hold_types(domain: str, operator: str) -> bool:
    """Return whether an operator may have a tensor, a type or an element type as an attribute, by any of its versions."""
    known_versions = versions(domain, operator)
    if not known_versions:
        # An operator that is not known may have any attribute.
        return True
    attributes = [signature(domain, operator, version).attributes for version in known_versions]
    return any(
        kind in _TENSOR_KINDS or name in TYPE_ATTRIBUTES for each in attributes for name, kind in each.items()
    )
