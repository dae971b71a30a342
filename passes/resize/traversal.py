"""The traversal of a model's Resizes by the rewrite driver, with the known facts of each Resize."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.facts.shapes import contradict, dims_of
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.messages import count_of
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver, Visitor
from onnx_migrate.rewrite.resize.pairs import ResizeOrigin
from onnx_migrate.rewrite.resize.spec import ResizeSpec, read_resize
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx, signature_at

from ..input_dims import requested_dims
from .runtime_types import RunTimeTypes

__all__ = ["ResizeNode", "ResizeTraversal", "Visit", "resizes"]


@dataclass
class ResizeNode:
    """A Resize, or the Gather after one (see `split` of ResizeOrigin), with the facts that are known in its body."""

    rw: Rewriter
    known: ValueFacts
    producers: Producers
    origin: ResizeOrigin | None
    """The node that an adapter rewrote to this one; None for a node that no adapter rewrote."""

    def value(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return the array of a value that is constant or follows from known shapes, else None."""
        constant = self.rw.constant_value(name)
        return self.known.value(name) if constant is None else constant

    def spec(self) -> ResizeSpec | None:
        """Return the known lengths, scales and sizes of the node in its current form; None if its axes are not known."""
        return read_resize(self.rw, self.value)

    @property
    def shrinking(self) -> onnx.NodeProto | None:
        """The Resize that shrinks, of those that an adapter wrote for one node, if this is the last of them."""
        if self.origin is None or not self.origin.split:
            return None
        return self.producers.find(self.rw.scope, self.origin.split[-1])


Visit = Callable[[ResizeNode], None]
"""Rewrites one node, if it needs to be."""


def resizes(model: Model) -> list[onnx.NodeProto]:
    """Return the Resizes of all bodies of the model."""
    return [node for node in all_nodes(model.proto) if node.op_type == "Resize"]


class ResizeTraversal(Visitor):
    """Visits the Resizes of opset 11 and later for one pass, and the Gathers that adapters wrote after one.

    A later pass makes the axes `dynamic` dynamic: their lengths are not known.
    """

    def __init__(self, pass_name: str, model: Model, log: ChangeLog, dynamic: DynamicAxes | None) -> None:
        self.pass_name, self.model, self.log = pass_name, model, log
        self._plan = requested_dims(dynamic, model, log)
        self._dead_values: set[str] = set()
        self._warned: set[tuple[str, str]] = set()

    def origin(self, scope: str, output: str) -> ResizeOrigin | None:
        """Return the node that an adapter rewrote to the node with this output; None if no adapter rewrote it."""
        return self.log.fact(ResizeOrigin, scope, output)

    def visit_all(self, visit: Visit) -> bool:
        """Call `visit` for each node, in order, sub-graphs before their node; return whether any node changed."""
        proto = self.model.proto
        self._visit, self._producers = visit, Producers()
        self._known: list[ValueFacts] = []
        """The known facts of the values of each body that is being traversed, the innermost last."""
        types = RunTimeTypes(self.model, self._plan)
        own = scopes(proto, self.model.weights, result_ir_version=proto.ir_version, types=types)
        driver = Driver(self, self._dead_values)
        changed = False
        for scope, (_, opset) in zip(own, body_opsets(proto), strict=True):
            if opset is not None and opset >= 11:
                changed |= driver.body(scope, opset)
        return changed

    def end(self) -> None:
        """Remove nodes and constants that have lost their last reader."""
        remove_dead_values(self.model.proto, self._dead_values)

    def warn(self, node: ResizeNode, message: str, *, code: str) -> None:
        """Log a warning about a node, once for each code."""
        where = node.rw.where
        if (str(where), code) not in self._warned:
            self._warned.add((str(where), code))
            self.log.note(self.pass_name, code, f"{where}: {message}", subject=where.node, severity="warning")

    def enter(self, scope: Scope) -> None:
        """Start with no known value of the body."""
        self._known.append(ValueFacts(scope, self._producers))

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return `opset` for a Resize, and for the Gather after a pair that an adapter wrote for one.

        The traversal skips a node with an attribute that each call of a function sets: its mode is not known.
        """
        if node.op_type not in ("Resize", "Gather") or not is_onnx(node.domain):
            return None
        origin = self.origin(scope.path, node.output[0])
        if node.op_type == "Gather" and (origin is None or not origin.split):
            return None
        return None if any(attribute.ref_attr_name for attribute in node.attribute) else opset

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter:
        """Call the function for a node, which may rewrite it."""
        form = signature_at("", "Resize", version)
        since = form.since_version if form else version
        where = Where(scope.path, node.name or node.output[0], "Resize", since)
        rw = Rewriter(node, scope, version, version, where)
        rw.default_reason = "empty inputs are removed"
        origin = self.origin(scope.path, node.output[0])
        self._visit(ResizeNode(rw, self._known[-1], self._producers, origin))
        return rw

    def leave(self, scope: Scope) -> None:
        """Drop the value_info that contradicts inferred shapes, if these were inferred at all."""
        self._known.pop()
        body = scope.body
        has_types = isinstance(scope.types, RunTimeTypes) and scope.types.asked
        # Without inference, nothing is known to be wrong.
        if not has_types or not isinstance(body, onnx.GraphProto) or not body.value_info:
            return
        consistent = [
            value
            for value in body.value_info
            if not contradict(dims_of(value), scope.value_type(value.name).shape)
        ]
        count = len(body.value_info) - len(consistent)
        if count:
            message = f"dropped the value_info of {count_of(count, 'value')} whose shapes at run time differ from it"
            self.log.note(self.pass_name, "value-info", message)
            del body.value_info[:]
            body.value_info.extend(consistent)
