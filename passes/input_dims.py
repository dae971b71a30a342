"""The passes that name dims of unknown length, and that replace symbolic dims by numbers; and the plan of dynamic ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.shapes import dims_of, dims_text, drop_value_info, inferred_outputs, set_dims
from onnx_migrate.model.dims.expressions import is_expression, value_of
from onnx_migrate.model.dims.fixed_sizes import FixedDims, fixed_axes
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["FixDims", "OpenDims", "RequestedDims", "requested_dims"]

_EMPTY = frozenset({"?", "None", "none", "-1", "0", "unk", "dynamic"})


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


@register_pass
@dataclass(frozen=True)
class OpenDims(Pass):
    """Give each dim of unknown length a name of its own, VALUE_dim_AXIS.

    Exporters declare such dims as -1 or 0, or call all of them `?` or `None`, which by the standard says that they are
    equal. Runtimes accept any length for -1 and 0 in an input, so a name of its own says the same.
    """

    name: ClassVar[str] = "open_dims"

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Name the dims of `model` in place."""
        graph = model.proto.graph
        for value in fed_inputs(graph):
            self._name(value, "input", 0, log)
        for value in graph.output:
            self._name(value, "output", -1, log)  # an output may be empty
        return model

    def _name(self, value: onnx.ValueInfoProto, what: str, highest: int, log: ChangeLog) -> None:
        before = dims_of(value)
        if before is None:
            return
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param in _EMPTY or (dim.HasField("dim_value") and dim.dim_value <= highest):
                dim.dim_param = f"{value.name}_dim_{axis}"
        after = dims_of(value)
        if after != before:
            log.note(
                self.name,
                "open-dims",
                f"{what} {value.name}: {dims_text(before)} → {dims_text(after)}, as these lengths are not known",
                subject=value.name,
            )


@register_pass
@dataclass(frozen=True)
class FixDims(Pass):
    """Set dynamic dims of inputs to numbers, and dims of outputs to the numbers that follow from them.

    The nodes are not changed. The model then accepts these sizes only, so that a runtime can plan memory for them.
    """

    name: ClassVar[str] = "fix_dims"
    narrows: ClassVar[bool] = True
    fix: FixedDims = field(default_factory=dict)

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Fix the dims of `model` in place. Raises UsageError for a name that does not exist and for another size."""
        graph = model.proto.graph
        sizes, symbols = fixed_axes(self.fix, Interface.of(model.proto))
        for value in graph.input:
            before = dims_of(value)
            if before is None:
                wanted = sizes.get(value.name)
                if wanted:
                    set_dims(value, tuple(wanted[axis] for axis in sorted(wanted)))
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                size = sizes.get(value.name, {}).get(axis, symbols.get(dim.dim_param))
                if size is not None:
                    dim.dim_value = size
            if dims_of(value) != before:
                text = f"input {value.name}: {dims_text(before)} → {dims_text(dims_of(value))}"
                log.note(self.name, "fixed-dims", text, subject=value.name)
        drop_value_info(model.proto)
        try:
            inferred = inferred_outputs(model.proto)
        except CannotMigrate as error:
            inferred = {}
            log.note(
                self.name,
                error.code,
                f"dims of outputs could not be inferred, and keep their names: {error.reason}",
                severity="warning",
            )
        for value in graph.output:
            before, found = dims_of(value), inferred.get(value.name)
            if before is None:
                continue
            known = found if found is not None and len(found) == len(before) else (None,) * len(before)
            # An inferred number is certain. That an output's symbol, or expression, is of the inputs' symbols, exporters declare.
            dims = tuple(
                new if isinstance(new, int) else _declared(old, symbols)
                for old, new in zip(before, known, strict=True)
            )
            if dims != before:
                set_dims(value, dims)
                text = f"output {value.name}: {dims_text(before)} → {dims_text(dims)}"
                log.note(self.name, "fixed-dims", text, subject=value.name)
        return model


def _declared(dim: int | str | None, symbols: Mapping[str, int]) -> int | str | None:
    value = value_of(dim, symbols) if isinstance(dim, str) and is_expression(dim) else None
    return value if value is not None else symbols.get(dim, dim) if isinstance(dim, str) else dim
