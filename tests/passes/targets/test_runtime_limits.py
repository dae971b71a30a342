"""What a runtime's release does not take is refused, said, or written otherwise."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate import files, migrate
from onnx_migrate.compatibility import CompatibilityChecker
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.targets import Targets, resolve
from tests.harness import model, needs_negative_axes, random_feeds, require_opset, run, same
from tests.resize.shaped import resizes
from tests.steps import refuses
from tests.support.skips import Elsewhere, skip
from tests.support.targets import targets_of

TRIES_17 = targets_of('newer = "tried"\noperators = "any"\n[[release]]\nopset = 17')


def fitted(proto: onnx.ModelProto, targets: Targets) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    return make_pass("runtime_limits", targets=targets).run(files.load(proto), log).proto, log


@pytest.mark.parametrize(("ir_version", "lowered"), [(7, 7), (8, 8), (9, 8), (13, 8)])
def test_an_ir_version_that_the_release_does_not_load_is_lowered(ir_version: int, lowered: int) -> None:
    proto = model("17 (float x) => (float y) { y = Relu (x) }")
    if ir_version > onnx.IR_VERSION:
        skip(f"onnx {onnx.__version__} knows IR versions up to {onnx.IR_VERSION}", Elsewhere.NEWEST)
    proto.ir_version = ir_version
    result, log = fitted(proto, resolve(["onnxruntime==1.14"]))

    assert result.ir_version == lowered
    assert [note.code for note in log.notes] == ["ir-version"] * (ir_version > lowered)


def test_what_such_an_ir_version_does_not_have_is_refused() -> None:
    proto = model("17 ir10 (float x) => (float y) { y = Relu (x) }")
    type_ = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT4, [])
    proto.graph.value_info.append(onnx.helper.make_value_info("four", type_))
    refuses(
        "runtime-ir",
        fitted,
        proto,
        resolve(["onnxruntime==1.14"]),
        match=r"'four': ONNX Runtime 1\.14 loads IR versions up to 8, .*4-bit",
    )


@pytest.mark.parametrize(("opset", "codes"), [(16, []), (17, []), (18, ["runtime-opset"])])
def test_a_newer_opset_is_said(opset: int, codes: list[str]) -> None:
    proto = model(f"{opset} (float x) => (float y) {{ y = Relu (x) }}")

    _, log = fitted(proto, TRIES_17)

    assert [note.code for note in log.notes] == codes


SOME_AXES = """18 (float[1,2,4,6] x) => (float[1,2,a,b] y) <float[2] scales = {1.5, 0.5}> {
    y = Resize <mode = "linear", axes = [-2, 3]> (x, , scales)
}"""


@needs_negative_axes
@pytest.mark.parametrize("known", [True, False])
def test_axes_are_named_for_who_does_not_know_the_attribute(known: bool) -> None:
    require_opset(18)
    source = model(SOME_AXES)
    feeds = random_feeds(source)

    result, log = fitted(source, targets_of(f"[[release]]\nopset = 18\nresize_axes = {str(known).lower()}"))

    (node,) = resizes(result)
    assert ("axes" in [attribute.name for attribute in node.attribute]) == known
    assert [change.where.node for change in log.changes] == ([] if known else ["y"])
    same(run(model(SOME_AXES), feeds), run(result, feeds), "named")


def test_what_cannot_be_named_is_said() -> None:
    require_opset(18)
    text = SOME_AXES.replace("float[1,2,4,6] x", "float x").replace("float[1,2,a,b] y", "float y")
    proto = model(text)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.ClearField("shape")

    result, log = fitted(proto, targets_of("operators = 'any'\n[[release]]\nopset = 18\nresize_axes = false"))

    assert [note.code for note in log.notes] == ["resize-kept"]
    assert "axes" in [attribute.name for attribute in resizes(result)[0].attribute]


@pytest.mark.parametrize(
    ("attributes", "opset", "release", "wrong"),
    [
        ("count_include_pad = 1, pads = [0, 0, 1, 0]", 19, "1.21", True),
        ("count_include_pad = 1, pads = [0, 0, 1, 0]", 22, "1.24", True),
        ("count_include_pad = 1, pads = [0, 0, 1, 0]", 18, "1.22", False),
        ("count_include_pad = 1, pads = [0, 0, 1, 0]", 19, "1.25", False),
        ("count_include_pad = 1, pads = [0, 0, 1, 0]", 19, "1.20", False),
        ("count_include_pad = 1, pads = [1, 0, 0, 1]", 19, "1.22", False),
        ("count_include_pad = 0, pads = [0, 0, 1, 0]", 19, "1.22", False),
        ("count_include_pad = 1", 19, "1.22", False),
    ],
)
def test_a_fault_of_the_runtime_is_said(attributes: str, opset: int, release: str, wrong: bool) -> None:
    proto = model(f"""{opset} (bool c, float[1,1,4,4] x) => (float[a,b,d,e] y) {{
    y = If <then_branch = t () => (float[a,b,d,e] p) {{ p = AveragePool <kernel_shape = [2, 2], {attributes}> (x) }},
            else_branch = e () => (float[a,b,d,e] q) {{ q = Relu (x) }}> (c)
}}""")

    _, log = fitted(proto, resolve([f"onnxruntime=={release}"]))

    assert [note.code for note in log.notes] == ["runtime-fault"] * wrong


def test_an_opset_newer_than_the_ir_version_stays_where_the_runtime_takes_both() -> None:
    source = "9 (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add (x, w) }"
    result = migrate(model(source), runtime=targets_of("[[release]]\nopset = 9\nir = 3"), simplify=False)

    assert (result.model.ir_version, result.model.opset_import[0].version) == (3, 9)
    assert [value.name for value in result.model.graph.input] == ["x", "w"]
    onnx.checker.check_model(result.model)
    with pytest.raises(CannotMigrate, match="opset 9"):
        migrate(model(source), runtime=targets_of("[[release]]\nir = 3"), simplify=False)


def test_nodes_of_ml_come_to_the_opset_that_a_release_takes() -> None:
    source = model(
        '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 4]> g (int64[2] x) => (float[2] y)'
        " { y = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_floats = [0.5, 1.5]> (x) }"
    )
    for release, opset, objected in (("1.17", 4, False), ("1.16", 3, True), ("1.10", 2, True)):
        (target,) = resolve([f"onnxruntime=={release}"])
        advice = CompatibilityChecker(Model(source)).advise(target)
        assert any("of ai.onnx.ml" in item.reason for item in advice.objections) is objected

        result = migrate(source, runtime=f"onnxruntime=={release}").model
        assert {entry.domain: entry.version for entry in result.opset_import}["ai.onnx.ml"] == opset
