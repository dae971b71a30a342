"""An edit is recorded with the node as it was before."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim
from onnx_migrate.passes.dynamic_dims.repair.node_context import lengths_value

from tests.support.repairs import repaired, text

ASSIGNMENTS = Assignments.of({"N": 1}, {"N"}, 64)


def test_a_change_holds_before_after_and_reason() -> None:
    source = text("float[1,4] x", "float[1,2,2] y", "y = Reshape(x, k)", "int64[3] k = {1, 2, 2}")

    _, log = repaired(source, {"x": {0: "N"}})

    (change,) = log.changes
    assert change.before.input[1] == "k"
    assert change.after is not None
    assert change.after.input[1] != "k"
    assert change.reason == "shape [1, 2, 2] → [0, 2, 2]: axis 0 is N"
    assert change.where.operator == "Reshape"


def test_the_value_of_a_vector_of_lengths() -> None:
    value = lengths_value([2, Dim(ASSIGNMENTS.sizes["N"])])

    assert value.data is not None
    assert [array.tolist() for array in value.data[:2]] == [[2, 1], [2, 3]]
    assert lengths_value([2, 3]).constant() is not None
