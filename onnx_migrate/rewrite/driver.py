"""The rewrite driver: traverses a body and its sub-graphs, and applies the rewrites of a visitor.

A visitor rewrites one node at a time with a `Rewriter`. The driver opens the scopes of sub-graphs. It inserts the nodes
written before and after the node, and inserts added constants at the front of the body. It drops removed nodes and nodes
that the rewrite superseded. It records a `Change` for each changed node, and collects the values that may have lost
their last reader. A traversal is linear in the number of nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import ClassVar

import numpy as np
import onnx

from onnx_migrate.errors import MigrateError, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.process import check_stopped
from onnx_migrate.rewrite.change_log import Change, ChangeLog, Exactness
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.schema import is_onnx, signature_at

__all__ = ["Driver", "Visitor"]

_GRADES = list(Exactness)
"""From the best to the worst."""

_operator = attrgetter("op_type")


class Visitor(ABC):
    """Rewrites the nodes of bodies; `Driver` calls the methods in the order of their definition."""

    log: ChangeLog
    """The log that the driver writes to."""
    pass_name: str
    """The pass that recorded changes name."""
    opens_subgraphs: ClassVar[bool] = False
    """Whether `rewrite` itself traverses the sub-graphs of its node; otherwise the driver does, before the node."""
    repeats: ClassVar[bool] = False
    """Whether the nodes of a rewrite are rewritten in turn, depth first, until `rewrite` returns None for each."""

    def enter(self, scope: Scope) -> None:  # noqa: B027 - most visitors keep nothing for a body
        """Prepare for a body, before its first node."""

    @abstractmethod
    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the version at which the rewrite of a node begins; None leaves it unchanged. `opset` is that of the body."""

    @abstractmethod
    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        """Rewrite a node in place and return the Rewriter, which holds the nodes written beside it; None for no rewrite."""

    def result_version(self, opset: int) -> int:
        """Return the opset that rewritten nodes of a body of this opset have in the end."""
        return opset

    def handle_refusal(self, error: MigrateError) -> None:
        """Handle the error that rewriting a node raised: raise it, or return to keep the node and go on."""
        raise error

    def leave(self, scope: Scope) -> None:  # noqa: B027 - as `enter`
        """Finish a body, after its last node."""


@dataclass
class _NewBody:
    """The nodes that a body has after the traversal."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    differs: bool = False
    """Whether these are not simply the nodes of the body, each edited in place."""
    superseded: set[str] = field(default_factory=set)
    """Outputs of nodes of the body that rewrites made unnecessary."""


@dataclass
class Driver:
    """One traversal of one or several bodies of a model, which are edited in place."""

    visitor: Visitor
    dead_values: set[str] = field(default_factory=set)
    """Values that rewritten and dropped nodes read before, and added constants; some may have no reader."""

    def body(self, scope: Scope, opset: int) -> bool:
        """Rewrite a body whose ai.onnx (or other migrated) domain has this opset; return whether any node changed.

        Raises the MigrateError of a rewrite, unless the visitor handles it; the model is then half rewritten.
        """
        visitor, new, changed = self.visitor, _NewBody(), False
        visitor.enter(scope)
        # Numbers of a model may be anything, and NumPy's warnings are for programmers.
        with np.errstate(all="ignore"):
            for index, node in enumerate(scope.body.node):
                if not visitor.opens_subgraphs:
                    for attribute, graph_index, graph in subgraphs(node):
                        changed |= self.body(scope.inner(node, index, attribute, graph_index, graph), opset)
                version = visitor.start(node, scope, opset)
                if version is None:
                    new.nodes.append(node)
                else:
                    changed |= self._node(node, scope, version, visitor.result_version(opset), new)
        visitor.leave(scope)
        self.dead_values.update(scope.added_constants)  # a step may compute with one before nodes read it
        if new.superseded:
            self._drop_superseded(new)
        if new.differs or scope.leading_constants:
            del scope.body.node[:]
            # Constants of the rewrites come first, because every node of the body may read them.
            scope.body.node.extend([*scope.leading_constants, *new.nodes])
            scope.leading_constants.clear()
        return changed

    def _node(
        self, node: onnx.NodeProto, scope: Scope, version: int, result_version: int, new: _NewBody
    ) -> bool:
        """Rewrite one node of a body, and the nodes written for it if the visitor repeats; return whether it changed."""
        check_stopped()
        domain, operator = node.domain, node.op_type
        before, first = node.SerializeToString(), len(new.nodes)
        try:
            rewriters = self._rewrite(node, scope, version, new)
        except MigrateError as error:
            # The node stays unchanged, and the visitor decides whether the error ends the pass.
            self.visitor.handle_refusal(error)
            new.nodes[first:] = [node]
            return False
        if not rewriters:
            return False
        work = _Work(node, rewriters)
        inputs, read = rewriters[0].inputs, node.input[:]
        # Inputs that the node no longer reads may have lost their last reader.
        if inputs != read or work.removed:
            remaining_inputs = () if work.removed else read
            self.dead_values.update([name for name in inputs if name and name not in remaining_inputs])
        new.differs |= work.removed or bool(work.emitted)
        after = node.SerializeToString()
        # A rewrite may look at a node and find nothing to change; that is no entry of the log.
        if before == after and not (work.removed or work.emitted or work.noted or work.grade):
            return False
        where = rewriters[0].where
        to_version = result_version if result_version != version else None
        version_before = _since_version(domain, operator, version)
        written = new.nodes[first:]
        several = work.replaced and len(written) > 1
        # If several nodes replace the node, none of them is the node itself.
        helpers = written if several else [helper for helper in written if helper is not node]
        onnx_version = result_version if is_onnx(domain) else rewriters[-1].onnx_opset
        self.visitor.log.changes.append(
            Change(
                pass_name=self.visitor.pass_name,
                where=Where(where.scope, where.node, where.operator, version_before, to_version),
                serialised_before=before,
                version_before=version_before,
                serialised_after=None if work.removed or several else after,
                version_after=_since_version(
                    node.domain, node.op_type, onnx_version if is_onnx(node.domain) else result_version
                ),
                opset=onnx_version,
                emitted=tuple(map(_operator, helpers)) if several else tuple(work.emitted),
                reason=_joined(tuple(work.reasons)),
                exactness=_GRADES[work.grade],
                serialised_helpers=tuple([helper.SerializeToString() for helper in helpers]),
                serialised_constants=constant_summaries(
                    scope,
                    chain(inputs, read, *[helper.input[:] for helper in helpers]),
                    scope.constant_summaries,
                ),
            )
        )
        return True

    def _rewrite(self, node: onnx.NodeProto, scope: Scope, version: int, new: _NewBody) -> list[Rewriter]:
        """Append the nodes that replace `node` to `new`; return the rewriters that wrote them, in the order of their work."""
        visitor = self.visitor
        rewriters: list[Rewriter] = []
        pending = [(node, version)]
        while pending:
            current, version = pending.pop()
            rewriter = visitor.rewrite(current, scope, version)
            if rewriter is None:
                new.nodes.append(current)
                continue
            if rewriters:  # the nodes of an earlier rewrite may have lost their reader
                self.dead_values.update(filter(None, rewriter.inputs))
            rewriters.append(rewriter)
            for fact in rewriter.facts:
                visitor.log.record_fact(scope.path, rewriter.first_output, fact)
            if rewriter.superseded:
                new.superseded.update(rewriter.superseded)
            written = rewriter.preceding + ([] if rewriter.removed else [current]) + rewriter.following
            if visitor.repeats:
                version = rewriter.version
                if len(written) == 1:
                    pending.append((written[0], version))
                else:
                    pending.extend([(written_node, version) for written_node in reversed(written)])
            else:
                new.nodes.extend(written)
        return rewriters

    def _drop_superseded(self, new: _NewBody) -> None:
        dropped = [node for node in new.nodes if not new.superseded.isdisjoint(node.output)]
        self.dead_values.update(name for node in dropped for name in node.input if name)
        new.nodes = [node for node in new.nodes if new.superseded.isdisjoint(node.output)]
        new.differs |= bool(dropped)


class _Work:
    """The combined edits of all rewriters of a node."""

    removed = False
    """Whether the node itself is dropped."""
    noted = False
    """Whether a rewriter gave a reason of its own."""
    grade = 0
    """The index in _GRADES of the worst exactness."""
    replaced = False
    """Whether a formula made the node one of another operator."""

    def __init__(self, node: onnx.NodeProto, rewriters: list[Rewriter]) -> None:
        self.emitted: list[str] = []
        """The operators of the nodes that were written beside it."""
        self.reasons: list[str] = []
        """The reasons for the rewrite of the node itself; the reasons for nodes beside it follow from these."""
        for rewriter in rewriters:
            if rewriter.reasons:
                self.noted = True
            if rewriter.preceding or rewriter.following:
                self.emitted.extend(map(_operator, [*rewriter.preceding, *rewriter.following]))
            if rewriter.exactness is not None and rewriter.exactness is not Exactness.EXACT:
                self.grade = max(self.grade, _GRADES.index(rewriter.exactness))
            # Other rewriters wrote the nodes beside it.
            if rewriter.node is node:
                self.removed |= rewriter.removed
                if not self.replaced:
                    self.reasons.extend(rewriter.reasons or (rewriter.default_reason,))
                self.replaced |= rewriter.replaced


@lru_cache(maxsize=256)
def _joined(reasons: tuple[str, ...]) -> str:
    """Return the reasons as one text, each once; many nodes have the same."""
    return "; ".join(dict.fromkeys(reasons))


def _since_version(domain: str, operator: str, opset: int) -> int:
    """Return the since_version of an operator at an opset.

    Of an operator that onnx does not know it is the opset, or 1 if it is of a domain other than ai.onnx.
    """
    form = signature_at(domain, operator, opset)
    return form.since_version if form else opset if is_onnx(domain) else 1
