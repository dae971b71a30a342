"""The pass that writes operators of other domains: which domains, bodies without ai.onnx, refusals, targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from onnxruntime.capi._pybind_state import get_all_operator_schema

import onnx_migrate
from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.graphs import all_nodes
from tests.harness import require_opset
from tests.passes.contrib.one_node import session, written

GELU = '<ir_version: 8, opset_import: ["com.microsoft": 1]> g (float[2,8] x) => (float[2,8] y) { y = com.microsoft.Gelu (x) }'
MIXED = """<ir_version: 8, opset_import: ["": 13, "com.microsoft": 1, "com.microsoft.nchwc": 1]>
g (float[2,8] x) => (float[2,8] y) { t = com.microsoft.QuickGelu (x) y = com.microsoft.nchwc.ReorderInput (t) }"""


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def migrated(text: str, **options: Any) -> onnx_migrate.Migration:
    return onnx_migrate.migrate(parser.parse_model(text), verify=False, simplify=False, **options)


def domains(proto: onnx.ModelProto) -> set[str]:
    return {node.domain for node in all_nodes(proto)}


def test_a_model_without_ai_onnx_imports_it() -> None:
    result = onnx_migrate.migrate(gelu(), standard=True)
    assert domains(result.model) == {""}
    assert [(entry.domain, entry.version) for entry in result.model.opset_import] == [("", 17)]
    assert "removed the import of com.microsoft" in result.report.text(verbose=True)
    assert str(result.report).startswith("verified: ")


def gelu() -> onnx.ModelProto:
    return parser.parse_model(GELU)


@pytest.mark.parametrize(
    "runtime", ["tensorrt==10.7", "mnn", "openvino==2026.4", "ncnn", "opencv==4.8", "rknn"]
)
def test_a_target_that_lacks_the_operator_gets_it_written(runtime: str) -> None:
    result = onnx_migrate.migrate(gelu(), runtime=runtime)
    assert domains(result.model) == {""}


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnxruntime-web", "windowsml==22000"])
def test_a_target_that_has_the_operator_keeps_it(runtime: str) -> None:
    assert "com.microsoft" in domains(onnx_migrate.migrate(gelu(), runtime=runtime).model)


def test_types_behind_a_node_that_a_target_keeps_are_known() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[N,S,8] x, float[8] s, float[8,24] w) => (float[N,S,8] y)
        { t = com.microsoft.SkipLayerNormalization (x, x, s)
        y = com.microsoft.Attention <num_heads = 2> (t, w) }"""
    result = migrated(text, runtime="tract==0.23")
    assert [node.op_type for node in result.model.graph.node if node.domain] == ["SkipLayerNormalization"]


@pytest.mark.parametrize("standard", [False, True])
def test_types_behind_a_foreign_node_are_known_on_the_way_down(standard: bool) -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[N,S,8] x, float[8] s) => (float[N,S,8] y)
        { t = com.microsoft.QuickGelu (x) u = Add (t, x) y = LayerNormalization (u, s) }"""
    result = onnx_migrate.migrate(parser.parse_model(text), opset=13, standard=standard)
    assert result.report.verified
    assert domains(result.model) == ({""} if standard else {"", "com.microsoft"})


def test_what_a_target_may_have_stays_where_it_cannot_be_written() -> None:
    text = GELU.replace("float[2,8] x", "float[a,b] x").replace("float[2,8] y", "float[a,b] y")
    text = text.replace("Gelu (x)", "Inverse (x)")
    result = migrated(text, runtime="openvino==2026.4")
    assert domains(result.model) == {"com.microsoft"}
    assert "not known to have com.microsoft.Inverse" in str(result.report)
    with pytest.raises(CannotMigrate):
        migrated(text, runtime="tensorrt==10.7")


def test_what_is_not_written_is_refused_with_the_way_out() -> None:
    with pytest.raises(CannotMigrate) as caught:
        onnx_migrate.migrate(parser.parse_model(MIXED), standard=True, verify=False)
    assert caught.value.code == "not-standard"
    assert "ReorderInput" in caught.value.with_hint
    assert caught.value.hint == "not tried: save the model at ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL"


def test_each_operator_of_onnx_runtime_is_written_or_has_a_way_out() -> None:
    known = [item for item in get_all_operator_schema() if item.domain.startswith("com.m")]
    assert len(known) > 100
    for item in known:
        found = decomposition_of(item.domain, item.name)
        assert found is not None, item.name
        assert found.adapt or found.hint, item.name


def test_inner_values_keep_no_symbols() -> None:
    """tract takes a symbol of an inner value for a length of its own, and refuses a caller's; for it nothing is declared."""
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[N,8] x) => (float[N,8] y) <float[N,8] t>
        { t = com.microsoft.FusedMatMul <alpha = 2.0> (x, w) y = Relu (t) }"""
    proto = parser.parse_model(text)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(floats(8, 8), "w"))
    (inner,) = onnx_migrate.migrate(proto, verify=False, simplify=False, standard=True).model.graph.value_info
    assert [(dim.dim_param, dim.dim_value) for dim in inner.type.tensor_type.shape.dim] == [("", 0), ("", 8)]
    assert not onnx_migrate.migrate(
        proto, verify=False, simplify=False, runtime="tract==0.23"
    ).model.graph.value_info


def test_a_best_effort_leaves_what_is_not_written() -> None:
    result = migrated(MIXED, standard=True, best_effort=True)
    assert domains(result.model) == {"", "com.microsoft.nchwc"}
    assert [note.code for note in result.report.notes if note.severity == "warning"] == ["not-fitted"]


def test_a_search_is_refused_by_its_name_and_not_for_what_stands_in_it() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[a] x) => (float[b] y) {
        t = com.microsoft.Inverse (x) y = com.microsoft.GreedySearch (t) }"""
    with pytest.raises(CannotMigrate, match=r"GreedySearch.*searches for a text.*1 more node") as caught:
        onnx_migrate.migrate(parser.parse_model(text), standard=True, verify=False)
    assert caught.value.hint.startswith("not tried: export the decoder alone")


def test_one_domain_alone() -> None:
    result = migrated(MIXED, standard="com.microsoft")
    assert domains(result.model) == {"", "com.microsoft.nchwc"}


def test_a_domain_that_is_not_known_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match=r"com\.acme"):
        onnx_migrate.migrate(gelu(), standard=["com.acme"])


def test_an_attribute_that_the_formula_does_not_know_is_refused() -> None:
    text = GELU.replace("Gelu (x)", "Gelu <extra = 1> (x)")
    with pytest.raises(CannotMigrate, match="'extra'"):
        onnx_migrate.migrate(parser.parse_model(text), standard=True, verify=False)


def test_types_behind_a_foreign_node_are_known_from_what_is_written() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[2,3,8] x, float[8] s) => (float[2,8,3] y) {
        a = com.microsoft.QuickGelu (x) b = Transpose <perm = [0, 2, 1]> (a) c = Relu (b)
        d = com.microsoft.FusedMatMul <transA = 1> (c, c) y = MatMul (b, d) }"""
    proto = parser.parse_model(text)
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((2, 3, 8)).astype("float32"), "s": np.ones(8, "float32")}
    one, other = (session(item).run(None, feeds)[0] for item in (proto, written(proto)))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_type_is_found_where_a_constant_tells_the_shape_alone() -> None:
    text = """<ir_version: 8, opset_import: ["": 13, "com.microsoft": 1]> g (float[2,12] x, float[4] s) => (float[a,b] y)
        <int64[2] shape = {6, 4}> {
        a = com.microsoft.QuickGelu (x) b = Reshape (a, shape) y = com.microsoft.SkipLayerNormalization (b, b, s) }"""
    assert domains(written(parser.parse_model(text))) == {""}


ATTENTION = "y = com.microsoft.Attention <num_heads = 2> "
SHAPES = {
    "behind a sum that is read": (
        "float[N,S,8] x, float[8] g, float[8,24] w, float[24] b",
        "p, , , t = com.microsoft.SkipLayerNormalization (x, x, g) q = com.microsoft.Attention <num_heads = 2> (p, w, b)"
        " y = Add (q, t)",
        {"x": floats(2, 3, 8), "g": floats(8), "w": floats(8, 24), "b": floats(24)},
    ),
    "weights of any width": (
        "float[N,S,8] x, float[8,M] w, float[M] b",
        f"{ATTENTION} (x, w, b)",
        {"x": floats(2, 3, 8), "w": floats(8, 24), "b": floats(24)},
    ),
    **{
        f"a mask of any length, {name}": (
            "float[N,S,8] x, float[8,24] w, float[24] b, int32[K] m",
            f"{ATTENTION} (x, w, b, m)",
            {"x": floats(2, 3, 8), "w": floats(8, 24), "b": floats(24), "m": np.array(mask, "int32")},
        )
        for name, mask in (("ends", [2, 3]), ("ends and starts", [3, 2, 1, 0]))
    },
}


@pytest.mark.parametrize("opset", [13, 18, 23])
@pytest.mark.parametrize("name", SHAPES)
def test_attention_of_shapes_that_are_not_known(name: str, opset: int) -> None:
    require_opset(opset)
    inputs, body, feeds = SHAPES[name]
    imports = f'<ir_version: 10, opset_import: ["": {opset}, "com.microsoft": 1]>'
    proto = parser.parse_model(f"{imports} g ({inputs}) => (float[N,S,8] y) {{ {body} }}")
    one, other = (session(item).run(None, feeds)[0] for item in (proto, written(proto)))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
