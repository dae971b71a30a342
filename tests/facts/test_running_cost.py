import onnx
import pytest

from onnx_migrate.facts.running_cost import why_not_run
from tests.campaigns.hostile import growth, sizes

GIGABYTE = 1 << 30


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (growth.doubled_tensors(), "'d27' takes 2,147,483,648 bytes"),
        (growth.doubled_shapes(), "'d27' takes 2,147,483,648 bytes"),
        (growth.loop_of_a_million_million_turns(), "'y' takes 1,000,000,000,000 turns"),
        (growth.loops_in_loops(), "takes 1,000,000,000 turns"),
        (growth.loop_without_an_end(), "has no end"),
        (sizes.constant_of_a_huge_shape(), "takes 4,000,000,000,000 bytes"),
    ],
)
def test_what_cannot_end_is_not_run(model: onnx.ModelProto, reason: str) -> None:
    assert reason in why_not_run(model, GIGABYTE)


@pytest.mark.parametrize(
    "text",
    [
        # The condition follows from the data.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y)
           <int64 m = {9223372036854775807}, bool c = {1}, float z = {9}> {
             y = Loop (m, c, x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) n = ReduceSum <keepdims = 0> (t) l = Less (n, z) }> }""",
        # The number of turns is small.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y) <int64 m = {1000}, bool c = {1}> {
             y = Loop (m, c, x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) l = Identity (k) }> }""",
        # The number of turns is the caller's.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x, int64 m) => (float[2] y) {
             y = Loop (m, , x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) l = Identity (k) }> }""",
        # A loop that is never entered.
        """<ir_version: 8, opset_import: ["": 16]> g (float[2] x) => (float[2] y) <int64 m = {1000000000000}, bool c = {0}> {
             y = Loop (m, c, x) <body = b (int64 i, bool k, float[2] s) => (bool l, float[2] t) {
               t = Add (s, s) l = Identity (k) }> }""",
    ],
)
def test_what_may_end_is_run(text: str) -> None:
    assert not why_not_run(onnx.parser.parse_model(text), GIGABYTE)


def test_memory_without_a_limit_counts_nothing() -> None:
    assert not why_not_run(growth.doubled_tensors(), None)


def with_outputs(count: int) -> onnx.ModelProto:
    """Each output has 100 MB."""
    names = [f"y{number}" for number in range(count)]
    outputs = ", ".join(f"float[25000000] {name}" for name in names)
    nodes = " ".join(f"{name} = Relu (x)" for name in names)
    text = f'<ir_version: 8, opset_import: ["": 16]> g (float[25000000] x) => ({outputs}) {{ {nodes} }}'
    return onnx.parser.parse_model(text)


def test_outputs_of_all_runs_must_fit_together() -> None:
    assert "its outputs take 300,000,000 bytes" in why_not_run(with_outputs(3), GIGABYTE)
    assert not why_not_run(with_outputs(2), GIGABYTE)
