"""Nodes that replace one node in a copy of a model, so that a kernel computes the operator's meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx_migrate.model.names import Names

__all__ = ["Written", "WrittenNodes"]

Written = Callable[[onnx.NodeProto, Names], list[onnx.NodeProto]]
"""Returns the nodes that stand in the place of one."""


@dataclass
class WrittenNodes:
    """The nodes that are written for one, whose first output is `output`."""

    output: str
    names: Names
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def put(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Write a node, and return its output."""
        name = self.names.fresh(f"{self.output}_part")
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Write a constant, and return its name."""
        return self.put("Constant", value=numpy_helper.from_array(np.asarray(values)))

    def end(self, result: str) -> list[onnx.NodeProto]:
        """Give the last value the name of the output, and return all nodes."""
        return [*self.nodes, helper.make_node("Identity", [result], [self.output])]
