"""What a target says of a whole model: element types, open dims, ranks, constant inputs, ranges of attributes."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate import default_pipeline, files
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.targets import Targets, resolve
from tests.harness import model, random_feeds, run, same
from tests.support.targets import targets_of

RELEASE = 'operators = "any"\n[[release]]\nopset = 17\n'
FLOAT = (
    "17 (float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { a = Mul (x, w) b = Relu (a) y = Exp (b) }"
)
PLAIN = "17 (float[2,3] x) => (int64[2] y) { a = Relu (x) y = ArgMax <axis = 1, keepdims = 0> (a) }"
OPEN = "17 (float[N,3] x, float[2,M] z) => (float[N,3] y, float[2,M] w) { y = Relu (x) w = Exp (z) }"
DEEP = (
    "17 (float[2,3,4] x) => (float[1,2,3,1,4] y) <int64[5] s = {1,2,3,1,4}>"
    " { [r] a = Reshape (x, s) [n] y = Relu (a) }"
)
COMPUTED = "17 (float[2,6] x, int64[2] s) => (float[a,b] y) { [r] y = Reshape (x, s) }"
POOL = "17 (float[1,1,9,9] x) => (float[1,1,5,5] y) { [p] y = MaxPool <kernel_shape = [5, 5]> (x) }"


def brought(text: str, targets: Targets) -> onnx.ModelProto:
    """Return what a migration for these targets makes of a model."""
    pipeline = default_pipeline(runtime=targets, simplify=False)
    return pipeline.run(files.load(model(text)), ChangeLog()).model.proto


@pytest.mark.parametrize(
    ("rows", "text", "message"),
    [
        ('types = ["float16"]', FLOAT, "'a' (Mul): chip takes values of float16, not of float; 2 more nodes"),
        ('types = ["float32"]', PLAIN, "'y' (ArgMax): chip takes values of float, not of int64"),
        ('types = ["float32", "int64"]', PLAIN, ""),
        ('input_types = ["uint8"]', PLAIN, "input 'x' is of float, and chip takes inputs of uint8"),
        ('output_types = ["float32"]', PLAIN, "output 'y' is of int64, and chip takes outputs of float"),
        ("static = true", OPEN, "input 'x' is [N, 3], and chip takes fixed dims only; input 'z' is [2, M]"),
        ("static = true", PLAIN, ""),
        ("rank = 4", DEEP, "'r' (Reshape): chip takes values of up to 4 axes, not of 5; 1 more node"),
        ("rank = 5", DEEP, ""),
        ('[[operator]]\nnames = ["Relu"]\nrank = 4', DEEP, "'n' (Relu-14): chip takes Relu of up to 4 axes, not of 5"),
        (
            '[[operator]]\nnames = ["Reshape"]\nconstant_inputs = ["shape"]',
            COMPUTED,
            "'r' (Reshape-14): chip takes Reshape with constant shape, and its shape ('s') is computed at run time",
        ),
        ('[[operator]]\nnames = ["Reshape"]\nconstant_inputs = ["shape"]', DEEP, ""),
        (
            '[[operator]]\nnames = ["MaxPool"]\nattributes = { kernel_shape = { max = 3 } }',
            POOL,
            "chip takes MaxPool with kernel_shape up to 3, not [5, 5]",
        ),
        ('[[operator]]\nnames = ["MaxPool"]\nattributes = { kernel_shape = { min = 1, max = 5 } }', POOL, ""),
        ('[[operator]]\nnames = ["Relu"]\noldest = 14', DEEP, ""),
        ('[[operator]]\nnames = ["Relu"]\noldest = 15', DEEP, "'n' (Relu-14): chip takes Relu from version 15 on, not 14"),
    ],
)  # fmt: skip
def test_what_is_not_taken_is_refused_by_name(rows: str, text: str, message: str) -> None:
    targets, source = targets_of(f"{RELEASE}{rows}\n"), model(text)
    pipeline, log = default_pipeline(runtime=targets, simplify=False), ChangeLog()
    standing = CompatibilityChecker(files.load(source)).advise(*targets).standing
    if not message:
        assert standing is Support.AS_IS
        pipeline.run(files.load(source), log)
        return
    assert standing is Support.NO
    with pytest.raises(CannotMigrate) as error:
        pipeline.run(files.load(source), log)
    assert error.value.code == "target-lacks"
    assert message in error.value.with_hint
    assert not [change for change in log.changes if change.emitted]  # no Casts around what is refused


@pytest.mark.parametrize(
    ("rows", "text"),
    [('types = ["float16"]', FLOAT), ("static = true", OPEN), ('[[operator]]\nnames = ["Relu"]\noldest = 15', DEEP),
     ('[[operator]]\nnames = ["Reshape"]\nconstant_inputs = ["shape"]', COMPUTED)],
)  # fmt: skip
def test_a_best_effort_leaves_it_with_a_warning(rows: str, text: str) -> None:
    targets, log = targets_of(f"{RELEASE}{rows}\n"), ChangeLog()
    result = default_pipeline(runtime=targets, simplify=False, best_effort=True).run(
        files.load(model(text)), log
    )

    assert [note.code for note in log.notes] == ["not-fitted"]
    assert len(result.model.proto.graph.node) == len(model(text).graph.node)


def test_open_dims_have_the_option_that_fixes_them() -> None:
    with pytest.raises(CannotMigrate) as error:
        default_pipeline(runtime=targets_of(f"{RELEASE}static = true\n")).run(
            files.load(model(OPEN)), ChangeLog()
        )
    assert error.value.hint == "not tried: fix the dims of x and z with --fix-shape"


def test_an_input_that_follows_from_fixed_dims_becomes_a_constant() -> None:
    text = (
        "17 (float[2,3,4] x) => (float[a,b] y) <int64[1] first = {0}, int64[1] rest = {-1}>"
        " { s = Shape (x) f = Gather (s, first) t = Concat <axis = 0> (f, rest) y = Reshape (x, t) }"
    )
    source = model(text)
    feeds = random_feeds(source)
    targets = targets_of(f'{RELEASE}[[operator]]\nnames = ["Reshape"]\nconstant_inputs = ["shape"]\n')
    result = brought(text, targets)

    (reshape,) = (node for node in result.graph.node if node.op_type == "Reshape")
    assert reshape.input[1] in {tensor.name for tensor in result.graph.initializer}
    same(run(source, feeds), run(result, feeds), "constant shape")


def test_a_model_comes_up_to_what_replaced_an_operator_that_is_missing() -> None:
    text = "7 (float[1,1,2,2] x) => (float[1,1,4,4] y) { y = Upsample <scales = [1.0, 1.0, 2.0, 2.0]> (x) }"
    targets = targets_of('operators = "listed"\n[[release]]\n[[operator]]\nnames = ["Resize"]\n')
    result = brought(text, targets)

    assert [node.op_type for node in result.graph.node] == ["Resize"]
    feeds = random_feeds(model(text))
    same(run(model(text), feeds), run(result, feeds), "Resize")
    assert CompatibilityChecker(files.load(model(text))).advise(*targets).standing is Support.AFTER


@pytest.mark.parametrize(("release", "kept"), [("1.8.1", 0), ("1.10.0", 0), ("1.11.1", 1)])
def test_a_reshape_with_allowzero_is_written_without_it_for_releases_that_fail_at_it(
    release: str, kept: int
) -> None:
    text = """14 (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {2, -1}> { y = Reshape <allowzero = 1> (x, s) }"""
    targets = resolve([f"onnxruntime=={release}"])
    result = brought(text, targets)

    assert sum(attribute.i for node in result.graph.node for attribute in node.attribute) == kept
    feeds = random_feeds(model(text))
    same(run(model(text), feeds), run(result, feeds), "Reshape")


def test_a_model_comes_up_to_the_oldest_version_that_is_taken() -> None:
    text = "11 (float[2,3] x) => (float[1,2,3] y) { a = Unsqueeze <axes = [0]> (x) y = Relu (a) }"
    targets = targets_of('operators = "any"\n[[release]]\n[[operator]]\nnames = ["Unsqueeze"]\noldest = 13\n')
    result = brought(text, targets)

    assert result.opset_import[0].version == 13
    assert CompatibilityChecker(files.load(model(text))).advise(*targets).standing is Support.AFTER
    capped = targets_of(
        'operators = "any"\n[[release]]\nopset = 12\n[[operator]]\nnames = ["Unsqueeze"]\noldest = 13\n'
    )
    assert CompatibilityChecker(files.load(model(text))).advise(*capped).standing is Support.NO


def test_an_initializer_before_the_inputs_is_taken_for_one() -> None:
    targets, source = targets_of(f"{RELEASE}inputs_first = true\n"), model(FLOAT)
    listed = onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [3])
    source.graph.input.append(listed)
    assert CompatibilityChecker(files.load(source)).advise(*targets).standing is Support.AS_IS
    source.graph.input.insert(0, source.graph.input.pop())
    advice = CompatibilityChecker(files.load(source)).advise(*targets)
    assert advice.standing is Support.AFTER
    assert [item.reason for item in advice.objections] == [
        "initializer 'w' is listed before the inputs, and chip takes it for one"
    ]
    result = default_pipeline(runtime=targets, simplify=False).run(files.load(source), ChangeLog())
    assert [value.name for value in result.model.proto.graph.input] == ["x"]
