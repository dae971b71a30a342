"""What had been done until a migration failed."""

from __future__ import annotations

import pickle
from typing import Any

import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate.errors import MigrateError
from onnx_migrate.report import PartialReport
from onnx_migrate.report.failure import failure

MODEL = """<ir_version: 6, opset_import: ["": 9]>
g (bool b, float[1,3] x) => (float[1,3] y) <float[1] k = {2.0}> {
  u = Unsqueeze <axes = [0]> (x)
  y = If (b) <
    then_branch = t () => (float[1,3] p) { p = ATen <operator = "where"> (x, k) },
    else_branch = e () => (float[1,3] q) { q = Relu (x) }
  >
}"""


@pytest.fixture
def error() -> MigrateError:
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(onnx.parser.parse_model(MODEL), isolated=False)
    return caught.value


def test_the_node_in_the_way_is_found_in_its_body(error: MigrateError) -> None:
    told: dict[str, Any] = failure(error, "m.onnx")

    blocked = told["blocked"]
    assert (blocked["node"], blocked["scope"]) == ("p", "graph/y:then_branch")
    assert blocked["before"]["operator"] == "ATen"
    assert blocked["before"]["inputs"] == ["x", "k"]
    assert blocked["constants"] == {"k": {"type": "float", "shape": [1], "value": "[2]"}}
    assert told["before"]["opset"] == 9
    assert [change["before"]["operator"] for change in told["changes"]] == ["Unsqueeze"]
    assert set(told["seconds"]) == {"load", "migrate_opset"}


def test_it_crosses_processes(error: MigrateError) -> None:
    assert failure(pickle.loads(pickle.dumps(error)), "m.onnx") == failure(error, "m.onnx")


def test_a_model_that_cannot_be_read_has_none() -> None:
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(b"no model")

    assert caught.value.partial_report is None
    told = failure(caught.value, "m.onnx")
    assert (told["before"], told["changes"], told["blocked"], told["verification"]) == (None, [], None, None)


def test_an_error_that_names_no_node(error: MigrateError) -> None:
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(onnx.parser.parse_model(MODEL), opset=8)

    assert isinstance(caught.value.partial_report, PartialReport)
    assert caught.value.partial_report.node is None


def test_numbers_that_differ_are_told_output_by_output() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[4] x) => (float[4] y) <float[1] k = {2.0}> { y = Mul(x, k) }'
    )

    def spoil(model: onnx.ModelProto) -> None:
        model.graph.node[0].op_type = "Add"

    with pytest.raises(onnx_migrate.VerificationFailed) as caught:
        onnx_migrate.migrate(proto, passes=[spoil], simplify=False, isolated=False)

    verification = failure(caught.value, "m.onnx")["verification"]
    assert verification["kind"] == "differs"
    assert [item["output"] for item in verification["comparisons"]] == ["y"]
