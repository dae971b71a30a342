"""The opsets that a model may have in the runtimes it is for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import newest_onnx_opset
from onnx_migrate.standard.schema import newest_opset
from onnx_migrate.standard.targets import Targets

from .runtime_faults import bound_opset, fault_bound, needed_opset
from .written_versions import written_bound

__all__ = ["RuntimeOpsets"]


@dataclass(frozen=True)
class RuntimeOpsets:
    """Binds the opset of a model to those at which the targets support each operator, and compute each node right."""

    targets: Targets

    def to_raise(
        self, model: Model, opset: int, log: ChangeLog, pass_name: str, *, lowered_later: bool
    ) -> int:
        """Return the opset to raise a model to: the targets may need a newer version of an operator, or an older one."""
        opset = needed_opset(model.proto, self.targets, opset)
        opset = bound_opset(model.proto, self.targets, opset, log, pass_name)
        return self.without_faults(model, opset, log, pass_name) if lowered_later else opset

    def to_lower(self, model: Model, opset: int, log: ChangeLog, pass_name: str) -> int:
        """Return the opset to lower a model to; the nodes that replace missing operators may limit it further."""
        newest = min(opset, newest_onnx_opset(model.proto))
        bound = bound_opset(model.proto, self.targets, newest, log, pass_name)
        return min(bound, written_bound(model, self.targets, bound, log, pass_name))

    def without_faults(self, model: Model, opset: int, log: ChangeLog, pass_name: str) -> int:
        """Return the newest opset up to `opset` at which no target computes a node wrongly; `opset` if there is none."""
        return fault_bound(model, self.targets, opset, log, pass_name)

    def may_bind(self, operators: Iterable[tuple[str, str]]) -> bool:
        """Return whether a target has only some versions of an operator, or computes some versions of it wrongly."""
        operators = tuple(operators)
        if any(self.targets.newest_version(*key) or self.targets.oldest_version(*key) for key in operators):
            return True
        names = {name for _, name in operators}
        return any(fault.opset and not names.isdisjoint(fault.names) for _, fault in self.targets.faults)

    def newest(self, model: Model, pass_name: str) -> int:
        """Return the newest opset at which the targets support every operator of the model."""
        newest = min(self.targets.opset or newest_opset(), newest_opset())
        return bound_opset(model.proto, self.targets, newest, ChangeLog(), pass_name)
