"""Writes the operators of other domains with those of ai.onnx: ONNX Runtime's own, and those of plug-ins that have formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.registry import foreign_domains
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.scope import Scope
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import nested_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import body_opsets, set_onnx_opset
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.standard.unlisted_operators import is_runtime_operator

from ..left import decompose_or_leave

__all__ = ["MICROSOFT", "Standard", "import_onnx"]

MICROSOFT = "com.microsoft"

_OF_RUNTIME = frozenset(("SimplifiedLayerNormalization", "MemcpyFromHost", "MemcpyToHost"))
"""Operators of ONNX Runtime in ai.onnx, whose names the standard does not have."""


@register_pass
@dataclass(frozen=True)
class Standard(Pass):
    """Write nodes of other domains with ai.onnx, at the opset that the model has.

    The pass inlines a local function if a node in it needs a fact that only the calls provide. Raises CannotMigrate for a node
    of these domains that has no form, code `not-standard`, or that lacks a fact its form needs. Raises UsageError for a
    domain without known operators.
    """

    name: ClassVar[str] = "standard"
    title: ClassVar[str] = "replacing operators of other domains"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    domains: tuple[str, ...] = ()
    """The domains whose nodes the pass replaces; empty for all known ones. With com.microsoft, the pass also replaces ONNX
    Runtime's own operators in ai.onnx."""
    beside: int = 17
    """The ai.onnx opset for a body that imports none."""
    best_effort: bool = False
    """Whether nodes that the pass refuses stay unchanged, with a warning of code `not-fitted`."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place; returns another one if functions were inlined."""
        foreign = foreign_domains()
        # A misspelt domain would silently change nothing.
        unknown = sorted(set(self.domains) - set(foreign))
        if unknown:
            raise UsageError(
                f"no operator of the domain {unknown[0]!r} is known",
                code="unknown-domain",
                hint=f"known are {listed(foreign)}, and those of plug-ins with formulas (docs/library.md)",
            )
        domains = frozenset(self.domains or foreign)
        # The standard operators need an import of ai.onnx.
        import_onnx(model.proto, domains, self.beside)
        of_runtime = MICROSOFT in domains

        def unfit(node: onnx.NodeProto, _scope: Scope) -> str | None:
            if node.domain in domains:
                return f"{node.domain}.{node.op_type} is not a standard operator"
            # ONNX Runtime has operators of its own in ai.onnx.
            if of_runtime and node.op_type in _OF_RUNTIME and is_onnx(node.domain):
                return f"{node.op_type} is ONNX Runtime's own"
            return None

        written = decompose_or_leave(
            model,
            unfit,
            log,
            self.name,
            (lambda refused: True) if self.best_effort else None,
            read_as=_layer_normalization if of_runtime else None,
            lacking_code="not-standard",
        )
        if written.refusals:
            raise _refusal(
                [refusal.error for refusal in written.refusals if isinstance(refusal.error, CannotMigrate)]
            )
        return written.model


def import_onnx(proto: onnx.ModelProto, domains: frozenset[str], beside: int) -> None:
    """Let each body that has nodes of these domains and imports no ai.onnx import this opset of it, in place."""
    for owner, opset in body_opsets(proto):
        nodes = owner.graph.node if isinstance(owner, onnx.ModelProto) else owner.node
        if opset is None and any(node.domain in domains for node in nested_nodes(nodes)):
            set_onnx_opset(owner, beside)


def _layer_normalization(node: onnx.NodeProto, opset: int) -> int | None:
    """Return 17 for a LayerNormalization that ONNX Runtime has at an older opset, as it computes it as that version."""
    return 17 if node.op_type == "LayerNormalization" and is_runtime_operator(node, opset) else None


def _refusal(errors: list[CannotMigrate]) -> CannotMigrate:
    """Return one error for all refusals, in the words of the first operator that has no form, if there is one."""
    first = next((error for error in errors if error.code == "not-standard"), errors[0])
    # The error names other nodes, so that one run shows all.
    others = [error.where for error in errors if error is not first and error.where]
    more = ""
    if others:
        names = ", ".join(f"{where.node!r} ({where.operator})" for where in others[:5])
        more = f"; {count_of(len(others), 'more node')} refused: {names}{', …' if len(others) > 5 else ''}"
    return CannotMigrate(f"{first.reason}{more}", code=first.code, where=first.where, hint=first.advice)
