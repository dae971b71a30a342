"""The shared parts of decompositions, written in place of a Dropout and run at the opset they are written for and below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_migrate.passes.lowerings import building

from onnx_migrate.engine.steps import lower as engine
from onnx_migrate.engine.steps.lowering_registry import LostTypes, Lowering, lowering_from
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from tests.harness import require_opset, run
from tests.lowering import lower

Build = Callable[[LoweringRewriter, str], str]


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
            result = build(rw, rw.input(0))
            rw.after("Cast", [result], [rw.output(0)], to=kind)
            rw.remove()

        def found(domain: str, operator: str, version: int) -> Lowering | None:
            if operator == "Dropout":
                return Lowering(
                    domain, operator, version, adapt=step, reason="for the test", types=LostTypes.OWN
                )
            return lowering_from(domain, operator, version)

        self.monkeypatch.setattr(engine, "lowering_from", found)
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


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    return Written(monkeypatch)


@pytest.mark.parametrize(("leaves", "to"), [(22, 21), (12, 11), (12, 10), (12, 9), (10, 9), (10, 8), (10, 7)])
@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("static", [True, False])
def test_iota(written: Written, leaves: int, to: int, rows: int, static: bool) -> None:
    require_opset(leaves)
    if to < 9 and static:
        pytest.skip("an int64 Constant, which opset 8 has as an initializer alone")
    counted = written.run(
        lambda rw, x: building.iota(rw, building.size_of(rw, x, 0)),
        np.ones(rows),
        leaves,
        to,
        static=static,
    )
    np.testing.assert_array_equal(counted, np.arange(rows))


@pytest.mark.parametrize(("leaves", "to"), [(22, 21), (13, 12), (10, 9)])
@pytest.mark.parametrize("static", [True, False])
def test_forms_by_opset(written: Written, leaves: int, to: int, static: bool) -> None:
    require_opset(leaves)
    x = np.arange(12.0).reshape(3, 4)
    for build, expected in (
        (lambda rw, x: building.unsqueeze(rw, x, [0, 2]), x.reshape(1, 3, 1, 4)),
        (lambda rw, x: building.squeeze(rw, building.unsqueeze(rw, x, [1]), [1]), x),
        (lambda rw, x: building.reduce(rw, "ReduceSum", x, [1]), x.sum(1, keepdims=True)),
        (lambda rw, x: building.reduce(rw, "ReduceMax", x, [0], keepdims=False), x.max(0)),
        (lambda rw, x: building.slice_axes(rw, x, [1], [3], [1]), x[:, 1:3]),
        (lambda rw, x: building.shape_of(rw, x), np.array(x.shape)),
        (lambda rw, x: building.size_of(rw, x, -1), np.array([4])),
        (lambda rw, x: building.size_of(rw, x, -2), np.array([3])),
        (lambda rw, x: rw.before("Add", [x, building.scalar(rw, 2, x)]), x + 2),
        (lambda rw, x: building.cast(rw, building.cast(rw, x, TensorProto.INT32), TensorProto.INT64), x),
    ):
        np.testing.assert_array_equal(written.run(build, x, leaves, to, static=static), expected)
