"""The nodes that a runtime computes wrongly, and the opset that a model can have in runtimes because of its operators."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import onnx_migrate
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.engine.pass_registry import builtin_passes
from onnx_migrate.model.model import Model
from onnx_migrate.standard.targets import PREDICATES, resolve
from tests.harness import model, random_feeds, require_opset, run, same
from tests.support.targets import targets_of

FAULT = """[[release]]
opset = 22
[[fault]]
names = ["{operator}"]
opset = 13
attributes = {{ {attributes} }}
text = "errs"
"""


@pytest.mark.parametrize(
    ("operator", "attributes", "opset", "found"),
    [
        ("Softmax", "axis = [1, 2]", 13, ["y"]),
        ("Softmax", "axis = [0]", 13, []),
        ("Softmax", "axis = [1]", 12, []),
        ("Softmax", "", 13, ["y"]),
        ("Relu", "", 13, []),
    ],
)
def test_faults_are_of_operators_attributes_and_opsets(
    operator: str, attributes: str, opset: int, found: list[str]
) -> None:
    builtin_passes()
    from onnx_migrate.passes.targets.runtime_faults import faulty_nodes

    proto = model(f"{opset} (float[2,2] x) => (float[2,2] y) {{ y = Softmax <axis = 1> (x) }}")
    (target,) = targets_of(FAULT.format(operator=operator, attributes=attributes))

    assert [faulty.node.output[0] for faulty in faulty_nodes(target, Model(proto), opset)] == found


def test_every_condition_of_a_table_is_known() -> None:
    builtin_passes()
    from onnx_migrate.passes.targets.fault_conditions import ATTRIBUTES, SIZES

    assert (*ATTRIBUTES, *SIZES) == PREDICATES


CUBIC = """(float{0} x) => (float{1} y)
    <float[4] s = {{1, 1, 0.5, 0.5}}, float[4] t = {{1, 1, 1.5, 1.5}}, int64[4] l = {{1, 2, 4, 5}},
    float[0] e = {{}}> {{ y = Resize<mode = "cubic">(x, e, {2}) }}"""
SCATTER = (
    "(float[3,3] d, int64{0} i, float{0} u) => (float[3,3] y) {{ y = ScatterElements<axis = 1>(d, i, u) }}"
)
ZEROS = (
    "(uint8[2,5] x, int8[5,3] w, uint8[1] a, int8{0} z) => (int32[2,3] y) {{ y = MatMulInteger(x, w, a, z) }}"
)
LINEAR = """(float{0} x) => (float{0} y) <float[{1}] s = {{{2}}}, float[0] e = {{}}> {{
    r = Resize<mode = "linear">(x, e, s) k = Shape (x) y = Reshape (r, k) }}"""

HALF = """(float[1,1,{0},8] x) => (float[1,1,a,4] y)
    <float[4] s = {{1, 1, 0.5, 0.5}}, float[0] e = {{}}>
    {{ y = Resize<mode = "{2}", coordinate_transformation_mode = "{1}", nearest_mode = "floor">(x, e, s) }}"""
TWICE = """(float[1,1,{0},8] x) => (float[1,1,a,16] y) <float[4] s = {{1, 1, 2, 2}}, float[0] e = {{}}>
    {{ y = Resize<mode = "nearest", coordinate_transformation_mode = "{1}", nearest_mode = "{2}">(x, e, s) }}"""
TILED = "(float[{0}] x) => (float[a,b,c] y) <int64[3] r = {{{1}}}> {{ y = Tile(x, r) }}"
NORMED = """(float[{0},2,4,4] x) => (float[{0},2,4,4] y) <float[2] s = {{1, 2}}, float[2] b = {{1, 2}}>
    {{ y = InstanceNormalization(x, s, b) }}"""
PADDED = (
    """(float[1,2,4,4] x) => (float[a,b,c,d] y) <int64[8] p = {{{0}}}> {{ y = Pad<mode = "edge">(x, p) }}"""
)
POOLED = """(float[1,1,{1},12] x) => (float[1,1,a,b] y) {{
    y = {0}Pool<kernel_shape = [{2}, {2}], strides = [2, 2], pads = [{3}, {3}, {3}, {3}], ceil_mode = 1{4}>(x) }}"""

MATRICES = "(float{0} x, float{1} w) => (float[a,b,c] y) {{ y = MatMul(x, w) }}"
BRANCHES = """(float[2,1] x, bool c, bool d) => (float[n,m] y) {{ y = If (c) <
    then_branch = then () => (float[] a) {{ a = If (d) <
        then_branch = in () => (float[] e) {{ e = {0} }}, else_branch = out () => (float[] f) {{ f = {1} }}> }},
    else_branch = other () => (float[2,1] b) {{ b = Identity(x) }}> }}"""


@pytest.mark.parametrize("release", ["opencv==4.8", "opencv==5.0", "onnxruntime==1.16", "tract==0.23"])
@pytest.mark.parametrize(
    "text",
    [
        "11 (float x) => (float y) { y = ReduceSum(x) }",
        '18 (float[2,3] x, int64[4] p, int64[k] a) => (float[b,c] y) { y = Pad<mode = "edge">(x, p, , a) }',
        "13 (float[2,3] x, int64[2] r) => (float[b,c] y) { y = Tile(x, r) }",
        "11 (float[1,1,n] x) => (float[1,1,m] y) { y = MaxPool<kernel_shape = [2], ceil_mode = 1>(x) }",
        '13 (float[n] x, float[1] s) => (float[m] y) { y = Resize<mode = "nearest">(x, , s) }',
    ],
)
def test_what_is_asked_of_a_node_may_not_be_known(text: str, release: str) -> None:
    (target,) = resolve([release])
    assert CompatibilityChecker(Model(model(text))).advise(target).standing is not Support.NO


@pytest.mark.parametrize(
    ("text", "runtime", "no"),
    [
        (CUBIC.format("[1,2,8,8]", "[1,2,4,4]", "s"), "mnn==3.6", False),
        (CUBIC.format("[1,2,8,8]", "[1,2,12,12]", "t"), "mnn==3.6", True),
        (CUBIC.format("[1,2,8,8]", "[1,2,4,5]", "e, l"), "mnn==3.6", False),
        (CUBIC.format("[1,2,a,b]", "[1,2,4,5]", "e, l"), "mnn==3.6", None),
        (SCATTER.format("[2,3]"), "onnxruntime==1.7", False),
        (SCATTER.format("[2,n]"), "onnxruntime==1.7", False),
        (ZEROS.format("[3]"), "onnxruntime==1.7", True),
        (ZEROS.format("[1]"), "onnxruntime==1.7", False),
        (ZEROS.format("[3]"), "onnxruntime==1.8", False),
        (SCATTER.format("[2,5]"), "onnxruntime==1.7", True),
        (SCATTER.format("[2,5]"), "onnxruntime==1.8", False),
        (MATRICES.format("[3,8]", "[1,8,5]"), "onnxruntime==1.3", True),
        (MATRICES.format("[3,8]", "[1,8,5]"), "onnxruntime==1.4", False),
        (MATRICES.format("[3,8]", "[2,8,5]"), "onnxruntime==1.3", False),
        (MATRICES.format("[1,3,8]", "[1,8,5]"), "onnxruntime==1.3", False),
        (BRANCHES.format("Squeeze<axes = [1]>(x)", "Identity(x)"), "onnxruntime==1.3", True),
        (BRANCHES.format("Squeeze<axes = [1]>(x)", "Identity(x)"), "onnxruntime==1.4", False),
        (BRANCHES.format("Relu(x)", "Identity(x)"), "onnxruntime==1.3", False),
        (LINEAR.format("[1,2,3,4,5]", 5, "1, 1, 1, 2, 2"), "onnxruntime==1.4", True),
        (LINEAR.format("[1,2,3,4,5]", 5, "1, 1, 1, 2, 2"), "onnxruntime==1.5", False),
        (LINEAR.format("[1,2,4,5]", 4, "1, 1, 2, 2"), "onnxruntime==1.4", False),
        (HALF.format("13", "half_pixel", "linear"), "opencv==4.7", True),
        (HALF.format("13", "half_pixel", "linear"), "opencv==5.0", True),
        (HALF.format("12", "half_pixel", "linear"), "opencv==5.0", False),
        (HALF.format("n", "half_pixel", "linear"), "opencv==5.0", None),
        (HALF.format("13", "align_corners", "linear"), "opencv==5.0", False),
        (HALF.format("13", "align_corners", "linear"), "tract==0.23", True),
        (HALF.format("13", "half_pixel", "linear"), "tract==0.23", False),
        (HALF.format("13", "asymmetric", "nearest"), "opencv==5.0", False),  # picks the same elements
        (HALF.format("13", "half_pixel", "nearest"), "opencv==5.0", True),
        (HALF.format("12", "asymmetric", "nearest"), "opencv==4.8", False),
        (HALF.format("12", "align_corners", "nearest"), "opencv==4.8", True),
        (HALF.format("n", "asymmetric", "nearest"), "opencv==4.8", None),
        (HALF.format("12", "align_corners", "nearest"), "opencv==5.0", False),
        (TWICE.format("n", "asymmetric", "floor"), "opencv==4.8", False),
        (TWICE.format("n", "half_pixel", "round_prefer_floor"), "opencv==4.8", False),
        (TWICE.format("n", "half_pixel", "floor"), "opencv==4.8", True),
        ("(float[2] x) => (float[2] y) {{ y = Round(x) }}".format(), "mnn==3.6", None),
        (TILED.format("1,3,4", "1, 2, 2"), "opencv==4.12", False),
        (TILED.format("2,3,4", "1, 2, 2"), "opencv==4.12", True),
        (TILED.format("n,3,4", "1, 2, 2"), "opencv==4.12", None),
        (TILED.format("n,3,4", "2, 2, 1"), "opencv==4.12", False),
        (TILED.format("2,3,4", "1, 2, 2"), "opencv==5.0", False),
        (NORMED.format("1"), "opencv==4.8", False),
        (NORMED.format("2"), "opencv==4.8", True),
        (NORMED.format("n"), "opencv==4.8", None),
        (NORMED.format("2"), "opencv==4.9", False),
        (PADDED.format("0, 0, 1, 0, 0, 0, 1, 0"), "onnxruntime==1.6", True),
        (PADDED.format("0, 0, 1, 0, 0, 0, 1, 0"), "onnxruntime==1.7", False),
        (PADDED.format("0, 0, 1, 0, 0, 0, 0, 1"), "onnxruntime==1.6", False),
        (PADDED.format("0, 0, 0, 0, 0, 0, 0, 0"), "onnxruntime==1.6", False),
        (PADDED.format("0, 0, 1, 1, 0, 0, 1, 1"), "opencv==4.10", False),
        (PADDED.format("0, 1, 0, 1, 0, 0, 0, 1"), "opencv==4.10", True),
        (PADDED.format("0, 1, 0, 1, 0, 0, 0, 1"), "opencv==5.0", False),
        (POOLED.format("Average", "13", "2", "0", ", count_include_pad = 1"), "onnxruntime==1.28", True),
        (POOLED.format("Average", "13", "2", "0", ", count_include_pad = 1"), "onnxruntime==1.29", False),
        (POOLED.format("Average", "13", "2", "0", ""), "onnxruntime==1.28", False),
        (POOLED.format("Average", "12", "2", "0", ", count_include_pad = 1"), "onnxruntime==1.28", False),
        (POOLED.format("Average", "n", "2", "0", ", count_include_pad = 1"), "onnxruntime==1.28", None),
        (POOLED.format("Max", "7", "2", "1", ""), "onnxruntime==1.20", True),
        (POOLED.format("Max", "7", "2", "1", ""), "onnxruntime==1.21", False),
        (POOLED.format("Max", "7", "2", "1", ""), "openvino==2026.4", True),
        (POOLED.format("Max", "8", "3", "1", ""), "onnxruntime==1.20", False),
    ],
)
def test_a_fault_of_some_sizes_is_said_of_those(text: str, runtime: str, no: bool | None) -> None:
    (target,) = resolve([runtime])
    advice = CompatibilityChecker(Model(model(f"11 {text}"))).advise(target)

    assert (advice.standing is Support.NO) == bool(no), advice.obstacles
    assert (advice.standing is Support.UNSURE) == (no is None)
    assert any("decide" in item.reason or "halves" in item.reason for item in advice.objections) == (
        no is None
    )
    assert all(item.wrong for item in advice.obstacles) or not no


QNN = """name = "qnn"
title = "QNN"
[[release]]
{row}
[[operator]]
names = ["Clip"]
newest = 12
[[operator]]
names = ["Softmax"]
newest = 13
"""

CLIP = """<ir_version: 8, opset_import: ["": {opset}]>
g (float[2,3] x) => (float[2,3] y) <float low = {{-0.5}}, float high = {{0.5}}> {{ c = Clip (x, low, high) y = Softmax (c) }}"""
RELU = '<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] y) {{ c = Relu (x) y = Softmax (c) }}'


def migrated(text: str, row: str, opset: int) -> tuple[int, list[onnx_migrate.report.Note]]:
    source = model(text.format(opset=opset))
    found = onnx_migrate.migrate(source, runtime=targets_of(QNN.format(row=row)), simplify=False)
    feeds = {"x": np.array([[-2, -0.25, 0], [0.25, 0.5, 2]], np.float32)}
    same(run(source, feeds), run(found.structure, feeds), "migrated")
    notes = [note for note in found.report.notes if note.code == "operator-bound"]
    return found.report.after.opset or 0, notes


@pytest.mark.parametrize(
    ("text", "row", "opset", "reached"),
    [
        (CLIP, "opset = 17", 11, 12),
        (CLIP, "opset = 17", 16, 12),
        (CLIP, "opset = 17", 12, 12),
        (CLIP, "", 16, 12),
        (CLIP, "", 11, 11),
        (RELU, "opset = 17", 11, 17),
        (RELU, "", 15, 15),
        (CLIP, "opset = 11", 16, 11),
    ],
)
def test_the_newest_opset_at_which_all_operators_are_taken(
    text: str, row: str, opset: int, reached: int
) -> None:
    found, notes = migrated(text, row, opset)

    assert found == reached
    bound = reached == 12 and not (row == "" and opset == 12)
    assert ["QNN supports Clip up to version 12" in note.message for note in notes] == [True] * bound
    assert onnx.defs.get_schema("Clip", found).since_version <= 12 or text is RELU


FAULTY = """[[release]]
opset = 22
[[fault]]
names = ["AveragePool"]
opset = 19
attributes = { count_include_pad = [1] }
when = "pads_only_at_end"
text = "computes wrong numbers for padding at the end"
"""
POOL = """<ir_version: 8, opset_import: ["": %d]> g (float[1,1,4,4] x) => (float[1,1,4,3] y)
{ y = AveragePool <kernel_shape = [2, 2], count_include_pad = 1, pads = [0, 0, 1, 0]> (x) }"""


@pytest.mark.parametrize("opset", [11, 18, 20])
def test_an_opset_from_which_on_a_node_is_computed_wrongly_is_not_reached(opset: int) -> None:
    require_opset(22)
    source = model(POOL % opset)
    found = onnx_migrate.migrate(source, runtime=targets_of(FAULTY), simplify=False)
    feeds = random_feeds(source)

    assert found.report.after.opset == 18
    assert "runtime-fault" not in [note.code for note in found.report.notes]
    (note,) = [note for note in found.report.notes if note.code == "operator-bound"]
    assert "from opset 19 on" in note.message
    same(run(source, feeds), run(found.model, feeds), "migrated", 1e-6, 1e-6)


def test_where_that_opset_cannot_be_reached_a_warning_stays() -> None:
    require_opset(20)
    source = model("""20 (float[1,1,4,4] x, string[2] t) => (float[1,1,4,3] y, string[2] z)
    { y = AveragePool <kernel_shape = [2, 2], count_include_pad = 1, pads = [0, 0, 1, 0]> (x) z = StringConcat (t, t) }""")
    found = onnx_migrate.migrate(source, runtime=targets_of(FAULTY), simplify=False, verify="off")
    codes = [note.code for note in found.report.notes]

    assert found.report.after.opset == 20
    assert "not-lowered" in codes
    assert "runtime-fault" in codes
