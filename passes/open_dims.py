"""The pass that names dims of unknown length, which exporters declare as `?`, `None`, -1 or 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.analysis.shapes import dims_of, dims_text
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["OpenDims"]

_EMPTY = frozenset({"?", "None", "none", "-1", "0", "unk", "dynamic"})


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
