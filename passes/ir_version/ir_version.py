"""The pass gives a model the IR version that the user asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.validity import IrLimit
from onnx_migrate.errors import UsageError
from onnx_migrate.messages import count_of
from onnx_migrate.model.interface import listed_initializers, unlist_initializers
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.annotations import drop_unused_imports, note_unused_imports, set_ir_version
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.older_ir.lower_ir import lower_ir
from onnx_migrate.standard.ir_versions import NEWEST_IR, OLDEST_IR, IrFeature

__all__ = ["IrVersion"]


@register_pass
@dataclass(frozen=True)
class IrVersion(Pass):
    """Set the IR version, and write what a lower one does not have in another form, or refuse it; drop unused imports.

    Raises CannotMigrate, code `no-such-ir`, for a feature without such a form, for example an opset of a newer version.
    """

    name: ClassVar[str] = "ir_version"
    title: ClassVar[str] = "setting the IR version"
    ir_version: int
    drop_training: bool = False
    """Whether to remove training information, which IR versions below 7 do not have; otherwise it is an error."""
    unlist: bool = True
    """Whether initializers that are inputs only because IR version 3 wants that are removed from them above it."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place."""
        if not OLDEST_IR <= self.ir_version <= NEWEST_IR:
            raise UsageError(
                f"IR version {self.ir_version} is not supported",
                code="no-such-ir",
                hint=f"give one from {OLDEST_IR} to {NEWEST_IR}, the newest that the installed onnx knows",
            )
        proto, before = model.proto, model.proto.ir_version
        first = IrFeature.UNLISTED.since
        # From this version on, a listed initializer is a default.
        overridable = before >= first and listed_initializers(proto.graph)
        if overridable and self.ir_version < first:
            log.note(
                self.name,
                "overridable",
                f"callers could override {count_of(len(overridable), 'initializer')}, and no longer can. Before IR"
                f" version {first} every initializer is an input, and ONNX Runtime allows no overrides",
                subject=overridable[0],
                severity="warning",
            )
        lower_ir(model, self.ir_version, log, pass_name=self.name, drop_training=self.drop_training)
        # The model could not leave its initializers out before.
        if before < first <= self.ir_version and self.unlist:
            gone = unlist_initializers(proto.graph)
            if gone:
                reason = f"removed {count_of(len(gone), 'initializer')} from the inputs"
                log.note(self.name, "unlisted", reason, subject=gone[0])
        note_unused_imports(self.name, drop_unused_imports(proto), log)
        set_ir_version(proto, self.ir_version, log, self.name)
        # Later passes must not raise the IR version again.
        log.record_fact("", "", IrLimit(self.ir_version))
        return model
