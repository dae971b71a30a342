"""The newest opset at which runtimes support the replacements of operators that they lack, in the versions they support."""

from __future__ import annotations

from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.standard.targets import Targets

from .misfits import misfits_of
from .runtime_faults import bound_opset

__all__ = ["written_bound"]


def written_bound(model: Model, targets: Targets, opset: int, log: ChangeLog, pass_name: str) -> int:
    """Return the newest opset up to `opset` at which the targets support the replacements of operators that they lack.

    It is `opset` if they lack no operator. It is also `opset` if an operator has no replacement: the pass `fit_operators` then
    refuses the model.
    """
    lacking = {node.op_type for node in all_nodes(model.proto) if is_onnx(node.domain)}
    if not any(targets.lacks("", operator) for operator in lacking):
        return opset
    try:
        written = decompose_model(model.copy(), misfits_of(targets), ChangeLog(), pass_name)
    except CannotMigrate:
        return opset
    if written.refusals:
        return opset
    return bound_opset(written.model.proto, targets, opset, log, pass_name)
