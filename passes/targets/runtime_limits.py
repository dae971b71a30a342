"""Checks a model against the limits of the runtimes it is for, and writes its Resizes in a form that they support."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.fitting_passes import FittingPass
from onnx_migrate.engine.incompatibility import Incompatibility, counted
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.engine.validity import IrLimit
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.node_form import node_forms
from onnx_migrate.model.graphs import node_label
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.annotations import set_ir_version
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.older_ir.lower_ir import lower_ir
from onnx_migrate.rewrite.operator_counts import nodes_by_operator
from onnx_migrate.rewrite.resize.forms import name_all_axes
from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.schema import ML
from onnx_migrate.standard.targets import Target, Targets, operator_knowledge

from ..left import leave_or_raise
from ..resize.traversal import ResizeNode, ResizeTraversal, resizes
from .runtime_faults import faulty_nodes

__all__ = ["RuntimeLimits"]


@register_pass
@dataclass(frozen=True)
class RuntimeLimits(FittingPass):
    """Lower the IR version to one that the runtimes load, and refuse a newer opset, or warn where they try it.

    onnx-migrate refuses a model that holds something which such an IR version does not have. If a runtime does not support the
    attribute `axes` of Resize, scales and sizes are written for all axes instead. Notes warn of each node that a runtime
    computes wrongly. They also warn of releases that are newer than our tables.
    """

    name: ClassVar[str] = "runtime_limits"
    title: ClassVar[str] = "checking the limits of the target runtime"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    targets: Targets
    best_effort: bool = False
    """Whether an opset or an IR version that the pass cannot reach is a warning, not an error."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model` in place. Raises CannotMigrate, codes `runtime-ir` and `runtime-opset`."""
        proto = model.proto
        for target in self.targets:
            self._warn_if_later(target, log)
            self._note_if_assumed(target, log)
            if target.row.note:
                log.note(self.name, "release-note", f"{target}: {target.row.note}", subject=target.name)
        # All targets must load the model.
        loader = _loads_least(self.targets, proto.ir_version)
        if loader is not None:
            self._lower_ir(model, loader, log)
        opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version) or 0
        for target in self.targets:
            self._check_opset(target, opset, log)
            self._warn_of_unknown_operators(target, model, log)
            self._warn_of_faults(target, model, opset, log)
        # Few runtimes lack the attribute.
        if not self.targets.resize_axes and _with_axes(model):
            traversal = ResizeTraversal(self.name, model, log, None)
            traversal.visit_all(lambda node: self._name_all_axes(traversal, node))
            traversal.end()
        return model

    def objections(self, model: Model) -> tuple[Incompatibility, ...]:
        """Return limits on the header that the model exceeds, nodes that a target computes wrongly, and Resizes with `axes`."""
        misfits: list[Incompatibility] = []
        opset = onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version) or 0
        for target in self.targets:
            # Limits on opset and IR version are of the whole model.
            misfits += map(Incompatibility, _of_header(target, model.proto, opset))
            for faulty in faulty_nodes(target, model, opset):
                where = Where(node=node_label(faulty.node), operator=faulty.node.op_type)
                misfits.append(Incompatibility(f"{target} {faulty.text}", where, 1, wrong=faulty.is_certain))
            if not target.row.resize_axes:
                reason = f"{target} does not support the attribute axes of Resize"
                misfits += [
                    Incompatibility(reason, Where(node=node_label(node), operator="Resize"), 1)
                    for node in _with_axes(model)
                ]
        return counted(misfits)

    def _warn_if_later(self, target: Target, log: ChangeLog) -> None:
        if target.later:
            newest = target.table.newest or target.row.since
            log.note(
                self.name,
                "later-release",
                f"{target} is newer than {newest}, the newest release of {target.table.title} that we"
                " know; we assume that it supports at least as much",
                subject=target.name,
                severity="warning",
            )

    def _note_if_assumed(self, target: Target, log: ChangeLog) -> None:
        if target.assumed:
            log.note(
                self.name,
                "release-assumed",
                f"you named no release of {target.table.title}, and none is installed, so we assume {target}. To name another:"
                f" --for {target.name}=={target.table.releases[0].since}",
                subject=target.name,
            )

    def _lower_ir(self, model: Model, loader: tuple[int, Target], log: ChangeLog) -> None:
        (newest, target), before = loader, model.proto.ir_version
        try:
            lower_ir(model, newest, log, pass_name=self.name, opset=target.opset or 0)
        except CannotMigrate as error:
            refusal = CannotMigrate(
                f"{target} loads IR versions up to {newest}, and the model has {before}: {error.reason}",
                code="runtime-ir",
                where=error.where,
                hint=error.advice,
            )
            leave_or_raise(refusal, log, self.name, best_effort=self.best_effort)
            return
        set_ir_version(model.proto, newest, log, self.name, f", the newest that {target} loads")
        log.record_fact("", "", IrLimit(newest, target.opset or 0))

    def _check_opset(self, target: Target, opset: int, log: ChangeLog) -> None:
        if target.opset is None or opset <= target.opset:
            return
        # The runtime certainly refuses the opset.
        if target.lower is True:
            refusal = CannotMigrate(
                f"onnx-migrate cannot convert the model below opset {opset}, and {target} supports models only up to opset"
                f" {target.opset}",
                code="runtime-opset",
                hint="make a model for each runtime"
                if len(self.targets) > 1
                else Advice("remove --no-lower", options={"lower": True}),
            )
            leave_or_raise(refusal, log, self.name, best_effort=self.best_effort)
            return
        log.note(
            self.name,
            "runtime-opset",
            f"the model stays at its opset {opset}, but {target} is known to run models only up to opset"
            f" {target.opset}",
            severity="warning",
        )

    def _warn_of_unknown_operators(self, target: Target, model: Model, log: ChangeLog) -> None:
        knowledge = operator_knowledge(target, nodes_by_operator(model.proto), lambda: node_forms(model))
        if knowledge.unknown:
            log.note(
                self.name,
                "operators-not-known",
                knowledge.warning,
                subject=target.name,
                severity="warning",
            )

    def _warn_of_faults(self, target: Target, model: Model, opset: int, log: ChangeLog) -> None:
        for faulty in faulty_nodes(target, model, opset):
            text, help_ = f"{node_label(faulty.node)}: {target} {faulty.text}", faulty.fault.help
            log.note(
                self.name,
                "runtime-fault" if faulty.is_certain else "possible-runtime-fault",
                f"{text}. {help_[:1].upper()}{help_[1:]}" if help_ else text,
                subject=faulty.node.name,
                severity="warning",
            )

    def _name_all_axes(self, traversal: ResizeTraversal, node: ResizeNode) -> None:
        rw = node.rw
        if rw.node.op_type == "Resize" and rw.attribute("axes") is not None:
            obstacle = name_all_axes(rw)
            without = ", ".join(str(target) for target in self.targets if not target.row.resize_axes)
            does = "does" if sum(not target.row.resize_axes for target in self.targets) == 1 else "do"
            if obstacle is None:
                rw.note(
                    f"scales or sizes are of all axes, because {without} {does} not support the attribute axes"
                )
            else:
                reason = f"keeps the attribute axes, which {without} {does} not support: {obstacle}"
                traversal.warn(node, reason, code="resize-kept")


def _of_header(target: Target, proto: onnx.ModelProto, opset: int) -> Iterator[str]:
    """Yield the reasons why a target does not support the opsets and the IR version of a model."""
    if target.opset is not None and opset > target.opset:
        takes = "takes models" if target.lower is True else "is known to run models"
        yield f"opset {opset}: {target} {takes} only up to opset {target.opset}"
    if target.oldest is not None and opset < target.oldest:
        yield f"opset {opset}: {target} takes models from opset {target.oldest} on"
    if target.ir_version is not None and proto.ir_version > target.ir_version:
        yield f"IR version {proto.ir_version}: {target} loads IR versions up to {target.ir_version}"
    ml = imported(proto.opset_import, ML)
    if target.row.ml is not None and ml is not None and ml > target.row.ml:
        yield f"opset {ml} of {ML}: {target} takes models only up to opset {target.row.ml} of it"


def _with_axes(model: Model) -> list[onnx.NodeProto]:
    """Return the Resizes with the attribute `axes`."""
    return [node for node in resizes(model) if any(attribute.name == "axes" for attribute in node.attribute)]


def _loads_least(targets: Targets, ir_version: int) -> tuple[int, Target] | None:
    """Return the newest IR version that all targets load, and the one that bounds it, if that is below `ir_version`."""
    bounds = [(t.ir_version, t) for t in targets if t.ir_version is not None and t.ir_version < ir_version]
    return min(bounds, key=lambda item: item[0], default=None)
