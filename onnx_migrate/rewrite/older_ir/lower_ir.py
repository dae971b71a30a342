"""Rewrites features that an older IR version lacks in a form that it has, drops them, or refuses the model."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import ModelProto

from onnx_migrate.advice import Advice, Hint
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.model.validity.ir_features import FoundFeature, features, required_ir
from onnx_migrate.rewrite.annotations import drop_annotation, set_ir_version
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.rewrite.older_ir.functions import merge_overloads, write_defaults
from onnx_migrate.rewrite.older_ir.initializers import list_all_initializers
from onnx_migrate.rewrite.older_ir.sparse import make_dense
from onnx_migrate.standard.ir_versions import (
    DTYPE_FEATURES,
    NEWEST_IR,
    IrFeature,
    minimal_ir_version,
    newest_opset_of_ir,
)
from onnx_migrate.standard.opsets import owners
from onnx_migrate.standard.schema import is_onnx

__all__ = ["fit_ir_version", "lower_ir"]


def _newer_ir(version: int) -> Advice:
    return Advice(f"ask for IR version {version}", options={"ir_version": version})


_HINTS: dict[IrFeature, Hint] = {
    IrFeature.TRAINING: Advice("--drop-training leaves it out", options={"drop_training": True}),
    IrFeature.OPTIONAL: (Advice("export the model without optional values"), _newer_ir(8)),
}


def lower_ir(
    model: Model,
    target: int,
    log: ChangeLog,
    *,
    pass_name: str = "ir_version",
    drop_training: bool = False,
    opset: int = 0,
) -> None:
    """Write everything in a model that is newer than IR version `target` in an older form, in place.

    The caller sets `ir_version` itself. Opsets of ai.onnx up to `opset` may stay although a newer IR version introduced them,
    since some programs load both. The rewritten model computes the same bits. Raises CannotMigrate, code
    `no-such-type` for an element type that `target` does not have, else `no-such-ir`.
    """
    proto = model.proto
    if proto.ir_version > NEWEST_IR:
        raise CannotMigrate(
            f"the model has IR version {proto.ir_version}, but the installed onnx knows only up to {NEWEST_IR}",
            code="too-new",
            hint="install a newer onnx",
        )
    step = _Step(model, target, log, pass_name, opset)
    if drop_training and proto.training_info:
        del proto.training_info[:]
        step.note("training-info", "removed the training information")
    newer_features = step.newer()
    if not newer_features:
        return
    # An import that no node uses may be the only newer feature.
    if any(newer_feature.feature is IrFeature.OPSET for newer_feature in newer_features):
        step.drop_unused_imports()
    for feature in (
        newer_feature.feature for newer_feature in newer_features if newer_feature.feature.annotation
    ):
        count = drop_annotation(proto, feature)
        step.note("annotations", f"removed {feature.text}, from {count} places: no number depends on them")
    step.functions({newer_feature.feature for newer_feature in newer_features})
    if any(newer_feature.feature is IrFeature.SPARSE for newer_feature in newer_features):
        for name in make_dense(model):
            written = f"initializer {name!r} is now a dense tensor with its zeros, not a sparse one"
            step.note("dense", written, subject=name)
    remaining = step.newer()
    if any(newer_feature.feature is IrFeature.UNLISTED for newer_feature in remaining):
        step.refuse(
            [newer_feature for newer_feature in remaining if newer_feature.feature is not IrFeature.UNLISTED]
        )
        listed, moved = list_all_initializers(proto)
        if moved:
            weights = count_of(moved, "initializer")
            step.note("moved-weights", f"moved {weights} of sub-graphs to the main graph")
        weights = count_of(listed, "initializer")
        step.note("listed", f"added {weights} to the inputs, which IR version {target} requires")
        # Each change may remove several features.
        remaining = step.newer()
    step.refuse(remaining)


def fit_ir_version(model: Model, log: ChangeLog, pass_name: str) -> None:
    """Lower the IR version of a model, in place, to the oldest that has its opsets and all that numbers depend on.

    Annotations that this IR version does not have are removed. An IR version that is lower already stays.
    """
    before, target = model.proto.ir_version, required_ir(model.proto, annotations=False)
    if target < before <= NEWEST_IR:
        lower_ir(model, target, log, pass_name=pass_name)
        why = ", the oldest that has all that the model needs"
        set_ir_version(model.proto, target, log, pass_name, why)


@dataclass(frozen=True)
class _Step:
    """One lowering: the model, the IR version to reach, the log, and the newest opset of ai.onnx that may stay."""

    model: Model
    target: int
    log: ChangeLog
    pass_name: str
    opset: int

    @property
    def proto(self) -> ModelProto:
        """The model's structure."""
        return self.model.proto

    def note(self, code: str, message: str, subject: str = "") -> None:
        """Note something in the log."""
        self.log.note(self.pass_name, code, message, subject=subject)

    def newer(self) -> list[FoundFeature]:
        """Return the features of the model that the target lacks."""
        newer = (feature for feature in features(self.proto) if feature.since > self.target)
        # Programs of this IR version may load newer opsets.
        allowed = {f"opset {number} of ai.onnx" for number in range(self.opset + 1)}
        return [
            feature
            for feature in newer
            if feature.feature is not IrFeature.OPSET or feature.text not in allowed
        ]

    def drop_unused_imports(self) -> None:
        """Drop imports of opsets that were released with a newer IR version, where no node is of the domain."""
        used = {"" if is_onnx(node.domain) else node.domain for node in all_nodes(self.proto)}
        for owner in owners(self.proto):
            for entry in list(owner.opset_import):
                domain = "" if is_onnx(entry.domain) else entry.domain
                if domain and domain not in used and minimal_ir_version(entry.version, domain) > self.target:
                    owner.opset_import.remove(entry)
                    removed = f"removed the import of {domain}, which no node uses"
                    self.note("unused-import", removed, subject=domain)

    def functions(self, found: set[IrFeature]) -> None:
        """Inline functions, or write their calls in an older form."""
        if IrFeature.FUNCTIONS in found:
            count = len(self.proto.functions)
            inline_functions(self.model, code="no-such-ir")
            self.note("inlined", f"inlined {count} local functions at their calls")
            return
        # Older IR versions have no defaults, so each call states its value.
        if IrFeature.ATTRIBUTE_DEFAULTS in found:
            written = count_of(write_defaults(self.proto, self.target), "default value")
            self.note("attribute-defaults", f"wrote {written} of functions' attributes at calls")
        if IrFeature.OVERLOADS in found:
            renamed = count_of(merge_overloads(self.proto), "function")
            self.note("overloads", f"renamed {renamed}, which had a name in common and overloads")

    def refuse(self, left: list[FoundFeature]) -> None:
        """Raise CannotMigrate if the model still has a feature that the target does not have."""
        if not left:
            return
        first_feature = left[0]
        more = f" (in {first_feature.count} places)" if first_feature.count > 1 else ""
        # Another opset removes this obstacle, and the message says which.
        if first_feature.feature is IrFeature.OPSET:
            domain = first_feature.text.rpartition(" ")[2]
            opset = newest_opset_of_ir(self.target, domain)
            opset_text = opset if domain == "ai.onnx" else f"{domain}={opset}"
            reason = (
                f"it imports {first_feature.text}, which was released with IR version {first_feature.since}"
            )
            hint: Hint = Advice(
                f"bring it to an opset that IR version {self.target} has: --opset {opset_text}",
                options={"opset": opset_text},
            )
        else:
            reason = (
                f"the model has {first_feature.text}{more}, which came with IR version {first_feature.since}"
            )
            hint = _HINTS.get(first_feature.feature) or _newer_ir(first_feature.since)
        raise CannotMigrate(
            f"{reason}, so it cannot have IR version {self.target}",
            code="no-such-type" if first_feature.feature in DTYPE_FEATURES.values() else "no-such-ir",
            where=first_feature.where if first_feature.where.scope != "model" else None,
            hint=hint,
        )
