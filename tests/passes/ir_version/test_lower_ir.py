"""Every feature of a newer IR version, brought below the version that it came with: rewritten with equal numbers, or refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.validity.ir_features import required_ir
from onnx_migrate.report.codes import CODES
from onnx_migrate.standard.ir_versions import NEWEST_IR, IrFeature
from tests.harness import loads, model, random_feeds, run, same
from tests.steps import operators
from tests.support.skips import Elsewhere, skip

TEXT = """<ir_version: {ir}, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] y)
<float[3] w = {{1, 2, 3}}> {{ h = Add (x, w)  y = Relu (h) }}"""
IN_IF = """8 (float[2] x, bool c) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] p) <float[2] w = {1, 2}> { p = Add (x, w) },
                else_branch = e () => (float[2] w) <float[2] w = {3, 4}> { q = Neg (w) }>
}"""
FUNCTION = """<ir_version: 8, opset_import: ["": 13, "f": 1]> g (float[2,3] x) => (float[2,3] y) { y = f.F (x) }
<domain: "f", opset_import: ["": 13]> F (a) => (b) { t = Sigmoid (a)  b = Mul (a, t) }"""
DEFAULTS = """<ir_version: 9, opset_import: ["": 13, "f": 1]> g (float[2,3] x) => (float[2,3] y)
{ h = f.F (x)  y = f.F <alpha: float = 0.5> (h) }
<domain: "f", opset_import: ["": 13]> F <alpha: float = 0.25> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }"""

Edit = Callable[[onnx.ModelProto], object]


def plain(ir: int, opset: int) -> str:
    return TEXT.format(ir=ir, opset=opset)


def lowered(source: onnx.ModelProto, to: int, **options: bool) -> onnx_migrate.Migration:
    """Lower a copy of a model and hold the result valid, loadable, and equal in what it computes."""
    migration = onnx_migrate.migrate(model(source), ir_version=to, **options)  # type: ignore[arg-type]
    result = migration.model
    assert result.ir_version == to
    assert required_ir(result) <= to
    onnx.checker.check_model(result)
    assert loads(result)
    for feeds in ({}, {"c": np.array(False)}, {"c": np.array(True)}):
        given = random_feeds(source)
        if feeds.keys() <= given.keys():
            given.update(feeds)
            same(run(source, given), run(result, given), "lowered")
    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"
    assert {note.code for note in migration.report.notes} <= CODES.keys()
    return migration


def codes(migration: onnx_migrate.Migration) -> list[str]:
    return [note.code for note in migration.report.notes]


@pytest.mark.parametrize(("source", "to"), [((10, 13), 9), ((10, 13), 7), ((8, 9), 4), ((10, 18), 8)])
def test_nothing_but_the_number_changes_where_nothing_is_newer(source: tuple[int, int], to: int) -> None:
    given = model(plain(*source))
    result = lowered(given, to)

    given.ir_version = to
    assert result.model == given
    assert codes(result) == ["ir-version"]
    verification = result.report.verification
    assert verification is not None
    assert verification.evaluator == "a comparison of the graphs"


def test_initializers_are_listed_for_version_3() -> None:
    result = lowered(model(plain(4, 8)), 3)
    assert [value.name for value in result.model.graph.input] == ["x", "w"]
    assert codes(result) == ["listed", "ir-version"]


def test_initializers_of_sub_graphs_move_to_the_main_graph_for_version_3() -> None:
    source = model(IN_IF)
    source.graph.node[0].attribute[1].g.output[0].name = "q"
    result = lowered(source, 3)

    graph = result.model.graph
    assert len(graph.initializer) == 2
    assert len(graph.input) == 4
    assert all(not attribute.g.initializer for attribute in graph.node[0].attribute)
    assert codes(result) == ["moved-weights", "listed", "ir-version"]


def test_an_initializer_that_a_branch_returns_is_still_produced_there() -> None:
    source = model(IN_IF)
    del source.graph.node[0].attribute[1].g.node[:]
    lowered(source, 3)


def annotated(edit: Edit, ir: int, opset: int) -> onnx.ModelProto:
    source = model(plain(ir, opset))
    edit(source)
    return source


def quantization(proto: onnx.ModelProto) -> None:
    note = proto.graph.quantization_annotation.add(tensor_name="h")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")


def metadata(proto: onnx.ModelProto) -> None:
    graph = proto.graph
    for holder in (graph, graph.node[0], graph.initializer[0], graph.input[0], graph.output[0]):
        holder.metadata_props.add(key="a", value="b")
    proto.metadata_props.add(key="author", value="of the model itself: it stays")


def devices(proto: onnx.ModelProto) -> None:
    if not hasattr(proto, "configuration"):
        skip("onnx before 1.18 has no device configurations", Elsewhere.NEWEST)
    proto.configuration.add(name="c", num_devices=2)
    proto.graph.node[0].device_configurations.add(configuration_id="c")


@pytest.mark.parametrize(
    ("edit", "opset", "since"), [(quantization, 9, 5), (metadata, 13, 10), (devices, 13, 11)]
)
def test_annotations_are_dropped(edit: Edit, opset: int, since: int) -> None:
    source = annotated(edit, since, opset)
    assert required_ir(source) == since
    result = lowered(source, since - 1)

    assert codes(result) == ["annotations", "ir-version"]
    assert list(result.model.metadata_props) == list(source.metadata_props)
    assert onnx_migrate.migrate(source, ir_version=since, verify=False).model == source


def test_sparse_initializers_are_made_dense() -> None:
    source = model("10 (float[2,3] x) => (float[2,3] y) { y = Add (x, w) }")
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [5.0, 7.0])
    places = helper.make_tensor("i", TensorProto.INT64, [2, 2], [0, 1, 1, 2])
    source.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 3]))
    result = onnx_migrate.migrate(source, ir_version=5)

    (dense,) = result.model.graph.initializer
    expected = np.array([[0, 5, 0], [0, 0, 7]], np.float32)
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(dense), expected)
    onnx.checker.check_model(result.model)
    feeds = random_feeds(source)
    same([feeds["x"] + expected], run(result.model, feeds), "dense")


def test_training_information_is_refused_or_dropped() -> None:
    source = model(plain(7, 11))
    source.training_info.add()
    with pytest.raises(CannotMigrate, match="--drop-training") as caught:
        onnx_migrate.migrate(source, ir_version=6)
    assert caught.value.code == "no-such-ir"

    result = onnx_migrate.migrate(source, ir_version=6, drop_training=True)

    assert not result.model.training_info
    assert codes(result) == ["training-info", "ir-version"]


def test_functions_are_inlined() -> None:
    result = lowered(model(FUNCTION), 7)
    assert not result.model.functions
    assert [entry.domain for entry in result.model.opset_import] == [""]
    assert codes(result) == ["inlined", "ir-version"]


def test_default_values_of_attributes_hold_when_functions_are_inlined() -> None:
    result = lowered(model(DEFAULTS), 7)
    assert [round(node.attribute[0].f, 6) for node in result.model.graph.node] == [0.25, 0.5]


def test_a_function_of_another_opset_is_not_inlined() -> None:
    source = model(FUNCTION)
    source.functions[0].opset_import[0].version = 12
    with pytest.raises(
        CannotMigrate, match=r"function f:F: .*opset 12 of ai.onnx.*model opset 13(?s:.*)--opset 13"
    ) as caught:
        onnx_migrate.migrate(source, ir_version=7)
    assert caught.value.code == "no-such-ir"


def test_default_values_of_attributes_are_written_at_calls() -> None:
    result = lowered(model(DEFAULTS), 8)
    assert [round(node.attribute[0].f, 6) for node in result.model.graph.node] == [0.25, 0.5]
    (function,) = result.model.functions
    assert list(function.attribute) == ["alpha"]
    assert not function.attribute_proto
    assert codes(result) == ["attribute-defaults", "ir-version"]
    assert "wrote 1 default value" in result.report.notes[0].message


def test_overloads_get_names_of_their_own() -> None:
    source = model(FUNCTION)
    source.ir_version = 10
    other = source.functions.add()
    other.CopyFrom(source.functions[0])
    other.overload = "v"
    other.node[0].op_type = "Tanh"
    source.graph.node[0].output[0] = "h"
    source.graph.node.add(op_type="F", domain="f", overload="v", input=["h"], output=["y"])
    # ONNX Runtime 1.21 to 1.24 read over overloads.
    result = onnx_migrate.migrate(source, ir_version=9, verify=False)

    assert [(function.name, function.overload) for function in result.model.functions] == [
        ("F", ""),
        ("F_v", ""),
    ]
    assert operators(result.model) == ["F", "F_v"]
    feeds = random_feeds(source)
    inner = feeds["x"] / (1 + np.exp(-feeds["x"]))
    same([inner * np.tanh(inner)], run(result.model, feeds), "overloads", rtol=1e-5, atol=1e-6)
    assert codes(result) == ["overloads", "ir-version"]


def test_types_of_inner_values_of_functions_are_dropped() -> None:
    source = model(FUNCTION)
    source.ir_version = 10
    source.functions[0].value_info.append(helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, 3]))
    result = lowered(source, 9)

    assert not result.model.functions[0].value_info
    assert codes(result) == ["annotations", "ir-version"]


def cast(name: str, opset: int, ir: int) -> tuple[onnx.ModelProto, int]:
    number = getattr(TensorProto, name, None)
    if number is None:
        skip(f"onnx {onnx.__version__} has no {name}", Elsewhere.NEWEST)
    text = f"""13 ir{ir} (float[2] x) => (float[2] y)
    {{ t = Cast <to = {number}> (x)  y = Cast <to = 1> (t) }}"""
    source = model(text)
    source.opset_import[0].version = opset
    return source, ir


@pytest.mark.parametrize(
    ("name", "opset", "ir"),
    [("FLOAT8E4M3FN", 13, 9), ("INT4", 13, 10), ("FLOAT4E2M1", 13, 11), ("FLOAT8E8M0", 13, 12), ("INT2", 13, 13),
     ("FLOAT6E2M3", 13, 14)],
)  # fmt: skip
def test_element_types_are_refused(name: str, opset: int, ir: int) -> None:
    source, _ = cast(name, opset, ir)
    with pytest.raises(
        CannotMigrate, match=rf"'t' \(Cast\): .*came with IR version {ir}.*cannot have IR version {ir - 1}"
    ) as caught:
        onnx_migrate.migrate(source, ir_version=ir - 1, verify=False)
    assert caught.value.code == "no-such-type" in CODES


def test_bfloat16_is_refused_below_version_4() -> None:
    source = model("8 (float[2] x) => (float[2] y) { y = Relu (x) }")
    source.graph.value_info.append(helper.make_tensor_value_info("k", TensorProto.BFLOAT16, []))
    with pytest.raises(CannotMigrate, match="bfloat16") as caught:
        onnx_migrate.migrate(source, ir_version=3)
    assert caught.value.code == "no-such-type"


def typed(kind: str) -> onnx.TypeProto:
    type_ = onnx.TypeProto()
    inner = getattr(type_, kind)
    if kind == "optional_type":
        inner.elem_type.tensor_type.elem_type = TensorProto.FLOAT
    elif kind == "sparse_tensor_type":
        inner.elem_type = TensorProto.FLOAT
    else:
        inner.name = "o"
    return type_


@pytest.mark.parametrize(
    ("kind", "feature"),
    [
        ("optional_type", IrFeature.OPTIONAL),
        ("sparse_tensor_type", IrFeature.SPARSE_TYPE),
        ("opaque_type", IrFeature.OPAQUE),
    ],
)
def test_kinds_of_types_are_refused(kind: str, feature: IrFeature) -> None:
    source = model(plain(min(feature.since, NEWEST_IR), 9))
    if feature.since > NEWEST_IR:
        skip(f"onnx {onnx.__version__} knows IR versions up to {NEWEST_IR}", Elsewhere.NEWEST)
    source.graph.value_info.append(helper.make_value_info("v", typed(kind)))
    with pytest.raises(CannotMigrate, match=rf"'v': the model has {feature.text}") as caught:
        onnx_migrate.migrate(source, ir_version=feature.since - 1, verify=False)
    assert caught.value.code == "no-such-ir"


def test_an_attribute_that_is_a_type_is_refused() -> None:
    source = model(plain(8, 9))
    source.opset_import.add(domain="c", version=1)
    source.graph.node.add(op_type="Make", domain="c", output=["o"], name="make").attribute.append(
        helper.make_attribute("type", typed("sparse_tensor_type"))
    )
    with pytest.raises(CannotMigrate, match=r"attributes whose value is a type|values of a sparse type"):
        onnx_migrate.migrate(source, ir_version=7, verify=False)


@pytest.mark.parametrize(("opset", "to", "reach"), [(13, 6, 11), (18, 7, 14), (9, 3, 8)])
def test_an_opset_keeps_its_ir_version(opset: int, to: int, reach: int) -> None:
    source = model(plain(10, 8))
    source.opset_import[0].version = opset
    with pytest.raises(
        CannotMigrate, match=rf"opset {opset} of ai.onnx.*\nHint: .*--opset {reach}$"
    ) as caught:
        onnx_migrate.migrate(source, ir_version=to)
    assert caught.value.code == "no-such-ir" in CODES


def test_an_import_that_nothing_uses_does_not() -> None:
    source = model(plain(10, 13))
    source.opset_import.add(domain="ai.onnx.ml", version=5)
    result = lowered(source, 8)

    assert [entry.domain for entry in result.model.opset_import] == [""]
    assert codes(result) == ["unused-import", "ir-version"]


def test_a_model_newer_than_the_installed_onnx_is_refused() -> None:
    source = model(plain(10, 13))
    source.ir_version = 99
    with pytest.raises(CannotMigrate) as caught:
        onnx_migrate.migrate(source, ir_version=9, verify=False)
    assert caught.value.code == "too-new"


def test_what_is_refused_stays_as_it_was() -> None:
    source = model(FUNCTION)
    source.functions[0].opset_import[0].version = 12
    before = model(source)
    with pytest.raises(CannotMigrate):
        onnx_migrate.migrate(source, ir_version=7)
    assert source == before


def test_every_feature_has_a_test_here() -> None:
    rewritten = {
        IrFeature.UNLISTED, IrFeature.QUANTIZATION, IrFeature.METADATA, IrFeature.DEVICES, IrFeature.SPARSE, IrFeature.TRAINING,
        IrFeature.FUNCTIONS, IrFeature.ATTRIBUTE_DEFAULTS, IrFeature.OVERLOADS, IrFeature.FUNCTION_VALUE_INFO,
    }  # fmt: skip
    refused = {
        IrFeature.OPSET, IrFeature.BFLOAT16, IrFeature.OPTIONAL, IrFeature.SPARSE_TYPE, IrFeature.TYPE_ATTRIBUTE,
        IrFeature.FLOAT8, IrFeature.INT4, IrFeature.FLOAT4, IrFeature.FLOAT8E8M0, IrFeature.INT2, IrFeature.FLOAT6,
        IrFeature.OPAQUE,
    }  # fmt: skip
    assert rewritten | refused == set(IrFeature)
