"""Brings every node of a model to a newer opset, one step of its operator at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain

import onnx

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.engine.registry import Step, next_step
from onnx_migrate.errors import CannotMigrate, MigrateError, Where
from onnx_migrate.model.graphs import FunctionKey, called, function_key, subgraphs
from onnx_migrate.rewrite.change_log import Change, ChangeLog, Exactness
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.schema import is_onnx, misfit, signature, signature_at, versions

__all__ = ["Lift"]

_GRADES = list(Exactness)


@dataclass
class Lift:
    """One run over a model's bodies towards `target`; what it did is in `log`, what it left unused in `dead_values`."""

    proto: onnx.ModelProto
    target: int
    log: ChangeLog
    keep: frozenset[str] = frozenset()
    dead_values: set[str] = field(default_factory=set)
    """Values that rewritten nodes read before; some may have lost their last reader."""
    domain: str = ""
    """Whose nodes are lifted, "" for ai.onnx; what its adapters write of another domain is left as it is."""
    name: str = "migrate_opset"
    """The pass that the log is told of."""

    def __post_init__(self) -> None:
        self._functions: set[FunctionKey] = {function_key(function) for function in self.proto.functions}

    def body(self, scope: Scope, opset: int) -> None:
        """Lift one body, in place, and the sub-graphs inside it. Linear in the number of nodes."""
        result: list[onnx.NodeProto] = []
        for index, node in enumerate(scope.body.node):
            for attribute, place, graph in subgraphs(node):
                self.body(scope.inner(node, index, attribute, place, graph), opset)
            if not self._owns(node) or (self._functions and called(node) in self._functions):
                result.append(node)
                continue
            start = self._true_version(node, scope, opset)
            if start >= self.target or next_step(node.domain, node.op_type, start, self.target) is None:
                result.append(node)
            else:
                self._node(node, start, scope, result)
        if scope.added or len(result) != len(scope.body.node):
            result = [*scope.added, *result]
            del scope.body.node[:]
            scope.body.node.extend(result)

    def _owns(self, node: onnx.NodeProto) -> bool:
        return is_onnx(node.domain) if not self.domain else node.domain == self.domain

    def _true_version(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int:
        """Return the opset whose form the node has: the model's own, or else the nearest one that it fits."""
        known = versions(node.domain, node.op_type)
        form = signature_at(node.domain, node.op_type, opset)
        if form and form.deprecated and form.since_version == known[0]:
            # GroupNormalization-18 was withdrawn as soon as it came, and exporters wrote it all the same.
            form = replace(form, deprecated=False)
            valid = next((version for version in known if version > form.since_version), None)
            if valid is None or self.target < valid:
                raise CannotMigrate(
                    "was withdrawn from the standard as soon as it came, so that no checker takes it",
                    code="no-equal",
                    where=Where(scope.path, node.name, node.op_type, form.since_version),
                    hint=f"version {valid} is valid again: ask for that opset or above" if valid else "",
                )
        complaint = misfit(node, form) if form else None
        if form and complaint is None:
            return opset
        where = Where(scope.path, node.name, node.op_type, opset)
        if not known:
            raise CannotMigrate(
                f"is not an operator of {self.domain or 'ai.onnx'}", code="unknown-operator", where=where,
                hint="a custom operator needs a domain of its own",
            )  # fmt: skip
        older = [version for version in reversed(known) if version < (form.since_version if form else 0)]
        newer = [version for version in known if version > opset]
        for version in (*older, *newer):
            if misfit(node, signature(node.domain, node.op_type, version)) is None:
                self.log.note(
                    self.name,
                    "other-version",
                    f"{Where(scope.path, node.name, node.op_type)} has the form of version {version},"
                    f" though it stands in opset {opset}",
                    subject=node.name or node.output[0],
                    severity="warning",
                )
                return version
        reason = complaint or f"came with opset {known[0]}, and the model is of opset {opset}"
        raise CannotMigrate(reason, code="invalid-node", where=where)

    def _node(self, node: onnx.NodeProto, start: int, scope: Scope, result: list[onnx.NodeProto]) -> None:
        """Lift one node and all that its adapters write, depth first, so that order is kept."""
        before, inputs, first = node.SerializeToString(deterministic=True), list(node.input), len(result)
        where = Where(scope.path, _name(node), node.op_type, _since(node, start), self.target)
        pending: list[tuple[onnx.NodeProto, int]] = [(node, start)]
        steps: list[tuple[Step, Rewriter]] = []
        while pending:
            current, version = pending.pop()
            own = self._owns(current)
            step = next_step(current.domain, current.op_type, version, self.target) if own else None
            if step is None:
                result.append(current)
                continue
            rewriter = self._take(step, current, version, scope)
            for fact in rewriter.facts:
                self.log.record_fact(scope.path, rewriter.first_output, fact)
            if isinstance(step, Step):
                steps.append((step, rewriter))
            kept_node = [] if rewriter.removed else [current]
            written = [*rewriter.preceding, *kept_node, *rewriter.following]
            pending.extend((item, rewriter.version) for item in reversed(written))
        kept = set(node.input)
        self.dead_values.update(name for name in inputs if name and name not in kept)
        helpers = [item for item in result[first:] if item is not node]
        self._record(before, inputs, node, helpers, scope, where, steps)

    def _record(
        self,
        before: bytes,
        inputs: list[str],
        node: onnx.NodeProto,
        helpers: list[onnx.NodeProto],
        scope: Scope,
        where: Where,
        steps: list[tuple[Step, Rewriter]],
    ) -> None:
        """Tell the log what became of a node after these steps, its own and those of the nodes written for it."""
        removed = any(rewriter.removed and rewriter.node is node for _, rewriter in steps)
        emitted = [
            item.op_type for _, rewriter in steps for item in (*rewriter.preceding, *rewriter.following)
        ]
        noted = any(rewriter.reasons for _, rewriter in steps)
        exactness = {rewriter.exactness or step.exactness for step, rewriter in steps}
        after = node.SerializeToString(deterministic=True)
        if not (removed or emitted or noted) and exactness == {Exactness.EXACT} and before == after:
            return
        own = [(step, rewriter) for step, rewriter in steps if rewriter.node is node]
        reasons = [reason for step, rewriter in own for reason in (rewriter.reasons or [step.reason])]
        self.log.changes.append(
            Change(
                pass_name=self.name,
                where=where,
                serialised_before=before,
                version_before=where.from_version or 0,
                serialised_after=None if removed else after,
                version_after=_since(node, self.target),
                emitted=tuple(emitted),
                reason="; ".join(dict.fromkeys(reasons)),
                exactness=max(exactness, key=_GRADES.index),
                serialised_helpers=tuple(item.SerializeToString(deterministic=True) for item in helpers),
                serialised_constants=constant_summaries(
                    scope,
                    chain(inputs, node.input, *(item.input for item in helpers)),
                    scope.constant_summaries,
                ),
            )
        )

    def _rewriter(self, node: onnx.NodeProto, scope: Scope, to: int, where: Where) -> Rewriter:
        return Rewriter(node, scope, to, self.target, where, self.keep)

    def _take(self, step: Step | int, node: onnx.NodeProto, version: int, scope: Scope) -> Rewriter:
        to = step if isinstance(step, int) else step.to
        where = Where(scope.path, _name(node), node.op_type, version, to)
        if isinstance(step, int):
            raise CannotMigrate(
                f"the step of {node.op_type} to version {to} is not written yet", code="no-adapter", where=where,
                hint=f"opset {to - 1} can be reached",
            )  # fmt: skip
        if step.refusal:
            raise CannotMigrate(step.refusal, code="no-equal", where=where, hint=step.hint)
        rewriter = self._rewriter(node, scope, to, where)
        if step.adapt is None:
            return rewriter
        try:
            step.adapt(node, rewriter)
        except MigrateError:
            raise
        except Exception as error:
            raise CannotMigrate(
                f"the adapter {step.code} failed on it: {type(error).__name__}: {error}", code="adapter-failed", where=where,
                hint="this is a bug of onnx-migrate, unless the node is not valid",
            ) from error  # fmt: skip
        return rewriter


def _name(node: onnx.NodeProto) -> str:
    return str(node.name or next((name for name in node.output if name), ""))


def _since(node: onnx.NodeProto, opset: int) -> int:
    form = signature_at(node.domain, node.op_type, opset)
    return form.since_version if form else opset
