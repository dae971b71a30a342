"""What the clean-up takes away, and that no number moves."""

from __future__ import annotations

import onnx
from onnx import helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model, random_feeds, run, same
from tests.steps import operators

TEXT = """17 (float[2,3] x) => (float[2,3] y) <float[1] w = {2.}, float[1] idle = {3.}> { a = Mul(x, w)
  dead = Neg(a)
  deader = Exp(dead)
  y = Relu(a)
}"""


def clean(source: onnx.ModelProto) -> tuple[onnx.ModelProto, set[str]]:
    log = ChangeLog()
    result = make_pass("cleanup").run(Model(model(source)), log)
    feeds = random_feeds(source)
    same(run(source, feeds), run(result.proto, feeds), "cleanup")
    return result.proto, {note.code for note in log.notes}


def test_what_no_output_depends_on_goes() -> None:
    result, codes = clean(model(TEXT))

    assert operators(result) == ["Mul", "Relu"]
    assert [tensor.name for tensor in result.graph.initializer] == ["w"]
    assert codes == {"dead-nodes", "dead-weights"}


def test_a_value_that_only_a_branch_reads_stays() -> None:
    source = model("""17 (float[2,3] x) => (float[2,3] y) <float[1] w = {2.}, bool c = {1}> { a = Neg(x)
  y = If (c) <then_branch = t () => (float[2,3] b) { b = Mul(a, w) }, else_branch = e () => (float[2,3] b) { b = Relu(a) }>
}""")

    result, codes = clean(source)

    assert len(result.graph.node) == 2
    assert len(result.graph.initializer) == 2
    assert codes == set()


def test_an_overridable_initializer_is_part_of_the_interface() -> None:
    source = model(TEXT)
    source.graph.input.append(helper.make_tensor_value_info("idle", 1, [1]))

    result, _ = clean(source)

    assert [tensor.name for tensor in result.graph.initializer] == ["w", "idle"]


def test_repeated_node_names_become_unique() -> None:
    source = model("17 (float[2,3] x) => (float[2,3] y) { a = Neg(x)  y = Relu(a) }")
    expected = run(source, random_feeds(source))
    for node in source.graph.node:
        node.name = "same"

    log = ChangeLog()
    result = make_pass("cleanup").run(Model(source), log).proto

    assert [node.name for node in result.graph.node] == ["same", "same_1"]
    same(expected, run(result, random_feeds(result)), "renamed")


def test_idle_value_info_goes() -> None:
    source = model("17 (float[2,3] x) => (float[2,3] y) { a = Neg(x)  y = Relu(a) }")
    info = source.graph.value_info
    info.append(helper.make_tensor_value_info("a", 1, [2, 3]))
    info.append(helper.make_tensor_value_info("a", 1, [2, 3]))
    info.append(helper.make_tensor_value_info("x", 1, [2, 3]))
    info.append(helper.make_tensor_value_info("gone", 1, [2, 3]))
    info.add(name="y")

    result, codes = clean(source)

    assert [value.name for value in result.graph.value_info] == ["a"]
    assert codes == {"value-info"}


def test_a_tidy_model_is_left_alone() -> None:
    source = model("17 (float[2,3] x) => (float[2,3] y) { a = Neg(x)  y = Relu(a) }")

    result, codes = clean(source)

    assert result == source
    assert codes == set()
