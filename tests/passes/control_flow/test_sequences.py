"""Sequences and optionals become Split, Concat and plain values."""

from __future__ import annotations

import numpy as np
import pytest

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.harness import model, random_feeds, run
from tests.support.plain_nodes import flattened, header, plain

PARTS = "s = SplitToSequence <axis = 1> (x, lengths)"
CONSTANTS = "int64[3] lengths = {1, 2, 3}, int64 last = {-1}, int64 one = {1}, bool t = {1}"


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_parts_are_taken_joined_and_counted(opset: int) -> None:
    nodes = f"""{{ {PARTS} a = SequenceAt (s, last) b = SequenceAt (s, one) u = SequenceInsert (s, a) v = SequenceErase (u, one)
      n = SequenceLength (v) y = ConcatFromSequence <axis = -1> (v) z = Concat <axis = 1> (b, a) }}"""
    found = plain(header("float[4,6] x", "float[4,m] y, float[4,5] z, int64 n", opset, CONSTANTS) + nodes)
    assert (found["Split"], found["Concat"]) == (1, 2)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_parts_of_one_and_of_a_step(keepdims: int) -> None:
    one = f"s = SplitToSequence <axis = 0, keepdims = {keepdims}> (x) y = SequenceAt (s, one)"
    assert (
        plain(header("float[3,2] x", f"float[{'p,' * keepdims}q] y", constants=CONSTANTS) + f"{{ {one} }}")[
            "Split"
        ]
        == 1
    )
    step = "s = SplitToSequence <axis = 0> (x, one) y = ConcatFromSequence <axis = 0, new_axis = 1> (s)"
    plain(header("float[3,2] x", "float[p,q,r] y", constants=CONSTANTS) + f"{{ {step} }}")


@pytest.mark.parametrize("parts", ["a", "a, b", "b, a, b"])
def test_tensors_are_joined(parts: str) -> None:
    nodes = f"{{ s = SequenceConstruct ({parts}) y = ConcatFromSequence <axis = 1> (s) }}"
    plain(header("float[2,1] a, float[2,3] b", "float[2,n] y") + nodes)


@pytest.mark.parametrize("opset", [10, 11, 18])
def test_unbind_as_pytorch_writes_it(opset: int) -> None:
    """A length of 1 beside keepdims = 0: the standard ignores the one then, and kernels do not."""
    nodes = "{ s = SplitToSequence <axis = 0, keepdims = 0> (x, one) a = SequenceAt (s, last) y = Neg (a) }"
    source = header("float[3,2] x", "float[p] y", 11 if opset < 11 else opset, constants=CONSTANTS) + nodes
    if opset >= 11:
        assert plain(source)["Split"] == 1
        return
    lowered = onnx_migrate.migrate(model(source), opset=opset).model
    feeds = random_feeds(model(source), 0)
    assert run(lowered, feeds)[0].tobytes() == run(model(source), feeds)[0].tobytes()


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_position_of_data_gathers(place: int) -> None:
    nodes = "{ s = SequenceConstruct (x, w) y = SequenceAt (s, i) }"
    feeds = {name: np.full((2, 3), at, np.float32) for at, name in enumerate("xw")} | {"i": np.array(place)}
    assert plain(header("float[2,3] x, float[2,3] w, int64 i", "float[2,3] y") + nodes, feeds)["Gather"] == 1


def test_a_sequence_that_a_loop_carries() -> None:
    nodes = """{ e = SequenceEmpty <dtype = 1> ()
      r = Loop (m, t, e) <body = b (int64 i, bool c, seq(float[2]) q) => (bool d, seq(float[2]) p) {
        a = Gather (x, i) z = Exp (a) p = SequenceInsert (q, z) d = Identity (c) }>
      y = ConcatFromSequence <axis = 0, new_axis = 1> (r) n = SequenceLength (r) }"""
    assert (
        plain(
            header("float[3,2] x", "float[p,q] y, int64 n", constants=f"{CONSTANTS}, int64 m = {{3}}") + nodes
        )["Exp"]
        == 3
    )


def test_a_value_that_a_loop_gives_out_and_puts_into_a_sequence() -> None:
    nodes = """{ e = SequenceEmpty <dtype = 1> ()
      v, r = Loop (m, t, x, e) <body = b (int64 i, bool c, float[2] a, seq(float[2]) q) => (bool d, float[2] z, seq(float[2]) p) {
        z = Exp (a) p = SequenceInsert (q, z) d = Identity (c) }>
      y = ConcatFromSequence <axis = 0> (r) }"""
    plain(header("float[2] x", "float[p] y, float[2] v", constants=f"{CONSTANTS}, int64 m = {{3}}") + nodes)


def test_a_sequence_map() -> None:
    nodes = f"""{{ {PARTS} r = SequenceMap (s, w) <body = b (float[4,k] a, float[1] f) => (float[4,k] z) {{ z = Mul (a, f) }}>
      y = ConcatFromSequence <axis = 1> (r) }}"""
    assert plain(header("float[4,6] x, float[1] w", "float[p,q] y", 17, CONSTANTS) + nodes)["Mul"] == 3


@pytest.mark.parametrize("truth", [True, False])
def test_branches_that_give_sequences(truth: bool) -> None:
    branch = "{name} = SequenceConstruct ({a}, {b})"
    then, other = branch.format(name="p", a="x", b="w"), branch.format(name="q", a="w", b="x")
    nodes = f"""{{ s = If (c) <then_branch = t () => (seq(float[2]) p) {{ {then} }},
      else_branch = e () => (seq(float[2]) q) {{ {other} }}> y = SequenceAt (s, one) }}"""
    feeds = {"x": np.ones(2, np.float32), "w": np.zeros(2, np.float32), "c": np.array(truth)}
    plain(header("float[2] x, float[2] w, bool c", "float[p] y", constants=CONSTANTS) + nodes, feeds)


def test_optionals() -> None:
    nodes = "{ o = Optional (x) h = OptionalHasElement (o) e = OptionalGetElement (o) y = Exp (e) }"
    assert plain(header("float[2] x", "float[2] y, bool h", 18) + nodes)["Exp"] == 1


@pytest.mark.parametrize(
    ("inputs", "outputs", "nodes", "reason"),
    [
        ("seq(float[2]) s", "float[2] y", "y = SequenceAt (s, one)", "not known which tensors it holds"),
        ("float[4,6] x", "seq(float) s", PARTS, "output 's' of the model is a sequence"),
        ("seq(float[2]) s", "seq(float[2]) y", "y = OptionalGetElement (s)", "output 'y' of the model is a sequence"),
        ("float[4,N] x", "int64 n", "s = SplitToSequence <axis = 1> (x, one) n = SequenceLength (s)", "size of axis 1"),
        ("float[4,6] x, int64 i", "y", f"{PARTS} y = SequenceAt (s, i)", "not known to be of one shape"),
        ("float[4,6] x, int64 i", "int64 n", f"{PARTS} u = SequenceErase (s, i) n = SequenceLength (u)", "position is computed"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(inputs: str, outputs: str, nodes: str, reason: str) -> None:
    with pytest.raises(CannotMigrate, match=reason) as caught:
        flattened(header(inputs, outputs, 18, CONSTANTS) + f"{{ {nodes} }}")
    assert caught.value.code == "sequences"
