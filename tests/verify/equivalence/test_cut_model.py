"""A model cut at values computes each from the given ones, and only what is wanted."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify.equivalence.cut_model import CutModel, Reads
from tests.verify.harness import net, runnable

CHAIN = (
    "(float[2] x) => (float[2] y) { a = Abs(x) i = Cast<to=7>(a) b = Cast<to=1>(i) c = Add(b, a) y = Neg(c) }"
)
BRANCH = """(float[2] x, bool b) => (float[2] y) { a = Abs(x)
    y = If (b) <then_branch = t () => (float[2] p) { p = Neg(a) }, else_branch = e () => (float[2] q) { q = Exp(a) }> }"""


def test_each_wanted_value_is_computed_from_the_given_values_of_others():
    given = {"a": np.float32([10, 20]), "c": np.float32([5, 6])}
    found = CutModel(runnable(CHAIN), given, ["c"]).run({**given, "x": np.float32([1, 1])})
    assert set(found) == {"c"}
    assert np.array_equal(found["c"], [20, 40]), "from the given a, not from x"


def test_what_a_branch_reads_is_given_too():
    given = {"a": np.float32([3, 4]), "y": np.float32([0, 0])}
    found = CutModel(runnable(BRANCH), given, ["y"]).run({**given, "b": np.array(True)})
    assert np.array_equal(found["y"], [-3, -4])


def test_nothing_wanted_is_nothing_run():
    assert CutModel(runnable(CHAIN), {}, []).run({}) == {}


def test_the_cuts_that_a_value_is_computed_from_are_found_past_others():
    reads = Reads(net(CHAIN), ["a", "c", "y"])
    assert list(reads.by(["c"])) == ["a"]
    assert set(reads.all_by(["c"])) == {"a", "b", "i"}
