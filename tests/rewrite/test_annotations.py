"""What no number depends on, removed wherever it is."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate import files
from onnx_migrate.model.model import Model
from onnx_migrate.model.validity.ir_features import features
from onnx_migrate.rewrite.annotations import differ_in_header_alone, drop_annotation
from onnx_migrate.standard.ir_versions import IrFeature
from tests.harness import model

TEXT = """<ir_version: 12, opset_import: ["": 17, "f": 1]> g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
    y = If (c) <then_branch = t () => (float[2] p) { p = f.F (x) }, else_branch = e () => (float[2] q) { q = Add (x, w) }>
}
<domain: "f", opset_import: ["": 17]> F (a) => (b) { b = Neg (a) }"""


def annotated() -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return a model, and the same with every annotation."""
    before = model(TEXT)
    proto = model(TEXT)
    branch = proto.graph.node[0].attribute[0].g
    function = proto.functions[0]
    holders = (proto.graph, proto.graph.node[0], proto.graph.input[0], proto.graph.initializer[0], branch, branch.node[0],
               branch.output[0], function, function.node[0])  # fmt: skip
    for holder in holders:
        holder.metadata_props.add(key="a", value="b")
    for graph in (proto.graph, branch):
        graph.quantization_annotation.add(tensor_name="x")
    function.value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [2]))
    if hasattr(proto, "configuration"):
        proto.configuration.add(name="c")
        branch.node[0].device_configurations.add(configuration_id="c")
    return before, proto


def test_everything_goes_and_nothing_else() -> None:
    before, proto = annotated()
    found = {item.feature: item.count for item in features(proto) if item.feature.annotation}
    dropped = {feature: drop_annotation(proto, feature) for feature in IrFeature if feature.annotation}

    assert {feature: count for feature, count in dropped.items() if count} == found
    assert found[IrFeature.METADATA] == 9
    assert proto == before


def test_annotations_and_ir_version_do_not_count() -> None:
    before, proto = annotated()
    assert not differ_in_header_alone(Model(before), Model(proto))
    proto.ir_version = 11
    assert differ_in_header_alone(Model(before), Model(proto))


@pytest.mark.parametrize("place", ["node", "weight", "branch"])
def test_anything_else_counts(place: str) -> None:
    before, proto = annotated()
    proto.ir_version = 11
    if place == "node":
        proto.functions[0].node[0].op_type = "Abs"
    elif place == "weight":
        proto.graph.initializer[0].float_data[0] = 3
    else:
        proto.graph.node[0].attribute[1].g.node[0].op_type = "Sub"
    assert not differ_in_header_alone(Model(before), Model(proto))


def test_large_weights_of_two_loads_are_not_taken_to_be_equal() -> None:
    source = model(TEXT)
    source.graph.initializer.append(
        onnx.TensorProto(name="k", dims=[8192], data_type=1, raw_data=b"\0" * 32768)
    )
    other = model(source)
    other.graph.initializer[1].raw_data = b"\1" * 32768
    one, two = files.load(source), files.load(other)
    two.proto.ir_version = 11

    assert not differ_in_header_alone(one, two)
    copy = one.copy()
    copy.proto.ir_version = 11
    assert differ_in_header_alone(one, copy)


@pytest.mark.parametrize(
    ("imports", "alone"),
    [
        ([("", 21), ("own", 1)], True),
        ([("", 21), ("own", 1), ("idle", 2)], False),
        ([("", 20), ("own", 1)], False),
        ([("", 21), ("own", 2)], False),
        ([("", 21)], False),
        ([("", 21), ("own", 1), ("idle", 1)], True),
    ],
    ids=str,
)
def test_only_imports_that_nothing_uses_may_go(imports: list[tuple[str, int]], alone: bool) -> None:
    before = model("""<ir_version: 10, opset_import: ["": 21, "own": 1, "idle": 1]>
g (float[2] x) => (float[2] y) { y = own.F (x) }
<domain: "own", opset_import: ["": 21]> F (x) => (y) { y = Relu (x) }""")
    after = onnx.ModelProto()
    after.CopyFrom(before)
    after.ir_version = 9
    del after.opset_import[:]
    after.opset_import.extend(onnx.helper.make_opsetid(*entry) for entry in imports)

    assert differ_in_header_alone(Model(before), Model(after)) == alone


def test_models_that_are_equal_differ_in_nothing() -> None:
    assert not differ_in_header_alone(Model(model(TEXT)), Model(model(TEXT)))
