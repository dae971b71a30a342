"""Loop and Scan: rounds of a known number are written out."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.errors import CannotMigrate
from tests.harness import model, random_feeds, run
from tests.support.plain_nodes import flattened, header, plain
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import RUNTIME

LOOP = """{ y, s = Loop (m, t, x) <body = b (int64 i, bool c, float[2,3] a) => (bool d, float[2,3] z, float[2,3] w) {
  f = Cast <to = 1> (i) k = Constant <value = float {2.0}> () e = Exp (x) p = Mul (f, e) z = Add (a, p) w = Mul (z, k)
  d = Identity (c) }> }"""


def looped(rounds: int) -> str:
    constants = f"int64 m = {{{rounds}}}, bool t = {{1}}"
    return header("float[2,3] x", "float[2,3] y, float[n,2,3] s", constants=constants) + LOOP


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_known_number_of_rounds(rounds: int) -> None:
    found = plain(looped(rounds))
    assert found["Add"] == rounds
    assert found["Exp"] == 1, "what does not change from round to round is computed once"


def test_a_counter_and_a_condition_of_one_axis() -> None:
    nodes = """{ y = Loop (m, t, x) <body = b (int64[1] i, bool[1] c, float[2] p) => (bool[1] d, float[2] q) {
      j = Squeeze <axes = [0]> (i) g = Gather (x, j) q = Add (p, g) d = Identity (c) }> }"""
    source = header("float[2] x", "float[2] y", 11, constants="int64 m = {2}, bool t = {1}") + nodes
    assert plain(source)["Add"] == 2


@skip_if(RUNTIME < (1, 22), "ONNX Runtime 1.21 crashes on a Loop that collects texts", Elsewhere.NEWEST)
def test_texts_of_a_counter_are_written_by_the_runtime() -> None:
    nodes = """{ s = Loop (m, t) <body = b (int64 i, bool c) => (bool d, string w) { w = Cast <to = 8> (i) d = Identity (c) }>
      y = Identity (x) }"""
    source = header("float[2] x", "string[k] s, float[2] y", constants="int64 m = {2}, bool t = {1}") + nodes
    assert plain(source)["Cast"] == 2


def test_no_round() -> None:
    assert set(plain(looped(0))) == {"Identity"}


def test_the_number_follows_from_fixed_dims_and_else_is_refused() -> None:
    nodes = LOOP.replace("{ y, s", "{ l = Shape (v) m = Squeeze (l) y, s", 1)
    source = (
        header("float[2,3] x, float[DIM] v", "float[2,3] y, float[n,2,3] s", constants="bool t = {1}") + nodes
    )
    assert plain(source.replace("DIM", "3"))["Add"] == 3
    with pytest.raises(CannotMigrate, match="number of its rounds, 'm', is computed at run time") as caught:
        flattened(source)
    assert "--fix-shape" in caught.value.hint


def test_a_condition_that_the_counter_decides() -> None:
    body = "b (int64 i, bool c, float[2] a) => (bool d, float[2] z) { z = Exp (a) d = Less (i, last) }"
    constants = "int64 m = {9223372036854775807}, bool t = {1}, int64 last = {3}"
    assert (
        plain(
            header("float[2] x", "float[2] y", constants=constants)
            + f"{{ y = Loop (m, t, x) <body = {body}> }}"
        )["Exp"]
        == 4
    )


def test_a_condition_of_data_is_refused() -> None:
    body = "b (int64 i, bool c, float a) => (bool d, float z) { z = Exp (a) d = Less (z, last) }"
    source = header("float x", "float y", constants="int64 m = {9}, bool t = {1}, float last = {3}")
    with pytest.raises(CannotMigrate, match="its condition after 1 round is computed at run time"):
        flattened(source + f"{{ y = Loop (m, t, x) <body = {body}> }}")


def test_more_nodes_than_the_limit_are_refused() -> None:
    with pytest.raises(CannotMigrate, match="more than 100 nodes") as caught:
        flattened(looped(40), nodes=100)
    assert caught.value.code == "unroll-limit"
    assert "--unroll-limit" in caught.value.hint


def test_a_branch_that_depends_on_the_round_and_a_loop_in_a_loop() -> None:
    inner = """w = Loop (two, t, z) <body = i (int64 j, bool ci, float[2] u) => (bool di, float[2] v) {
      g = Add (i, j) h = Cast <to = 1> (g) v = Mul (u, h) di = Identity (ci) }>"""
    body = f"""b (int64 i, bool c, float[2] a) => (bool d, float[2] w) {{ e = Equal (i, zero)
      z = If (e) <then_branch = p () => (float[2] q) {{ q = Exp (a) }}, else_branch = r () => (float[2] s) {{ s = Neg (a) }}>
      {inner} d = Identity (c) }}"""
    source = header(
        "float[2] x", "float[2] y", constants="int64 m = {3}, bool t = {1}, int64 zero = {0}, int64 two = {2}"
    )
    found = plain(source + f"{{ y = Loop (m, t, x) <body = {body}> }}")
    assert (found["Exp"], found["Neg"], found["Mul"]) == (1, 2, 6)


@pytest.mark.parametrize("attributes", ["", ", scan_input_directions = [1, 0], scan_output_directions = [1]",
                                        ", scan_input_axes = [1, 0], scan_output_axes = [-1]"])  # fmt: skip
def test_a_scan(attributes: str) -> None:
    shape = "float[2,4]" if "input_axes" in attributes else "float[4,2]"
    body = "b (float[2] a, float[2] u, float[2] v) => (float[2] z, float[2] w) { p = Mul (u, v) z = Add (a, p) w = Exp (z) }"
    source = header(f"float[2] s, {shape} x, float[4,2] k", "float[2] y, float[p,q] r")
    assert (
        plain(source + f"{{ y, r = Scan (s, x, k) <num_scan_inputs = 2{attributes}, body = {body}> }}")["Exp"]
        == 4
    )


def test_random_numbers_of_rounds_are_refused() -> None:
    body = """b (int64 i, bool c, float[2] a) => (bool d, float[2] z) {
      r = RandomNormalLike <seed = 1.0> (a) z = Add (a, r) d = Identity (c) }"""
    source = header("float[2] x", "float[2] y", constants="int64 m = {2}, bool t = {1}")
    with pytest.raises(CannotMigrate, match="other random numbers"):
        flattened(source + f"{{ y = Loop (m, t, x) <body = {body}> }}")


def test_a_function_with_a_loop_is_inlined() -> None:
    proto = model(
        header("float[2] x", "float[2] y", constants="int64 m = {2}, bool t = {1}") + "{ y = Neg (x) }"
    )
    body = helper.make_graph(
        [helper.make_node("Exp", ["a"], ["z"]), helper.make_node("Identity", ["c"], ["d"])],
        "b",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []),
         helper.make_tensor_value_info("a", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["n", "go", "v"], ["r"], body=body)
    imports = [helper.make_opsetid("", 17)]
    proto.functions.append(helper.make_function("own", "Turn", ["n", "go", "v"], ["r"], [loop], imports))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.graph.node[0].CopyFrom(helper.make_node("Turn", ["m", "t", "x"], ["y"], domain="own"))
    assert plain(proto)["Exp"] == 2


def test_weights_of_a_body_are_there_once_and_names_are_unique() -> None:
    weight = helper.make_node(
        "Constant", [], ["k"], value=onnx.numpy_helper.from_array(np.ones((64, 64), np.float32))
    )
    source = model(header("float[2,64] x", "float[2,64] y", constants="int64 m = {6}, bool t = {1}")
                   + "{ y = Loop (m, t, x) <body = b (int64 i, bool c, float[2,64] a) => (bool d, float[2,64] z)"
                   " { z = MatMul (a, k) d = Identity (c) }> }")  # fmt: skip
    source.graph.node[0].attribute[0].g.node.insert(0, weight)
    result, _ = flattened(source)
    assert sum(len(tensor.raw_data) > 1000 for tensor in result.graph.initializer) == 1
    names = [name for node in result.graph.node for name in (node.name, *node.output) if name]
    assert len(names) == len(set(names))
    feeds = random_feeds(source, 0)
    assert run(source, feeds)[0].tobytes() == run(result, feeds)[0].tobytes()


def test_the_cost_is_linear() -> None:
    def seconds(rounds: int) -> float:
        start = time.process_time()
        flattened(looped(rounds), nodes=10**6)
        return time.process_time() - start

    seconds(10)
    shorter, longer = (min(seconds(rounds) for _ in range(3)) for rounds in (100, 400))
    assert longer < 8 * shorter
