"""Items of a batch: independent of each other, on whichever axis, in however many batches."""

from __future__ import annotations

from onnx_migrate.verify.dynamic.batch_items import require_independent_items
from onnx_migrate.verify.dynamic.sized_runs import SizedRunner
from onnx_migrate.verify.kernel import Tolerance
from tests.verify.harness import net, prove, runnable


def test_the_batch_may_be_another_axis_of_an_output():
    proof = prove("(float[N,4] x) => (float[4,N] y) { y = Transpose<perm=[1,0]>(x) }", {"N": 1})
    assert proof.holds, proof.reason


def test_an_output_that_does_not_depend_on_the_batch_is_noted():
    text = (
        "(float[N,4] x) => (float[N,4] y, float[2] p) <float[2] c = {1.0, 2.0}> { y = Relu(x) p = Relu(c) }"
    )
    proof = prove(text, {"N": 1})
    assert proof.holds, proof.reason
    assert proof.notes == ("output 'p' does not depend on inputs that have a batch axis",)


def test_an_item_that_differs_from_its_own_run_is_refused():
    proof = prove("(float[N,4] x) => (float[N,4] y) { y = Softmax<axis=0>(x) }", {"N": 1})
    assert "output 'y' differs between item 0 of a batch of 2 and a run of that item alone" in proof.reason


def test_a_mix_that_a_saturated_output_hides_is_refused_for_the_value_before_it():
    text = """(float[N,4] x) => (float[N,4] y) <float k = {0.01}, float b = {-40.}> {
        m = ReduceMean<axes=[0], keepdims=1>(x) l = Mul(m, k) a = Add(x, l) c = Add(a, b) y = Sigmoid(c) }"""
    assert "inner value 'c' differs between item" in prove(text, {"N": 1}).reason


def test_an_output_whose_shape_ignores_the_batch_is_refused():
    text = "(float[N,4] x) => (float[1,4] y) { y = ReduceSum<keepdims=1>(x, a) }"
    proof = prove(net(text, a=[0]), {"N": 1})
    assert "output 'y' has shape [1, 4] for every size of the batch" in proof.reason


def test_two_batches_may_have_different_sizes():
    both = "(float[N,4] x, float[M,4] z) => (float[N,M] y) { [keep] y = Gemm<transB=1>(x, z) }"
    proof = prove(both, {"N": 1, "M": 1}, ("N", "M"))
    assert proof.holds, proof.reason
    assert {"M": 2, "N": 3} in [dict(trial.sizes) for trial in proof.trials]
    one = prove(both.replace("M", "N"), {"N": 1})
    assert "combines every item of a batch with every other: its shape is [2, 2] for 2 items" in one.reason


def test_two_batches_that_must_be_equal_are_one():
    text = "(float[N,4] x, float[M,4] z) => (float[N,4] y) { y = Add(x, z) }"
    proof = prove(text, {"N": 1, "M": 1}, ("N", "M"))
    assert proof.holds, proof.reason
    assert proof.notes == ("M and N are one batch: the model runs only where they are equal",)
    assert not any(trial.problem for trial in proof.trials)


def test_a_batch_that_is_rounded_differently_for_its_size_is_no_mixture():
    """Integer inputs cannot be moved by a rounding error, so the noise of such a network must be seen otherwise."""
    of_the_size = "n = Shape<end=1>(x) m = Cast<to=1>(n) l = Sub(m, one) d = Mul(l, tiny) e = Mul(f, d)"
    of_others = "k = Constant<value_ints=[0]>() s = ReduceSum(f, k) e = Mul(s, tiny)"

    def holds(tiny: float, amplified: float, fault: str = of_the_size) -> bool:
        text = f"""(int64[N,4] x) => (float[N,4] y) {{ c = Cast<to=1>(x) z = Sub(v, w) r = Mul(z, far) f = Add(c, r)
          {fault} y = Add(f, e) }}"""
        weights = [1.0, 2.0, 3.0, 4.0]
        return prove(net(text, one=[1.0], tiny=[tiny], v=weights, w=weights, far=[amplified]), {"N": 1}).holds

    assert holds(1e-4, 1e3)
    assert not holds(1e-4, 1.0), "a unit in the last place of the weights moves it by far less"
    assert not holds(0.1, 1e3)
    assert not holds(1e-4, 1e3, of_others), "as small, but it comes of the other items"


def test_the_batch_axis_of_each_output_is_found():
    model = net("""(float[N,2] x, float[2] w) => (float[N,2] y, float[2,N] z, float[2] v) {
      y = Relu(x) z = Transpose(x) v = Neg(w) }""")
    runner = SizedRunner(runnable(model), {"N": 1}, {"N"}, Tolerance(), 0)
    assert [*require_independent_items(runner, frozenset({"N"}))] == [("y", 0, 1), ("z", 1, 1)]
    assert runner.notes == ["output 'v' does not depend on inputs that have a batch axis"]
