"""What a model has that is newer than IR version 3."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.model.validity.ir_features import FoundFeature, features, required_ir
from onnx_migrate.standard.ir_versions import IrFeature, minimal_ir_version
from tests.harness import model
from tests.support.skips import Elsewhere, skip

PLAIN = '<ir_version: 3, opset_import: ["": 8]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
WITH_IF = """<ir_version: 3, opset_import: ["": 8]> g (float[2] x, bool c) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] p) { p = Neg (x) },
                else_branch = e () => (float[2] q) { q = Abs (x) }>
}"""
WITH_FUNCTION = """<ir_version: 3, opset_import: ["": 8, "f": 1]> g (float[2] x) => (float[2] y) { y = f.F (x) }
<domain: "f", opset_import: ["": 8]> F (a) => (b) { b = Neg (a) }"""


def others(proto: onnx.ModelProto) -> list[FoundFeature]:
    """Return the features that are no opsets."""
    return [found for found in features(proto) if found.feature is not IrFeature.OPSET]


def branch(proto: onnx.ModelProto) -> onnx.GraphProto:
    return proto.graph.node[0].attribute[0].g


def weight(dtype: int = TensorProto.FLOAT, name: str = "w") -> TensorProto:
    return TensorProto(name=name, dims=[0], data_type=dtype)


def value(type_: onnx.TypeProto) -> onnx.ValueInfoProto:
    return helper.make_value_info("v", type_)


def constant(proto: onnx.ModelProto, **given: object) -> None:
    proto.graph.node.append(helper.make_node("Constant", [], ["k"], "k", **given))


def sparse() -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        helper.make_tensor("s", TensorProto.FLOAT, [1], [2.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [1]),
        [4],
    )


def tensor_type(dtype: int) -> onnx.TypeProto:
    type_ = onnx.TypeProto()
    type_.tensor_type.elem_type = dtype
    return type_


def nested(kind: str, dtype: int = TensorProto.FLOAT) -> onnx.TypeProto:
    type_ = onnx.TypeProto()
    getattr(type_, kind).elem_type.CopyFrom(tensor_type(dtype))
    return type_


def opaque() -> onnx.TypeProto:
    type_ = onnx.TypeProto()
    type_.opaque_type.name = "o"
    return type_


def sparse_type() -> onnx.TypeProto:
    type_ = onnx.TypeProto()
    type_.sparse_tensor_type.elem_type = TensorProto.FLOAT
    return type_


def metadata(entries: object) -> None:
    entries.add(key="a", value="b")  # type: ignore[attr-defined]


Edit = Callable[[onnx.ModelProto], object]

ROWS: list[tuple[str, Edit, IrFeature, int, str]] = [
    (PLAIN, lambda m: m.graph.initializer.append(weight()), IrFeature.UNLISTED, 4, "'w'"),
    (WITH_IF, lambda m: branch(m).initializer.append(weight()), IrFeature.UNLISTED, 4, "'w' in graph/y:then_branch"),
    (PLAIN, lambda m: m.graph.value_info.append(value(tensor_type(16))), IrFeature.BFLOAT16, 4, "'v'"),
    (PLAIN, lambda m: m.graph.quantization_annotation.add(tensor_name="x"), IrFeature.QUANTIZATION, 5, "'x'"),
    (PLAIN, lambda m: constant(m, sparse_value=sparse()), IrFeature.SPARSE, 6, "'k' (Constant)"),
    (PLAIN, lambda m: m.training_info.add(), IrFeature.TRAINING, 7, "model"),
    (WITH_FUNCTION, lambda m: None, IrFeature.FUNCTIONS, 8, "function f:F"),
    (PLAIN, lambda m: m.graph.value_info.append(value(nested("optional_type"))), IrFeature.OPTIONAL, 8, "'v'"),
    (PLAIN, lambda m: m.graph.value_info.append(value(sparse_type())), IrFeature.SPARSE_TYPE, 8, "'v'"),
    (PLAIN, lambda m: m.graph.node.append(helper.make_node("Optional", [], ["o"], "o", type=tensor_type(1))),
     IrFeature.TYPE_ATTRIBUTE, 8, "'o' (Optional)"),
    (PLAIN, lambda m: m.graph.initializer.append(weight(17)), IrFeature.FLOAT8, 9, "'w'"),
    (PLAIN, lambda m: constant(m, value=weight(22)), IrFeature.INT4, 10, "'k' (Constant)"),
    (PLAIN, lambda m: m.graph.node.append(helper.make_node("Cast", ["x"], ["k"], "k", to=21)), IrFeature.INT4, 10, "'k' (Cast)"),
    (PLAIN, lambda m: metadata(m.graph.metadata_props), IrFeature.METADATA, 10, "graph"),
    (PLAIN, lambda m: metadata(m.graph.node[0].metadata_props), IrFeature.METADATA, 10, "'y' (Relu)"),
    (PLAIN, lambda m: metadata(m.graph.input[0].metadata_props), IrFeature.METADATA, 10, "'x'"),
    (WITH_IF, lambda m: metadata(branch(m).node[0].metadata_props), IrFeature.METADATA, 10,
     "'p' (Neg) in graph/y:then_branch"),
    (PLAIN, lambda m: m.graph.value_info.append(value(nested("sequence_type", 23))), IrFeature.FLOAT4, 11, "'v'"),
    (PLAIN, lambda m: m.graph.value_info.append(value(tensor_type(24))), IrFeature.FLOAT8E8M0, 12, "'v'"),
    (PLAIN, lambda m: m.graph.value_info.append(value(tensor_type(25))), IrFeature.INT2, 13, "'v'"),
    (PLAIN, lambda m: m.graph.value_info.append(value(tensor_type(27))), IrFeature.FLOAT6, 14, "'v'"),
    (PLAIN, lambda m: m.graph.value_info.append(value(opaque())), IrFeature.OPAQUE, 14, "'v'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "edit", "feature", "since", "place"), ROWS)
def test_one_feature(text: str, edit: Edit, feature: IrFeature, since: int, place: str) -> None:
    source = model(text)
    before = {found.feature for found in others(source)} - {feature}
    edit(source)
    found = {item.feature: item for item in others(source)}

    unlisted = {IrFeature.UNLISTED} if feature in (IrFeature.FLOAT8,) else set()
    assert found.keys() == before | {feature} | unlisted
    assert (found[feature].since, found[feature].place) == (since, place)
    assert required_ir(source) == max(since, *(item.since for item in found.values()))
    if feature.annotation:
        assert required_ir(source, annotations=False) == max([3, *(item.since for item in before)])


def test_a_model_without_features_needs_the_first_version() -> None:
    assert others(model(PLAIN)) == []
    assert required_ir(model(PLAIN)) == 3


def test_a_listed_initializer_is_no_feature() -> None:
    source = model(PLAIN)
    source.graph.initializer.append(weight(name="x"))
    assert others(source) == []


@pytest.mark.parametrize("owner", ["model", "function"])
def test_an_opset_needs_the_version_of_its_release(owner: str) -> None:
    source = model(WITH_FUNCTION)
    imports = source.opset_import if owner == "model" else source.functions[0].opset_import
    imports[0].version = 20
    found = features(source)[0]

    assert (found.text, found.since) == ("opset 20 of ai.onnx", minimal_ir_version(20))
    assert found.place == ("model" if owner == "model" else "function f:F")
    assert required_ir(source) == 9


def test_features_of_a_function() -> None:
    source = model(WITH_FUNCTION)
    function = source.functions[0]
    function.overload = source.graph.node[0].overload = "v"
    function.value_info.append(value(tensor_type(1)))
    function.attribute_proto.append(helper.make_attribute("alpha", 0.5))
    metadata(function.metadata_props)
    found = {item.feature: item for item in others(source)}

    assert found.keys() == {
        IrFeature.FUNCTIONS,
        IrFeature.OVERLOADS,
        IrFeature.FUNCTION_VALUE_INFO,
        IrFeature.ATTRIBUTE_DEFAULTS,
        IrFeature.METADATA,
    }
    assert found[IrFeature.OVERLOADS].count == 2
    assert all(found[item].place == "function f:F" for item in found)


def test_device_configurations() -> None:
    source = model(PLAIN)
    if not hasattr(source, "configuration"):
        skip("onnx before 1.18 has no device configurations", Elsewhere.NEWEST)
    source.graph.node[0].device_configurations.add(configuration_id="c")
    source.configuration.add(name="c", num_devices=1)
    (found,) = others(source)

    assert (found.feature, found.since, found.count) == (IrFeature.DEVICES, 11, 2)


def test_places_are_counted() -> None:
    source = model(PLAIN)
    for name in ("b", "a", "c"):
        source.graph.initializer.append(weight(name=name))
    (found,) = others(source)

    assert (found.count, found.where.node) == (3, "a")
