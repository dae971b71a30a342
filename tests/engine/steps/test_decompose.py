"""Operators that a target lacks are written with others, in a model and its bodies."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.engine.steps.decompose import Decompose
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from tests.fixtures.test_torch_exports import NAMES, case
from tests.harness import model, run
from tests.steps import check_written_out, write_out

NORM = """<ir_version: 8, opset_import: ["": %d]> g (float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y)
{ y = LayerNormalization <epsilon = 0.01> (x, s, b) }"""


@pytest.mark.parametrize("opset", [17, 18, 22])
def test_layer_normalization_keeps_the_opset(opset: int) -> None:
    result = check_written_out(NORM % opset, "LayerNormalization", rtol=1e-5, atol=2e-6)
    means = [node for node in result.graph.node if node.op_type == "ReduceMean"]
    assert [len(node.input) for node in means] == [2 if opset >= 18 else 1] * 2


@pytest.mark.parametrize(
    ("text", "operators", "tolerance"),
    [
        ('["": 20]> g (float[2,8] x) => (float[2,8] y) { y = Gelu (x) }', ["Gelu"], 1e-6),
        ('["": 20]> g (float[2,8] x) => (float[2,8] y) { y = Gelu (x) }', ["Gelu", "Erf"], 2e-6),
        ('["": 18]> g (float[2,8] x) => (float[2,8] y) { y = Mish (x) }', ["Mish"], 0.0),
        ('["": 18]> g (float[2,8] x) => (float[2,8] y) { y = Mish (x) }', ["Mish", "Softplus"], 1e-6),
        ('["": 22]> g (float[2,8] x) => (float[2,8] y) { y = HardSwish (x) }', ["HardSwish"], 0.0),
        ('["": 17]> g (float[2,8] x) => (float[2,8] y) { y = Celu (x) }', ["Celu"], 1e-6),
        ('["": 13]> g (float[2,3,4,4] x) => (float[2,3,4,4] y) { y = MeanVarianceNormalization (x) }',
         ["MeanVarianceNormalization"], 1e-5),
        ('["": 17]> g (float[3,4] x) => (float[3,4] y) { y = Trilu (x) }', ["Trilu"], 0.0),
        ('["": 17]> g (int64[3] x) => (float[3,5] y) <int64 d = {5}, float[2] v = {0.0, 1.0}> { y = OneHot (x, d, v) }',
         ["OneHot"], 0.0),
        ('["": 17]> g (float[2,3] x, float[3,4] z) => (float[2,4] y) { y = Einsum <equation = "ij,jk->ik"> (x, z) }',
         ["Einsum"], 1e-6),
        ('["": 17]> g (float[2,3] x, float[2,3] z) => (bool[2,3] y) { y = GreaterOrEqual (x, z) }', ["GreaterOrEqual"], 0.0),
        ('["": 18]> g (int32[2,3] x, int32[2,3] z) => (int32[2,3] y) { y = BitwiseAnd (x, z) }', ["BitwiseAnd"], 0.0),
        ('["": 17]> g (float[2,3] x, int64[2] z) => (int64[2,3] y) { y = CastLike (x, z) }', ["CastLike"], 0.0),
        ('["": 13]> g (float[2,3] x) => (bool[2,3] y) { y = IsNaN (x) }', ["IsNaN"], 0.0),
        ('["": 13]> g (float[2,3] x) => (bool[2,3] y) { y = IsInf (x) }', ["IsInf"], 0.0),
        ('["": 13]> g (int32[2,3] x) => (int32[2,3] y) <int32 z = {4}> { y = Mod (x, z) }', ["Mod"], 0.0),
    ],
)  # fmt: skip
def test_operators_that_newer_opsets_have(text: str, operators: list[str], tolerance: float) -> None:
    refused = {"unranked": "needs-rank"} if operators[0] == "OneHot" else None
    check_written_out(
        f"<ir_version: 8, opset_import: {text}",
        *operators,
        variants=["plain", "symbolic", "unranked", "if", "function"]
        if operators[0] != "Trilu"
        else ["plain", "if"],
        refused=refused,
        rtol=tolerance,
        atol=tolerance,
    )


def test_a_change_says_what_was_lacking_and_how_exact_the_rest_is() -> None:
    _, log, _ = write_out(NORM % 17, {"LayerNormalization"})
    (change,) = log.changes
    assert change.reason == (
        "T has no LayerNormalization: the mean is subtracted, the rest divided by its standard deviation, scaled and shifted"
    )
    assert change.exactness is Exactness.EQUIVALENT
    assert change.operators == "LayerNormalization-17 → ReduceMean + Sub + Pow + Add + Sqrt + Div + Mul"
    assert change.after is None
    assert (change.helpers[-1].op_type, change.helpers[-1].output) == ("Add", ["y"])
    assert (change.where.operator, change.where.from_version, change.where.to_version) == (
        "LayerNormalization",
        17,
        None,
    )


def test_a_refusal_names_the_node_and_says_why() -> None:
    text = """17 (bool c, float[1,3,4,4] x) => (float[a,b,d,e] y) {
        y = If <then_branch = t () => (float[a,b,d,e] p) { p = Conv <kernel_shape = [1, 1]> (x, w) },
                else_branch = e () => (float[a,b,d,e] q) { q = Identity (x) }> (c) }"""
    _, _, (error,) = write_out(text.replace("(x, w)", "(x, x)"), {"Conv"})
    assert error.code == "target-lacks"
    assert str(error) == (
        "'p' (Conv-11) in graph/y:then_branch: T has no Conv, and onnx-migrate cannot write it with other operators"
    )


def test_a_refusal_of_what_would_be_written_names_both() -> None:
    _, _, (error,) = write_out(NORM % 17, {"LayerNormalization", "ReduceMean", "ReduceSum"})
    assert error.where is not None
    assert error.where.operator == "LayerNormalization"
    assert "T has no LayerNormalization" in str(error)
    assert "ReduceSum" in str(error)


def test_an_operator_that_the_lift_brings_back_is_refused() -> None:
    text = """13 (float[1,2,3,4] x) => (float[1,2,6,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
        y = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (x, , s) }"""
    _, _, (error,) = write_out(text, {"Resize"})
    assert "its decomposition writes Resize again" in str(error)


def test_a_second_run_changes_nothing() -> None:
    first, _, _ = write_out(NORM % 18, {"LayerNormalization"})
    second, log, _ = write_out(first, {"LayerNormalization"})
    assert second == first
    assert not log.changes


def test_the_bytes_are_the_same_every_time() -> None:
    results = [write_out(NORM % 18, {"LayerNormalization"})[0].SerializeToString() for _ in range(2)]
    assert results[0] == results[1]


def test_each_body_keeps_its_opset() -> None:
    result, _, _ = write_out(NORM % 18, {"LayerNormalization"})
    assert [item.version for item in result.opset_import] == [18]
    assert Decompose.repeats


def test_a_function_is_inlined_where_its_body_needs_its_callers() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 17, "own": 1]>
    g (float[2,3] x) => (float[2,3] y) { y = own.norm <p = 0.3> (x) }
    <opset_import: ["": 17], domain: "own"> norm <p> (v) => (w) { w = ThresholdedRelu <alpha: float = @p> (v) }""")
    result, log, refused = write_out(source, {"ThresholdedRelu"})
    assert not refused
    assert not result.functions
    assert "inlined" in [note.code for note in log.notes]
    x = np.array([[0.1, 0.3, 0.5], [-1, 2, 0]], np.float32)
    from tests.harness import run

    np.testing.assert_array_equal(run(result, {"x": x})[0], np.where(x > np.float32(0.3), x, 0))


def test_linear_in_nodes() -> None:
    body = " ".join(f"v{at + 1} = HardSwish (v{at})" for at in range(400))
    text = f"17 (float[2] v0) => (float[2] v400) {{ {body} }}"
    result, log, _ = write_out(text, {"HardSwish"})
    assert len(log.changes) == 400
    assert len(list(all_nodes(result))) == 800


LATER_THAN_TENSORRT_8 = {
    "LayerNormalization", "GroupNormalization", "Gelu", "Mish", "HardSwish", "Hardmax", "CastLike", "Trilu", "OneHot", "Mod",
    "IsInf", "IsNaN", "RMSNormalization", "Attention", "Swish", "RotaryEmbedding", "BitwiseAnd", "Celu", "GreaterOrEqual",
}  # fmt: skip


def test_nothing_lacking_nothing_changed() -> None:
    proto = model("17 (float[2] x) => (float[2] y) { y = Relu (x) }")
    before, log = proto.SerializeToString(), ChangeLog()
    result = decompose_model(Model(proto), lambda node, scope: None, log, "fit")
    assert result.model.proto.SerializeToString() == before
    assert not result.refusals
    assert not log.changes
    assert not log.notes


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("name", NAMES)
def test_exports_of_pytorch(name: str, opset: int) -> None:
    import numpy as np

    from tests.harness import require_opset

    require_opset(opset)
    source, inputs, expected = case(name, opset)
    result, _, refused = write_out(source, LATER_THAN_TENSORRT_8)
    assert not refused
    assert not {node.op_type for node in all_nodes(result)} & LATER_THAN_TENSORRT_8
    onnx.checker.check_model(result, full_check=True)
    for theirs, ours in zip(expected, run(result, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
