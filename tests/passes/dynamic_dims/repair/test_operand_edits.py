"""Edits that several rules share."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_migrate.passes.dynamic_dims.repair.operand_edits import emit_range

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model, run
from tests.support.repairs import repaired, text

JOIN = text(
    "float[2,3] x", "float[2,4] y", "y = Concat<axis=1>(x, k)", "float[2,1] k = {5, 5}",
)  # fmt: skip


def test_a_constant_with_equal_rows_is_expanded_to_the_batch() -> None:
    result, _ = repaired(JOIN, {"x": {0: "N"}})

    (y,) = run(result, {"x": np.zeros((7, 3), np.float32)})

    np.testing.assert_array_equal(y[:, 3], np.full(7, 5))


def test_a_constant_with_different_rows_is_refused() -> None:
    with pytest.raises(CannotMigrate, match="'k'"):
        repaired(JOIN.replace("{5, 5}", "{5, 6}"), {"x": {0: "N"}})


@pytest.mark.parametrize(("rank", "axis", "shape"), [(1, 0, (6,)), (3, 0, (6, 1, 1)), (3, 2, (1, 1, 6))])
def test_a_range_lies_along_one_axis(rank: int, axis: int, shape: tuple[int, ...]) -> None:
    source = Model(model(text("int64[p] x", "int64[p] y", "y = Relu(x)")))
    (scope,) = scopes(source.proto, source.weights, result_ir_version=8)
    rw = Rewriter(source.proto.graph.node[0], scope, 17, 17, Where())
    bounds = tuple(rw.constant(np.array(number, np.int64), "bound") for number in (0, 6, 1))

    name = emit_range(rw, bounds, rank, axis, hint="items", shape_hint="column")  # type: ignore[arg-type]

    graph = source.proto.graph
    output = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, None)
    proto = onnx.helper.make_model(
        onnx.helper.make_graph([*scope.leading_constants, *rw.preceding], "g", [], [output], graph.initializer),
        opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    np.testing.assert_array_equal(run(proto, {})[0], np.arange(6).reshape(shape))
