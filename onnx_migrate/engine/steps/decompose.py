"""Replaces operators that a target lacks by others, using the registered steps down, and lifts the new nodes again.

The opset of the model stays. A node of a lacking operator is decomposed (a step of `Direction.WITHOUT`), or lowered below
the first version of its operator. If the target lacks an operator of the new nodes too, the same happens to these nodes.
The other new nodes are lifted to the opset of the model again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import onnx

from onnx_migrate.advice import Hint
from onnx_migrate.engine.steps.lost_types import casts_to
from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.node_steps import node_name, take, where_of
from onnx_migrate.engine.steps.registry import decomposition_of, next_step, step_at
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.engine.steps.step_visitor import LoweringRefusal, StepVisitor
from onnx_migrate.errors import CannotMigrate, MigrateError, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.schema import is_onnx, signature_at, versions
from onnx_migrate.standard.unlisted_operators import EXPERIMENTAL_OPERATORS, RUNTIME_OPERATORS

__all__ = ["Decompose", "Forms", "ReadAs", "Unfit"]

_NOT_STANDARD_AT_1 = {item.name for item in (*RUNTIME_OPERATORS, *EXPERIMENTAL_OPERATORS)}
"""Operators whose version 1 belongs to ONNX Runtime, or to an experiment that ended before the standard took the name."""

Unfit = Callable[[onnx.NodeProto, Scope], str | None]
"""Returns why a target does not support a node, such as "TensorRT 8.5 has no LayerNormalization"; None if it does."""


Newer = Callable[[str, int], "str | None"]
"""Returns why a target does not support an operator of ai.onnx in its form at an opset, None if it does."""


Forms = Callable[[str, str], "Step | None"]

ReadAs = Callable[[onnx.NodeProto, int], "int | None"]
"""Returns the newer opset whose form a node of an opset has, if a runtime used its name before the standard did; else None."""

Operators = tuple[tuple[str, str], ...]
"""Operators that a node was written for, by domain and name, from the model's on."""

Types = Callable[[onnx.NodeProto, Scope], "frozenset[int] | None"]
"""Returns the element types that a target takes of a node's first input, None if it takes the node's."""


@dataclass
class Decompose(StepVisitor):
    """Replaces each node that does not fit, and each new node that does not fit, by others; each body keeps its opset."""

    pass_name: str = "fit_operators"
    unfit: Unfit = field(kw_only=True)
    newer: Newer | None = field(default=None, kw_only=True)
    """A question about new nodes only; the nodes of the model have the opset that they have."""
    types: Types | None = field(default=None, kw_only=True)
    read_as: ReadAs | None = field(default=None, kw_only=True)
    """A question about nodes that fit by their names."""
    forms: Forms | None = field(default=None, kw_only=True)
    """Finds the decomposition of an operator, by domain and name; None for the registered ones."""
    lacking_code: str = field(default="target-lacks", kw_only=True)
    """The error code for an operator that no other operators can replace."""
    repeats: ClassVar[bool] = True

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the opset for a node that does not fit, None for any other."""
        reason = None if self.calls_function(node) else self.unfit(node, scope)
        newer = self.read_as(node, opset) if reason is None and self.read_as is not None else None
        if reason is None and newer is None:
            return None
        self._opset, self._reason, self._shown = opset, reason or "", ""
        form = signature_at(node.domain, node.op_type, opset)
        since = form.since_version if form else None
        self._origin = (scope, Where(scope.path, node_name(node), node.op_type, since))
        # Each node written for this one, with the operators that led to it, and whether it was lowered.
        self._written_for: dict[int, tuple[onnx.NodeProto, Operators, bool]] = {id(node): (node, (), False)}
        return newer or opset

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> LoweringRewriter | None:
        """Decompose or lower a node that does not fit, lift any other to the opset of the model; None when it has that.

        Raises CannotMigrate if no sequence of steps works.
        """
        if self.calls_function(node):
            return None
        _, ancestors, is_lowered = self._written_for[id(node)]
        reason = self.unfit(node, scope)
        if reason is None and ancestors and self.newer is not None and is_onnx(node.domain):
            reason = self.newer(node.op_type, self._opset)
        if reason is None:
            if not is_onnx(node.domain):
                return None
            if version > self._opset:
                return self._brought_down(node, scope, version, ancestors)
            # A lowered node that does not fit again after its lift would repeat these steps forever.
            own = (*ancestors, (node.domain, node.op_type)) if is_lowered else ancestors
            return self._lifted(node, scope, version, ancestors, own)
        operator = (node.domain, node.op_type)
        if operator in ancestors:
            raise self._error(
                f"{reason}, and its decomposition writes {node.op_type} again", code=self.lacking_code
            )
        rewriter = self._lowered(node, scope, version, reason)
        below = (*ancestors, operator)
        is_kept = (node.domain, node.op_type) == operator  # more steps down follow
        self._inherit(rewriter, below, ancestors if is_kept else below, lowered=is_kept)
        return rewriter

    def refusal(self, error: CannotMigrate) -> LoweringRefusal:
        """Return the refusal of a node, with the reason why a target does not support it."""
        scope, where = self._origin
        reason = error.reason
        if not reason.startswith(self._reason):
            operator = error.where.operator if error.where else ""
            inner = f"{operator}: " if operator not in ("", where.operator) and operator not in reason else ""
            reason = f"{self._reason}, and no other operators can replace it: {inner}{reason}"
        refused = CannotMigrate(reason, code=error.code, where=where, hint=error.advice)
        return LoweringRefusal(refused, scope.function, self._opset)

    def _lowered(self, node: onnx.NodeProto, scope: Scope, version: int, reason: str) -> LoweringRewriter:
        """Take the step that brings a node nearer to the end of its operator."""
        where = where_of(node, scope, version)
        casted = self._between_casts(node, scope, version, where, reason)
        if casted is not None:
            return casted
        written_out = (self.forms or decomposition_of)(node.domain, node.op_type)
        if written_out is not None and written_out.refusal:
            raise self._error(
                f"{reason}, and {written_out.refusal}", code=self.lacking_code, hint=written_out.hint
            )
        if written_out is not None:
            rewriter = self.rewriter(node, scope, where, version, self._opset)
            self._show(rewriter, f"{reason}: {_clause(written_out.reason, node.op_type)}")
            return take(written_out, rewriter)
        ends_at = _last_step(node.op_type) if is_onnx(node.domain) else None
        limited = self.unfit(onnx.NodeProto(op_type=node.op_type, domain=node.domain), scope) is None
        if not is_onnx(node.domain) or (not limited and (ends_at is None or version < ends_at)):
            raise self._error(
                f"{reason}, and onnx-migrate cannot write it with other operators", code=self.lacking_code
            )
        step = self.next_down(node, scope, version, 0)
        if step is None or (
            isinstance(step, int) and limited
        ):  # other values or types are supported, but no step leads there
            raise self._error(
                f"{reason}, and onnx-migrate cannot write it with other operators", code=self.lacking_code
            )
        if isinstance(step, int) or step.refusal:
            why = f"{node.op_type} has no step down" if isinstance(step, int) else step.refusal
            raise self._error(
                why if reason == self._reason else f"{reason}, and {why}", code=self.lacking_code
            )
        below = ends_at - 1 if ends_at and not limited else step.version - 1
        try:
            rewriter = self.step_down(step, node, scope, below)
        except MigrateError as error:
            error.where = where
            raise
        self._show(rewriter, f"{reason}: {_clause(step.reason, step.operator)}")
        return rewriter

    def _between_casts(
        self, node: onnx.NodeProto, scope: Scope, version: int, where: Where, reason: str
    ) -> LoweringRewriter | None:
        """Let a node compute in a wider type that is supported, if its operator's steps down allow that; else None."""
        supported_types = self.types(node, scope) if self.types is not None and is_onnx(node.domain) else None
        casts = casts_to(supported_types, node, scope, version) if supported_types else None
        if casts is None:
            return None
        rewriter = self.rewriter(node, scope, where, version)
        self._show(rewriter, f"{reason}: it computes in {type_name(casts.wide)} between Casts")
        # Casts around the node leave the rest of the graph in its type.
        rewriter.cast_around(casts.inputs, casts.outputs, casts.wide, casts.narrow)
        rewriter.finish()
        rewriter.exactness = casts.exactness
        return rewriter

    def _brought_down(
        self, node: onnx.NodeProto, scope: Scope, version: int, ancestors: Operators
    ) -> LoweringRewriter | None:
        """Take the next step down of a node that was written in a newer form than the model's opset; None if the node fits."""
        step = self.next_down(node, scope, version, self._opset)
        if step is None:
            return None
        if isinstance(step, int) or step.refusal:
            why = f"{node.op_type}-{step} has no step down" if isinstance(step, int) else step.refusal
            raise self._error(why, code="no-equal")
        rewriter = self.step_down(step, node, scope, self._opset)
        self._show(rewriter, step.reason)
        self._inherit(rewriter, ancestors, ancestors)
        return rewriter

    def _lifted(
        self, node: onnx.NodeProto, scope: Scope, version: int, ancestors: Operators, own: Operators
    ) -> LoweringRewriter | None:
        """Take the next step of a node up to the opset of the model, now written for `own`; None if there is none."""
        step = next_step(Direction.UP, node.domain, node.op_type, version, self._opset)
        if step is None:
            return None
        if isinstance(step, int) or step.refusal:
            raise self._error(
                step.refusal if not isinstance(step, int) else f"{node.op_type} has no step to opset {step}",
                code="no-equal",
            )
        where = self.where(node, scope, version, step.version)
        rewriter = take(step, self.rewriter(node, scope, where, step.version, self._opset))
        rewriter.reasons.clear()
        rewriter.default_reason = self._shown
        self._inherit(rewriter, ancestors, own)
        return rewriter

    def _error(self, reason: str, *, code: str, hint: Hint = "") -> CannotMigrate:
        return CannotMigrate(reason, code=code, where=self._origin[1], hint=hint)

    def _show(self, rewriter: LoweringRewriter, reason: str) -> None:
        """Let the report give the reason of the first step of a node for all of them."""
        self._shown = self._shown or reason
        rewriter.default_reason = self._shown

    def _inherit(
        self, rewriter: LoweringRewriter, ancestors: Operators, own: Operators, *, lowered: bool = False
    ) -> None:
        """Record for which operators the nodes of a rewriter are written: `own` of its node, `ancestors` of all others."""
        for written_node in (*rewriter.preceding, *rewriter.following):
            self._written_for[id(written_node)] = (written_node, ancestors, False)
        self._written_for[id(rewriter.node)] = (rewriter.node, own, lowered)


@cache
def _last_step(operator: str) -> int | None:
    """Return the version of an operator whose step down ends the operator; None if opset 7 has it, or it has no steps."""
    operator_versions = versions("", operator)
    leaves = min(
        (version for version in operator_versions if step_at(Direction.DOWN, "", operator, version)),
        default=None,
    )
    if leaves is None or leaves <= OLDEST:
        return None
    older = [version for version in operator_versions if version < leaves]
    return leaves if not older or (older == [1] and operator in _NOT_STANDARD_AT_1) else None


def _clause(reason: str, operator: str) -> str:
    """Return the reason of a step as a clause after a colon, without the opset that introduced its operator."""
    text = re.sub(rf"^{operator} begins with opset \d+[:,] ", "", reason)
    word = text.partition(" ")[0]
    return (
        text
        if any(letter.isupper() for letter in word[1:]) or word == operator
        else text[:1].lower() + text[1:]
    )
