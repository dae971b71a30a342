"""Nodes of which ONNX Runtime has no float16 kernel keep their type, all of one form at once."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto
from onnx_migrate.passes.precision import Precision

import onnx_migrate
from onnx_migrate import process
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify import Settings
from tests.harness import model
from tests.passes.precision.test_precision import F16, F32, SEARCH, types
from tests.steps import operators

SUMS = """17 (float[4,4] x, int64[4,4] i) => (float[4,4] y) <int64 four = {4}, float[4,4] w = {1,1,1,1,2,2,2,2,3,3,3,3,4,4,4,4}> {
    j = Mod(i, four)  a = Exp(x)  b = ScatterElements<reduction = "add">(a, j, w)  c = MatMul(b, w)
    d = ScatterElements<reduction = "add">(c, j, w)  e = ScatterElements(d, j, w)  f = MatMul(e, w)
    g = ScatterElements<reduction = "add">(f, j, w)  y = Tanh(g) }"""


@pytest.mark.parametrize("named", [True, False])
def test_one_comparison_names_all_nodes_of_a_form(named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime (1.32) adds no float16 in ScatterElements, where a node beside it, as e here, computes in float16 too."""
    call, asked = Settings.call, []

    def counted(settings: Settings, function: str, *given: object) -> process.Ending:
        asked.append(function.rpartition(":")[2])
        return call(settings, function, *given)

    monkeypatch.setattr(Settings, "call", counted)
    proto = model(SUMS)
    for node in proto.graph.node if named else ():
        node.name = f"node_{node.output[0]}"
    found = types(Precision(settings=SEARCH).run(Model(proto), ChangeLog()).proto)

    assert [found[name] for name in "bdgcf"] == [F32] * 3 + [F16] * 2
    assert asked.count("closeness") == 2


@pytest.mark.parametrize("asked", [{"runtime": "tract==0.23"}, {"opset": 12}], ids=str)
@pytest.mark.parametrize("ports", ["bfloat16", "float"])
def test_a_type_that_the_result_cannot_have_goes_before_anything_refuses_it(
    asked: dict[str, Any], ports: str
) -> None:
    """tract has no Cast of bfloat16, so that inputs and outputs become float32 too; so they must below opset 13."""
    source = f"""17 ({ports}[2,3] x) => ({ports}[2,3] y) <bfloat16[3,3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}> {{
        a = Cast<to = 16>(x) b = MatMul(a, w) c = Relu(b) y = Cast<to = {16 if ports == "bfloat16" else 1}>(c) }}"""
    options = asked | {"precision_io": "opset" in asked}
    result = onnx_migrate.migrate(model(source), precision="fp32", isolated=False, **options).model
    assert TensorProto.BFLOAT16 not in types(result).values()
    assert "Cast" not in operators(result)
