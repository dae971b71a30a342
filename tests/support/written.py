"""Writes a part of a formula in place of a node, and runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.step import Direction, LostTypes, Step
from onnx_migrate.rewrite.expressions import Value
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.rewrite.op import Op
from tests.harness import run
from tests.steps import lower
from tests.support.replaced_steps import replace_steps_down

__all__ = ["Written"]

Build = Callable[[Op, Value], Value]


class Written:
    """Writes what `build` says for an input in place of a node that leaves an opset, and runs it at another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def run(
        self,
        build: Build,
        x: Any,
        leaves: int,
        to: int,
        *,
        static: bool = False,
        to_type: Any = np.float32,
    ) -> np.ndarray[Any, Any]:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(to_type))
        x = np.asarray(x)

        def step(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
            op = Op(rw)
            op.end(op.Cast(build(op, Value(op, rw.input(0))), to=kind))

        def replaced(domain: str, operator: str, version: int, registered: Step | None) -> Step | None:
            if operator != "Dropout":
                return registered
            return Step(
                Direction.DOWN, domain, operator, version, step, reason="for the test", types=LostTypes.OWN
            )

        replace_steps_down(self.monkeypatch, replaced)
        dims: list[Any] = list(x.shape) if static else [f"d{axis}" for axis in range(x.ndim)]
        graph = helper.make_graph(
            [helper.make_node("Dropout", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
            [helper.make_tensor_value_info("y", kind, None)],
        )
        source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", leaves)], ir_version=7)
        lowered, _ = lower(source, to)
        return np.asarray(run(lowered, {"x": x.astype(np.float32)})[0])
