"""Nodes of which ONNX Runtime has no float16 kernel keep their type, all of one form at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from onnx_migrate.passes.precision.precision import Precision

import onnx_migrate
from onnx_migrate import process
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.targets import resolve
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


GROUPED = """17 (float[1,4,6,6] x) => (float[1,4,6,6] y) <float[4,2,1,1] w = {1,2,3,4,5,6,7,8}, float[4,4,1,1] v = {
    1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}> { a = Conv<group = 2>(x, w) y = Conv(a, v) }"""


@pytest.mark.parametrize(
    ("runtime", "kept"), [("tensorrt==11.2", ["Conv"]), ("tensorrt==10.13", []), ("webgpu", []), ("onnxruntime==1.20", [])]
)  # fmt: skip
def test_what_has_no_kernel_in_a_runtime_stays(runtime: str, kept: list[str]) -> None:
    done = onnx_migrate.migrate(model(GROUPED), precision="fp16", runtime=runtime, isolated=False)
    change = done.report.precision
    assert change is not None
    assert [node.operator for node in change.kept] == kept
    assert all(node.reason == "TensorRT 11.2 does not support it in float16" for node in change.kept)


@pytest.mark.parametrize("folds", [True, False])
def test_a_weight_of_a_kept_node_is_a_constant_where_the_runtime_may_want_that(
    folds: bool, tmp_path: Path
) -> None:
    """WebGPU is of ONNX Runtime, which folds the Cast of a weight."""
    chip = tmp_path / "mychip.toml"
    chip.write_text('name = "mychip"\n[[release]]\n[[kernel]]\nnames = ["Einsum"]\nlacks = ["float16"]\n')
    weights = ", ".join(["0.5"] * 1024)
    source = f"""17 (float[2,32] x) => (float[2,32] y) <float[32,32] w = {{{weights}}}> {{
        a = Tanh(x) b = Einsum<equation = "ij,jk->ik">(a, w) y = Tanh(b) }}"""
    targets = resolve("webgpu" if folds else str(chip))
    result = Precision(targets=targets).run(Model(model(source)), ChangeLog()).proto
    assert [tensor.data_type for tensor in result.graph.initializer] == [F16 if folds else F32]
    assert types(result)["b"] == F32
