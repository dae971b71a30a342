"""The pass that names dims of unknown length, the axes of inputs without a size, and the plan of dynamic ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.facts.shapes import dims_of
from onnx_migrate.model.dims.open_names import OpenNames
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.model.interface import UNNAMED, Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["MOST_AXES", "OpenDims", "RequestedDims", "open_axes", "requested_dims"]

MOST_AXES = 64
"""Axes that a tensor may have in ONNX Runtime and NumPy."""


@dataclass(frozen=True)
class RequestedDims:
    """The fact that a request was resolved to a plan, against the interface of the model at that time."""

    request: DynamicAxes
    plan: DimPlan


def requested_dims(request: DynamicAxes | None, model: Model, log: ChangeLog) -> DimPlan:
    """Return the plan of a request: the one in the log, else a new one, which the log then keeps.

    The plan holds the axes that the request names. If the user asks only for the batch, the pass dynamic_dims finds
    which axis it is. Raises UsageError for a request that does not fit the model.
    """
    if request is None:
        return DimPlan()
    # Two passes ask for the same plan.
    recorded = log.fact(RequestedDims, "", "")
    if recorded is None or recorded.request != request:
        recorded = RequestedDims(request, DimPlan.of(request, Interface.of(model.proto)))
        log.record_fact("", "", recorded)
    return recorded.plan


@register_pass
@dataclass(frozen=True)
class OpenDims(Pass):
    """Give each dim of unknown length a name of its own, VALUE_dim_AXIS.

    Exporters declare such dims as -1 or 0, or call all of them `?` or `None`, which by the standard says that they are
    equal. Runtimes accept any length for -1 and 0 in an input, so a name of its own says the same. Each dim gets its name or
    number back after the last pass.
    """

    name: ClassVar[str] = "open_dims"
    title: ClassVar[str] = "naming open dims"

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Name the dims of `model` in place."""
        graph = model.proto.graph
        own: dict[str, str | int] = {}
        for value in fed_inputs(graph):
            own |= _named(value, 0)
        for value in graph.output:
            own |= _named(value, -1)  # an output may be empty
        if own:
            log.record_fact("", "", OpenNames(own))
        return model


def _named(value: onnx.ValueInfoProto, highest: int) -> dict[str, str | int]:
    """Name the open dims of one value; return their names or numbers before, by the new names."""
    own: dict[str, str | int] = {}
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        name = f"{value.name}_dim_{axis}"
        if dim.HasField("dim_value") and dim.dim_value <= highest:
            own[name] = dim.dim_value
        elif dim.dim_param in UNNAMED:
            own[name] = dim.dim_param
        if name in own:
            dim.dim_param = name
    return own


def open_axes(graph: onnx.GraphProto) -> dict[str, dict[int, str]]:
    """Return the axes of inputs without a size, with their symbols. For an input of unknown rank, return all possible axes."""
    open_by_input = {}
    for value in fed_inputs(graph):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        dims = dims_of(value)
        axes = (
            # An input without a rank may have any axis.
            dict.fromkeys(range(MOST_AXES), "")
            if dims is None
            else {
                axis: dim if isinstance(dim, str) else ""
                for axis, dim in enumerate(dims)
                if not isinstance(dim, int) or dim < 1
            }
        )
        if axes:
            open_by_input[value.name] = axes
    return open_by_input
