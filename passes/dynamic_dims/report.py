"""The values of dynamic dims in a report: the axes of the inputs that became dynamic."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.json_form import selects
from onnx_migrate.model.dims.plan import DimPlan, DynamicDim
from onnx_migrate.reported import reported

__all__ = ["REPORT", "DynamicDimReport"]


@dataclass(frozen=True, kw_only=True)
class DynamicDimReport:
    """The value of this feature: the axes of inputs that became dynamic."""

    dims: DimPlan = reported(DimPlan, DimPlan(), json="dims")


REPORT = DynamicDimReport
selects(DynamicDim, "input axis symbol size=frozen batch=is_batch")
