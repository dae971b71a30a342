"""The pass that makes constants of inputs whose values are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from onnx import numpy_helper

from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.model.fixed_values import FixedValues, ValuesFixed, arrays_of
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["FixValues"]


@register_pass
@dataclass(frozen=True)
class FixValues(Pass):
    """Make initializers of inputs, with the values given, and take them out of the list of inputs.

    The nodes are not changed. The log has the values as a fact, for the proof that the original computes the same when it is fed
    them. Raises UsageError as `arrays_of`.
    """

    name: ClassVar[str] = "fix_values"
    narrows: ClassVar[bool] = True
    cuts: ClassVar[bool] = True
    values: FixedValues = field(default_factory=dict)

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place."""
        values = arrays_of(self.values, model.proto)
        graph = model.proto.graph
        for port in Interface.of(model.proto).inputs:
            if port.name in values:
                array = values[port.name]
                text = np.array2string(array, threshold=8, separator=", ").replace("\n", "")
                log.note(self.name, "fixed-values", f"input {port} is the constant {text}", subject=port.name)
        graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
        log.record_fact("", "", ValuesFixed(values, model.copy()))
        for place in reversed(range(len(graph.input))):
            if graph.input[place].name in values:
                del graph.input[place]
        return model
