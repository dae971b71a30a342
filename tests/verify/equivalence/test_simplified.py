"""Simplification never makes a result worse than it is without (rule 8)."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.model.model import Segment
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify import Feed, Feeds, Settings, verify
from onnx_migrate.verify.equivalence.folded_constants import moved_constant
from onnx_migrate.verify.evaluators import UNOPTIMIZED, open_model
from tests.verify.harness import net, runnable

NOISY = "(float[50,40] x) => (float[50,40] y) { a = Mul(x, w) y = Sin(a) }"
"""Rounding of x moves y by a ten thousandth of its largest value."""


def judged(original, unsimplified, simplified, **fields):
    segment = Segment(original, simplified, unsimplified, **fields).map(runnable)
    return verify(segment, Settings(isolated=False))


def test_rounding_of_the_original_does_not_excuse_simplification():
    plain, moved = net(NOISY, w=1000.0), net(NOISY, w=1000.0001)
    assert judged(plain, None, moved).kind is Kind.VERIFIED, "within ten times the noise of the original"
    verdict = judged(plain, plain, moved)
    assert verdict.kind is Kind.DIFFERS
    assert verdict.reason.startswith("simplification changes output 'y': it differs by 0.0")
    assert verdict.reason.endswith("of its largest value, and by 0 % without simplification")


def test_simplification_may_move_by_what_the_result_without_it_differs():
    plain, moved = net(NOISY, w=1000.0), net(NOISY, w=1000.0001)
    other = NOISY.replace("Sin(a)", "Sin(b)").replace("y =", "b = Identity(a) y =")
    assert judged(plain, moved, net(other, w=1000.0001)).kind is Kind.VERIFIED


def test_a_coarser_type_that_the_user_asked_for_sets_the_limit():
    text = "(float[50,40] x) => (float[50,40] y) { h = Cast<to=10>(x) f = Cast<to=1>(h) a = Mul(f, w) y = Sin(a) }"
    plain, moved = net(text, w=1000.0), net(text, w=1000.0001)
    assert judged(plain, plain, moved, other_numbers=True).kind is Kind.VERIFIED
    assert judged(plain, plain, moved).kind is Kind.DIFFERS


HALF = """(float16[4,32] x) => (float16[4,32] y) {
    a = Constant<value = float16[32] {CONSTANT}>() y = Add(x, a) }"""
FOLDED = """(float16[4,32] x) => (float16[4,32] y) {
    c = Constant<value = float16[32] {CONSTANT}>() d = Add(c, c) a = Mul(d, d) y = Add(x, a) }"""


def test_a_folded_float16_constant_must_be_what_the_nodes_compute():
    numbers = np.random.default_rng(0).standard_normal(32).astype(np.float16)

    def with_constant(text, array):
        made = net(text.replace("float16[32] {CONSTANT}", "float16[1] {0}"))
        for node in made.graph.node:
            if node.op_type == "Constant":
                node.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(array))
        return made

    plain = with_constant(FOLDED, numbers)
    folded = (numbers + numbers) * (numbers + numbers)
    other = np.nextafter(folded, np.float16(0))
    assert moved_constant(runnable(plain), runnable(with_constant(HALF, folded))) == ""
    text = moved_constant(runnable(plain), runnable(with_constant(HALF, other)))
    assert text.startswith("simplification computes another constant: 'a' differs in 32 of 32 elements")
    assert moved_constant(runnable(plain), runnable(plain)) == "", "nothing is folded"


def test_values_of_float16_are_not_rounded_for_the_comparison():
    """ONNX Runtime keeps float32 between two float16 nodes, unless the value between them is an output."""
    text = """(float16[40,1] x) => (int64[40] y) {
        s = Sigmoid(x) r = ReduceSum<keepdims=0>(s, axis) y = Cast<to=7>(r) }"""
    plain = net(text, axis=np.array([1]))
    folded = net(text.replace("ReduceSum<keepdims=0>", "Squeeze"), axis=np.array([1]))
    feeds = Feeds((Feed("large", {"x": np.linspace(7.5, 9.5, 40, dtype=np.float16)[:, None]}),))
    segment = Segment(plain, folded, plain, exact=True).map(runnable)
    own = open_model(runnable(plain), UNOPTIMIZED).run(feeds.sets[0].inputs)["y"]
    other = open_model(runnable(folded), UNOPTIMIZED).run(feeds.sets[0].inputs)["y"]
    verdict = verify(segment, Settings(isolated=False, input_data=feeds))
    assert not np.array_equal(own, other)
    assert verdict.kind is Kind.DIFFERS
