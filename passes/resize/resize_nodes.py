"""Goes over the Resizes of a model, and takes note of what became of each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import onnx

from onnx_migrate.analysis.known_values import KnownValues, Producers
from onnx_migrate.analysis.scope import Scope, scopes
from onnx_migrate.errors import Where
from onnx_migrate.model.dim_requests import DynamicAxes, named_axes
from onnx_migrate.model.graphs import all_nodes, subgraphs
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import Change, ChangeLog, Exactness
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.schema import is_onnx, signature_at

from .node_context import ResizeNode
from .runtime_types import RealTypes, contradicts

__all__ = ["Visit", "Walk", "resizes"]

Visit = Callable[[ResizeNode], set[str]]
"""Rewrites one node, and returns the outputs of nodes that are no longer needed."""


def resizes(model: Model) -> list[onnx.NodeProto]:
    """Return the Resizes of all bodies of the model."""
    return [node for node in all_nodes(model.proto) if node.op_type == "Resize"]


class Walk:
    """One run of a pass over the Resizes of opset 11 and on, and over the Gathers that adapters wrote for one.

    `dynamic` are the axes that are made dynamic afterwards, and so are not known.
    """

    def __init__(self, pass_name: str, model: Model, log: ChangeLog, dynamic: DynamicAxes | None) -> None:
        self.pass_name, self.model, self.log = pass_name, model, log
        self._dynamic = named_axes(dynamic, Interface.of(model.proto)) if dynamic else {}
        self._dead_values: set[str] = set()
        self._said: set[tuple[str, str]] = set()
        self.lifted = {
            (change.where.scope, change.before.output[0]): change
            for change in log.changes
            if change.where.operator in ("Resize", "Upsample")
        }
        """What the lift did, by scope and the name of the value the node gives."""

    def origin(self, node: ResizeNode) -> Change | None:
        """Return what the lift did to a node; None for one that came as it is."""
        return self.lifted.get((node.rw.scope.path, node.rw.node.output[0]))

    def each(self, visit: Visit) -> bool:
        """Show each node, in order and inner bodies first, to `visit`; tell whether any changed."""
        proto = self.model.proto
        types = RealTypes(self.model, self._dynamic)
        own = scopes(proto, self.model.weights, result_ir_version=proto.ir_version, types=types)
        changed = False
        producers = Producers()
        imports = [proto.opset_import, *(function.opset_import for function in proto.functions)]
        for scope, imported in zip(own, imports, strict=True):
            opset = onnx_opset(imported, ir_version=proto.ir_version)
            if opset is not None and opset >= 11:
                changed |= self._body(scope, opset, producers, visit)
        return changed

    def end(self) -> None:
        """Take away what has lost its last reader."""
        remove_dead_values(self.model.proto, self._dead_values)

    def warn(self, node: ResizeNode, message: str, *, code: str) -> None:
        """Note something of a node once."""
        where = node.rw.where
        if (str(where), code) not in self._said:
            self._said.add((str(where), code))
            self.log.note(self.pass_name, code, f"{where}: {message}", subject=where.node, severity="warning")

    def _body(self, scope: Scope, opset: int, producers: Producers, visit: Visit) -> bool:
        changed = False
        known = KnownValues(scope, producers)
        nodes: list[onnx.NodeProto] = []
        gone: set[str] = set()
        for index, node in enumerate(scope.body.node):
            for attribute, number, graph in subgraphs(node):
                inner = scope.inner(node, index, attribute, number, graph)
                changed |= self._body(inner, opset, producers, visit)
            if not self._concerns(scope, node):
                nodes.append(node)
                continue
            form = signature_at("", "Resize", opset)
            since = form.since_version if form else opset
            where = Where(scope.path, node.name or node.output[0], "Resize", since, since)
            rw = Rewriter(node, scope, opset, opset, where)
            before = onnx.NodeProto()
            before.CopyFrom(node)
            gone.update(visit(ResizeNode(rw, known, producers)))
            nodes.extend([*rw.preceding, node])
            if node != before:
                changed = True
                self._dead_values.update(name for name in before.input if name and name not in node.input)
                self._record(before, rw, since)
        self._value_info(scope)
        if gone:
            idle = (node for node in nodes if gone.intersection(node.output))
            self._dead_values.update(name for node in idle for name in node.input)
        if scope.added or gone or len(nodes) != len(scope.body.node):
            nodes = [*scope.added, *(node for node in nodes if not gone.intersection(node.output))]
            del scope.body.node[:]
            scope.body.node.extend(nodes)
        return changed

    def _concerns(self, scope: Scope, node: onnx.NodeProto) -> bool:
        """Tell whether a node is a Resize, or the last of those that an adapter wrote for one."""
        if node.op_type not in ("Resize", "Gather") or not is_onnx(node.domain):
            return False
        if node.op_type == "Gather" and (scope.path, node.output[0]) not in self.lifted:
            return False
        return not any(attribute.ref_attr_name for attribute in node.attribute)

    def _record(self, before: onnx.NodeProto, rw: Rewriter, since: int) -> None:
        self.log.changes.append(
            Change(
                pass_name=self.pass_name,
                where=rw.where,
                serialised_before=before.SerializeToString(),
                version_before=since,
                serialised_after=rw.node.SerializeToString(),
                version_after=since,
                emitted=tuple(node.op_type for node in rw.preceding),
                reason="; ".join(dict.fromkeys(rw.reasons)) or "inputs that hold nothing are left out",
                exactness=rw.exactness or Exactness.EXACT,
                serialised_helpers=tuple(node.SerializeToString() for node in rw.preceding),
                serialised_constants=constant_summaries(
                    rw.scope, chain(before.input, rw.node.input, *(node.input for node in rw.preceding))
                ),
            )
        )

    def _value_info(self, scope: Scope) -> None:
        """Drop what is noted of values whose lengths are others when run."""
        body = scope.body
        asked = isinstance(scope.types, RealTypes) and scope.types.asked
        if not asked or not isinstance(body, onnx.GraphProto) or not body.value_info:
            return
        kept = [value for value in body.value_info if not contradicts(value, scope.value_type(value.name))]
        count = len(body.value_info) - len(kept)
        if count:
            message = f"dropped {count} noted shapes that are not what runs"
            self.log.note(self.pass_name, "value-info", message)
            del body.value_info[:]
            body.value_info.extend(kept)
