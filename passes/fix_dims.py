"""The pass that replaces symbolic dims by numbers, the reverse of dynamic_dims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from onnx_migrate.analysis.shapes import dims_of, dims_text, drop_value_info, inferred_outputs, set_dims
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.dims.expressions import is_expression, value_of
from onnx_migrate.model.dims.fixed_sizes import FixedDims, fixed_axes
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["FixDims"]


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
        drop_value_info(graph)
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
