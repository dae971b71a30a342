"""Which nodes a runtime has no kernel for in the new type, by its table."""

from __future__ import annotations

from onnx_migrate.facts.typed_graph import Step, Value
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.targets import KernelRow, Target

from ..targets.misfits import value_of, values_of
from .plan import Plan

__all__ = ["refusing_target", "target_of_constants"]

_FOLDING = frozenset({"coreml", "onnxruntime", "onnxruntime-web", "openvino", "webgpu", "webnn", "windowsml"})
"""Runtimes that fold Casts of constants as they load a model: OpenVINO, and ONNX Runtime with all of its execution providers."""


def target_of_constants(plan: Plan) -> Target | None:
    """Return the first runtime of a plan that may want weights as constants, and not by Casts."""
    return next((runtime for runtime in plan.runtimes or () if runtime.name not in _FOLDING), None)


def refusing_target(step: Step, plan: Plan) -> Target | None:
    """Return the first runtime of a plan that, as far as its limits are known, does not support a node in the new type."""
    if plan.runtimes is None:
        return None
    kind, limits = type_name(plan.target), plan.runtimes.limits(step.domain, step.node.op_type)
    rows = [(runtime, runtime.row.types) for runtime in plan.runtimes]
    rows += [(runtime, row.types) for runtime, row in limits]
    refusing = next((runtime for runtime, types in rows if types and kind not in types), None)
    return refusing or next(
        (runtime for runtime in plan.runtimes if _lacks_kernel(step, kind, runtime)), None
    )


def _lacks_kernel(step: Step, kind: str, runtime: Target) -> bool:
    rows = runtime.kernels(step.domain, step.node.op_type)
    return any(kind in row.lacks and _is_of(step, row) for row in rows)


def _is_of(step: Step, row: KernelRow) -> bool:
    """Return whether a row is of a node with such attributes, and with so many axes."""
    attributes = values_of(step.node)
    if not all(value_of(step.node, attributes, name) in values for name, values in row.attributes.items()):
        return False
    return row.axes is None or any(_axes(value) >= row.axes for value in step.read)


def _axes(value: Value) -> int:
    """Return the number of axes of a value, 0 if it is not declared."""
    if value.tensor is not None:
        return len(value.tensor.dims)
    declared = value.frame.declared.get(value.name)
    return len(declared.tensor_type.shape.dim) if declared is not None else 0
