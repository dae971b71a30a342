"""Sequences below 11 dissolved in the body that builds them; SequenceMap below 17; copies of sequences below 14."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down

EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


def text(nodes: str, result: str, constants: str = "", opset: int = 11) -> str:
    return f"""<ir_version: 7, opset_import: ["": {opset}]>
        graph (float[2, 3] a, float[2, 3] b, float[4, 3] c) => ({result}) <{constants}> {{ {nodes} }}"""


@pytest.mark.parametrize("position", [-3, -1, 0, 2])
def test_construct_and_at(position: int) -> None:
    nodes = "s = SequenceConstruct (a, b, c)  y = SequenceAt (s, p)"
    check_down(text(nodes, "float[] y", f"int64 p = {{{position}}}"), 10, 9, 7)


@pytest.mark.parametrize("position", [None, -3, -1, 0, 1, 3])
def test_insert_and_erase(position: int | None) -> None:
    place = "" if position is None else ", p"
    constants = f"int64 p = {{{position or 0}}}, int64 zero = {{0}}, int64 one = {{1}}"
    nodes = f"""s = SequenceConstruct (a, b, a)  t = SequenceInsert (s, c{place})  n = SequenceLength (t)
        x = SequenceAt (t, zero)  y = SequenceAt (t, one)"""
    check_down(text(nodes, "float[] x, float[] y, int64 n", constants), 10, 7)
    if position == 3:
        return
    nodes = f"""s = SequenceConstruct (a, b, c)  t = SequenceErase (s{place})  n = SequenceLength (t)
        x = SequenceAt (t, zero)  y = SequenceAt (t, one)"""
    check_down(text(nodes, "float[] x, float[] y, int64 n", constants), 10, 7)


def test_empty_and_concat() -> None:
    nodes = """e = SequenceEmpty ()  n = SequenceLength (e)  s = SequenceInsert (e, a)  t = SequenceInsert (s, c)
        y = ConcatFromSequence <axis = 0> (t)"""
    check_down(text(nodes, "float[] y, int64 n"), 10, 7)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("new", [0, 1])
def test_concat(axis: int, new: int) -> None:
    nodes = f"s = SequenceConstruct (a, b)  y = ConcatFromSequence <axis = {axis}, new_axis = {new}> (s)"
    refused = {"unranked": "needs-rank"} if axis < 0 else None
    check_down(text(nodes, "float[] y"), 10, 7, refused=refused)


@pytest.mark.parametrize(
    ("attributes", "lengths"),
    [("", ""), ("axis = 1", ""), ("keepdims = 0", ""), ("axis = -1, keepdims = 0", ""), ("", "int64 l = {3}"),
     ("", "int64 l = {2}"), ("axis = -1", "int64 l = {9}"), ("axis = 0", "int64[2] l = {1, 3}"),
     ("axis = 1", "int64[3] l = {1, 0, 2}")],
)  # fmt: skip
def test_split(attributes: str, lengths: str) -> None:
    given = "c, l" if lengths else "c"
    nodes = f"""s = SplitToSequence <{attributes}> ({given})  x = SequenceAt (s, first)  y = SequenceAt (s, last)
        n = SequenceLength (s)"""
    nodes = nodes.replace("<>", "")
    constants = "int64 first = {0}, int64 last = {-1}" + (f", {lengths}" if lengths else "")
    refused = {}
    if "[" not in lengths:
        refused = {"symbolic": "needs-shape", "unranked": "needs-rank"}
    elif "-" in attributes:
        refused = {"unranked": "needs-rank"}
    check_down(text(nodes, "float[] x, float[] y, int64 n", constants), 10, 7, refused=refused)


def test_a_sequence_read_in_a_branch() -> None:
    nodes = """s = SequenceConstruct (a, b)  y = If (on) <then_branch = g () => (float[2, 3] p) { p = SequenceAt (s, one) },
        else_branch = h () => (float[2, 3] q) { q = SequenceAt (s, zero) }>"""
    constants = "bool on = {1}, int64 zero = {0}, int64 one = {1}"
    check_down(text(nodes, "float[2, 3] y", constants), 10, 7)


def test_copies() -> None:
    nodes = "s = SequenceConstruct (a, b)  t = Identity (s)  y = SequenceAt (t, p)"
    check_down(text(nodes, "float[] y", "int64 p = {1}", 14), 13, 11, 10)
    source = """<ir_version: 8, opset_import: ["": 14]> graph (seq(float[2]) s) => (seq(float[2]) t) { t = Identity (s) }"""
    feeds = {"s": [np.ones(2, np.float32)]}
    check_down(
        source, 13, feeds=feeds, expected=[feeds["s"]], refused={"plain": "no-equal"}, variants=("plain",)  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "result", "code"),
    [
        ("t = SequenceConstruct (a, b)", "seq(float[2, 3]) t", "no-equal"),
        (
            "s = SequenceConstruct (a, b)  n = Size (a)  p = Sub (n, five)  y = SequenceAt (s, i)",
            "float[] y",
            "needs-constant",
        ),
    ],
)
def test_refusals(nodes: str, result: str, code: str) -> None:
    if "five" in nodes:
        nodes = nodes.replace(
            "n = Size (a)  p = Sub (n, five)", "n = NonZero (a)  f = Size (n)  i = Sub (f, f)"
        )
    check_down(text(nodes, result), 10, refused={"plain": code}, variants=("plain",))


def test_a_sequence_of_the_caller_is_refused() -> None:
    source = """<ir_version: 7, opset_import: ["": 11]> graph (seq(float[2]) s, int64 p) => (float[2] y)
        { y = SequenceAt (s, p) }"""
    feeds = {"s": [np.ones(2, np.float32)], "p": np.array(0)}
    check_down(source, 10, feeds=feeds, refused={"plain": "no-equal"}, variants=("plain",))  # type: ignore[arg-type]


MAP = """<ir_version: 8, opset_import: ["": 17]> graph (float[2, 3] x, float[2, 3] y, float[3] w) => (float[2, 3] z, int64 n) {
    s = SequenceConstruct (x, y)
    one = Constant <value_int = 1> ()
    t, u = SequenceMap <body = g (float[2, 3] x, float[3] v) => (float[2, 3] p, float[2, 3] q) {
        p = Add (x, v)  q = Mul (p, w)
    }> (s, w)
    n = SequenceLength (t)
    z = SequenceAt (u, one)
}"""


def test_map() -> None:
    """The body has an input of the name of a value around it, and reads another value from there."""
    check_down(MAP, 16, 13, variants=("plain", "symbolic", "unranked", "if"))
    for target in (12, 10):
        check_down(MAP, target, refused={"plain": "no-equal"}, variants=("plain",))


def test_map_of_two_sequences_and_types() -> None:
    source = """<ir_version: 8, opset_import: ["": 17]> graph (seq(float[n]) s, seq(int64[n]) k) => (seq(int64[m]) r) {
        r = SequenceMap <body = g (float[n] a, int64[n] b) => (int64[m] c) { h = Shape (a)  c = Concat <axis = 0> (h, b) }> (s, k)
    }"""
    feeds = {
        "s": [np.ones(2, np.float32), np.ones(3, np.float32)],
        "k": [np.array([7, 8]), np.array([9])],
    }
    check_down(source, 16, 15, 13, feeds=feeds, variants=("plain",))  # type: ignore[arg-type]
