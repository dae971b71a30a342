"""The lowering: every body from its own opset, all refusals at once with the nearest opset, and in linear time."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.lower import Lower
from onnx_migrate.engine.steps.step import Step
from tests.harness import model, random_feeds, run, same_bits
from tests.steps import lower, refuses
from tests.support.replaced_steps import replace_steps_down

SOFTMAX = "13 (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"

TWO_RANKS = """13 (float[2,3,4] x, float[3,4] m) => (float[2,3,4] y, float[3,4] z) { y = local.Act(x)  z = local.Act(m) }
<domain: "local", opset_import: ["":13]> Act (a) => (b) { b = Softmax<axis=0>(a) }"""


def test_a_function_of_one_type_stays_a_function() -> None:
    source = model("""13 (float[2,3,4] x) => (float[2,3,4] y) { y = local.Act(x) }
<domain: "local", opset_import: ["":13]> Act (a) => (b) { b = Softmax<axis=1>(a) }""")
    feeds = random_feeds(source)

    result, _ = lower(source, 11)

    assert [entry.version for entry in result.functions[0].opset_import] == [11]
    same_bits(run(source, feeds), run(result, feeds), "function")


def test_a_function_that_is_called_with_two_ranks_is_inlined_where_a_step_needs_the_rank() -> None:
    source = model(TWO_RANKS)
    feeds = random_feeds(source)

    result, log = lower(source, 11)

    assert not result.functions
    assert [note.subject for note in log.notes if note.code == "inlined"] == ["local:Act"]
    same_bits(run(source, feeds), run(result, feeds), "inlined")


def test_bodies_of_sub_graphs_are_lowered() -> None:
    source = model("""13 (bool c, float[2,3,4] x) => (float[2,3,4] y) {
  y = If (c) < then_branch = t () => (float[2,3,4] a) { a = Softmax<axis=1>(x) },
               else_branch = e () => (float[2,3,4] b) { b = Softmax<axis=0>(x) } >
}""")
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)

    result, _ = lower(source, 11)

    for condition in (True, False):
        feeds = {"c": np.array(condition), "x": x}
        same_bits(run(source, feeds), run(result, feeds), str(condition))


def test_all_refusals_are_found_and_the_nearest_opset_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def patched(domain: str, operator: str, leaves: int, step: Step | None) -> Step | None:
        if step is not None and (operator, leaves) in {("Softmax", 13), ("Identity", 14)}:
            return replace(step, adapt=None, refusal=f"no {operator} here", hint="do without")
        return step

    replace_steps_down(monkeypatch, patched)
    source = model("15 (float[2,3] x) => (float[2,3] y) { a = Softmax(x) b = Identity(a) y = Softmax(b) }")

    error = refuses("no-equal", lower, source, 11)
    assert error.where is not None
    assert (error.where.operator, error.where.from_version, error.where.to_version) == ("Identity", 14, 11)
    assert str(error).endswith("no Identity here (refused, and 2 more nodes)")
    assert [one.text for one in error.advice] == ["do without", "opset 14 can be reached"]
    lower(source, 14)


def test_a_missing_step_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_steps_down(monkeypatch, lambda *_: None)

    refuses("no-adapter", lower, SOFTMAX, 12)


def test_a_node_older_than_its_opset_stays_as_it_is() -> None:
    source = model("17 (float[2,3] x) => (float[2,3] y) { y = Dropout<ratio=0.5>(x) }")

    result, _ = lower(source, 11)

    assert run(result, {"x": np.ones((2, 3), np.float32)})[0].tolist() == np.ones((2, 3)).tolist()


def test_the_same_bytes_each_time_and_nothing_to_do_the_second_time() -> None:
    once, _ = lower(TWO_RANKS, 11)
    again, _ = lower(TWO_RANKS, 11)
    twice, log = lower(once, 11)

    assert once.SerializeToString(deterministic=True) == again.SerializeToString(deterministic=True)
    assert twice.SerializeToString(deterministic=True) == once.SerializeToString(deterministic=True)
    assert not log.changes


@pytest.mark.long
def test_twice_as_many_nodes_take_about_twice_the_time() -> None:
    def chain(length: int) -> onnx.ModelProto:
        nodes = [helper.make_node("Identity", [f"v{i}"], [f"v{i + 1}"]) for i in range(length)]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("v0", f"v{length}")]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def seconds(length: int) -> float:
        source = chain(length)
        start = time.process_time()
        lower(source, 13)
        return time.process_time() - start

    seconds(100)
    small, large = min(seconds(1_000) for _ in range(3)), min(seconds(8_000) for _ in range(2))
    assert large < 8 * small * 3


def test_it_is_a_visitor_that_repeats() -> None:
    """Nodes that a step writes are lowered in turn."""
    assert Lower.repeats


@pytest.mark.parametrize(
    ("opset", "declared", "body", "named"),
    [
        (13, "int64[1] a", "y = Unsqueeze (x, a)", "a"),
        (13, "int64[2] a", "y, z = Split <axis = 1> (x, a)", "a"),
        (18, "int64[4] a", "y = Pad (x, a)", "a"),
        (13, "int64[1] a", "b = Identity (a)  y = Slice (x, b, e)", "b"),
    ],
)
def test_a_refusal_far_down_names_the_input_that_should_be_a_constant(
    opset: int, declared: str, body: str, named: str
) -> None:
    source = f"{opset} (float[2, N] x, {declared}) => (float[] y) <int64[1] e = {{9}}> {{ {body} }}"
    lower(source, 9)
    error = refuses("needs-constant", lower, source, 8)
    assert f"make {named!r} an initializer" in error.hint
    assert "opset 9 can be reached" in error.hint
