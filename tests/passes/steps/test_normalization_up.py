"""GroupNormalization 18 → 21 and the normalizations that are unchanged."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, require_ir_of, require_opset

CONSTANT = "<float[3] s = {1, 2, -3}, float[3] b = {0.5, 0, -1}>"


@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
@pytest.mark.parametrize("shape", ["2, 6, 3, 2", "2, 3, 4", "1, 12, 5"])
def test_scale_and_bias_at_run_time(dtype: str, shape: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 18]>
        graph ({dtype}[{shape}] x, {dtype}[3] s, {dtype}[3] b) => ({dtype}[{shape}] y)
        {{ y = GroupNormalization <num_groups = 3> (x, s, b) }}"""
    check(source, to=21)


@pytest.mark.parametrize("target", [18, 20])
def test_the_withdrawn_version_is_refused_as_a_target(target: int) -> None:
    source = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        graph (float[2, 6, 3] x, float[3] s, float[3] b) => (float[2, 6, 3] y)
        { y = GroupNormalization <num_groups = 3> (x, s, b) }""")

    with pytest.raises(CannotMigrate, match="migrate to opset 21 or newer") as caught:
        lift(source, target)

    assert caught.value.code == "no-equal"


def test_constant_scale_and_bias() -> None:
    source = f"""<ir_version: 8, opset_import: ["": 18]>
        graph (float[2, 6, 3] x) => (float[2, 6, 3] y) {CONSTANT}
        {{ y = GroupNormalization <num_groups = 3, epsilon = 0.1> (x, s, b) }}"""
    result = check(source, to=21)
    assert [node.op_type for node in result.graph.node] == ["GroupNormalization"]


def test_one_of_scale_and_bias_is_constant() -> None:
    source = """<ir_version: 8, opset_import: ["": 18]>
        graph (float[2, 6, 3] x, float[3] s) => (float[2, 6, 3] y) <float[3] b = {0.5, 0, -1}>
        { y = GroupNormalization <num_groups = 3> (x, s, b) }"""
    check(source, to=21)


def test_groups_that_are_an_attribute_of_a_function() -> None:
    source = """<ir_version: 8, opset_import: ["": 18, "local": 1]>
        graph (float[2, 6, 3] x, float[3] s, float[2] t) => (float[2, 6, 3] y, float[2, 6, 3] z) {
            y = local.F <n = 3> (x, s)
            z = local.F <n = 2> (x, t)
        }
        <domain: "local", opset_import: ["": 18]> F <n> (x, s) => (y)
        { y = GroupNormalization <num_groups: int = @n> (x, s, s) }"""
    check(source, to=21, variants=["plain", "symbolic", "if"])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_lrn(size: int) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 7]>
        graph (float[2, 5, 3, 3] x) => (float[2, 5, 3, 3] y)
        {{ y = LRN <size = {size}, alpha = 0.1, beta = 0.6, bias = 2.0> (x) }}"""
    check(source, to=13)


@pytest.mark.parametrize("axes", ["", "<axes = [0, 2, 3]>"])
def test_mean_variance(axes: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 9]>
        graph (float[2, 5, 3, 3] x) => (float[2, 5, 3, 3] y) {{ y = MeanVarianceNormalization {axes} (x) }}"""
    onnx.checker.check_model(check(source, to=13), full_check=True)


@pytest.mark.parametrize("attributes", ["", "<p = 1>", "<axis = 1, p = 2>"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_lp(attributes: str, dtype: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 7]>
        graph ({dtype}[2, 3, 4] x) => ({dtype}[2, 3, 4] y) {{ y = LpNormalization {attributes} (x) }}"""
    check(source, to=22)


OWN = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3,8] x, float[8] w) => (float[2,3,8] y) { y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001> (x, w) }"""


@pytest.mark.parametrize(
    ("target", "operator"), [(18, "SimplifiedLayerNormalization"), (23, "RMSNormalization")]
)
def test_the_runtimes_own_normalization_stays_until_the_standard_has_it(target: int, operator: str) -> None:
    require_opset(target)
    require_ir_of(target)
    result = onnx_migrate.migrate(onnx.parser.parse_model(OWN), opset=target, simplify=False)

    assert [node.op_type for node in result.model.graph.node] == [operator]
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"
    noted = "runtime-operator" in [note.code for note in result.report.notes]
    assert noted == (operator == "SimplifiedLayerNormalization")


def test_the_runtimes_own_normalization_stays_where_its_second_output_is_read() -> None:
    require_opset(23)
    require_ir_of(23)
    text = OWN.replace("=> (float[2,3,8] y)", "=> (float[2,3,8] y, float[2,3,1] i)").replace(
        "y = S", "y, i = S"
    )
    result = onnx_migrate.migrate(onnx.parser.parse_model(text), opset=23, simplify=False)

    assert [node.op_type for node in result.model.graph.node] == ["SimplifiedLayerNormalization"]
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"


@pytest.mark.parametrize("target", [13, 17])
def test_layer_normalization_before_the_standard_had_it(target: int) -> None:
    text = OWN.replace('"": 17', '"": 11').replace("Simplified", "")
    result = onnx_migrate.migrate(onnx.parser.parse_model(text), opset=target, simplify=False)

    assert [node.op_type for node in result.model.graph.node] == ["LayerNormalization"]
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"
