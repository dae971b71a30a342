"""The plan of the dims that a migration makes dynamic, resolved once and kept in the log for all passes."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["RequestedDims", "requested_dims"]


@dataclass(frozen=True)
class RequestedDims:
    """The fact that a request was resolved to a plan, against the interface of the model at that time."""

    request: DynamicAxes
    plan: DimPlan


def requested_dims(request: DynamicAxes | None, model: Model, log: ChangeLog) -> DimPlan:
    """Return the plan of a request: the one in the log, else a new one, which the log then keeps.

    The plan holds the axes that the request names. Which axis is the batch, where only the batch is asked for, turns
    out when the pass dynamic_dims has tried. Raises UsageError for a request that does not fit the model.
    """
    if request is None:
        return DimPlan()
    known = log.fact(RequestedDims, "", "")
    if known is None or known.request != request:
        known = RequestedDims(request, DimPlan.of(request, Interface.of(model.proto)))
        log.record_fact("", "", known)
    return known.plan
