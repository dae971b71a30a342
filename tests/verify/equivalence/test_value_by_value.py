"""A difference in bits is told from a fault, value by value, and by constants and attributes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.verdicts import FirstDifference, Kind
from onnx_migrate.verify import Settings
from onnx_migrate.verify.equivalence import segment_check, value_by_value
from onnx_migrate.verify.equivalence.inner_values import CutModel
from onnx_migrate.verify.equivalence.value_by_value import (
    NodeSettings,
    first_difference,
    first_value,
)
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from tests.harness import model
from tests.verify.harness import ULP, check, mutated, net, runnable


def quantised(opset, *, scale=0.02, zero=-100):
    """AveragePools between QuantizeLinears: ONNX Runtime adds in another order from opset 19 on."""
    rng = np.random.default_rng(3)
    text = "(float[1,1,49,10] x) => (float[1,16,A,B] y) { c = Conv<pads=[1,1,1,1]>(x, w) v0 = Relu(c)\n"
    for k in range(3):
        text += f"q{k} = QuantizeLinear(v{k}, s, z) d{k} = DequantizeLinear(q{k}, s, z)\n"
        text += f"v{k + 1} = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(d{k})\n"
    model = net(text + "q = QuantizeLinear(v3, s, z) y = DequantizeLinear(q, s, z) }", opset=opset)
    weights = rng.standard_normal((16, 1, 3, 3)).astype(np.float32)
    for name, value in (("w", weights), ("s", np.float32(scale)), ("z", np.int8(zero))):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


@pytest.mark.usefixtures("without_corners")
def test_single_steps_behind_another_order_of_addition_are_rounding():
    before, after = quantised(18), quantised(19)
    found = check(before, after, Kind.VERIFIED, exact=after)
    assert (found.exact, found.own_rounding, found.grade) == (False, True, "within-rounding")
    assert any("the runtime's own rounding" in note for note in found.notes)
    check(before, after, Kind.DIFFERS, "bit-identity is required", exact=after, strict=True)
    lifted = check(before, after, Kind.VERIFIED, unsimplified=after)
    assert (lifted.exact, lifted.own_rounding) == (None, True)


@pytest.mark.parametrize("change", [{"scale": 0.0201}, {"zero": -101}])
def test_a_moved_scale_or_zero_point_is_no_rounding(change):
    other = quantised(19, **change)
    check(quantised(18), other, Kind.DIFFERS, exact=other)
    check(quantised(18), other, Kind.DIFFERS, unsimplified=other)


def test_constants_that_were_listed_as_inputs_are_packed_once_they_are_not():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((2048, 255)).astype(np.float32)
    before = net("(float[1,2048] x) => (float[1,255] y) { y = Gemm(x, w, b) }", ir=6, w=w, b=np.ones(255))
    after = mutated(before)
    for tensor in before.graph.initializer:
        listed = helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.dims)
        before.graph.input.append(listed)
    assert check(before, after, Kind.VERIFIED, exact=after, strict=True).grade == "bit-identical"


def half_net(clip):
    """A float16 net; ONNX Runtime casts to float32 and back, and joins casts where it can."""
    rng = np.random.default_rng(0)
    text = "(float16[1,3,32,32] x) => (float16[1,8,32,32] y) { c = Conv<pads=[1,1,1,1]>(x, w)\n"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g {text} r = {clip} m = Mul(r, c) y = Conv<pads=[1,1,1,1]>(m, v) }}'
    )
    for name, shape in (("w", (8, 3, 3, 3)), ("v", (8, 8, 3, 3))):
        values = (rng.standard_normal(shape) * 0.3).astype(np.float16)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


def test_casts_that_are_joined_in_another_way_are_rounding():
    """Relu and Max(x, 0) are the same; one is computed in float16, the other between casts."""
    before, after = half_net("Relu(c)"), half_net("LeakyRelu<alpha=0.0>(c)")
    found = check(before, after, Kind.VERIFIED, exact=after)
    assert found.grade in ("bit-identical", "within-rounding")
    wrong = half_net("LeakyRelu<alpha=0.001>(c)")
    check(before, wrong, Kind.DIFFERS, exact=wrong)


@pytest.mark.parametrize(("factor", "found"), [(1.0, False), (1.002, True)])
def test_what_is_cast_from_float16_may_not_have_been_rounded_to_it(factor, found):
    """ONNX Runtime computes the second Sqrt in float32, and casts its result neither to float16 nor back."""
    values = np.linspace(0.1, 3, 64).astype(np.float16)
    model = "(float16[64] x) => (float[64] y) {{ {} y = Cast<to=1>(h) }}"
    rounded = net(model.format("c = Cast<to=1>(x) s = Sqrt(c) h = Cast<to=10>(s)"))
    other = "a = Sqrt(x) h = Mul(a, k)" if found else "g = Sqrt(x)"
    plain = net(model.format(other).replace("(h)", "(h)" if found else "(g)"))
    if found:
        plain.graph.initializer.append(numpy_helper.from_array(np.float16(factor), "k"))
    problem = first_difference(runnable(rounded), runnable(plain), [{"x": values}], claimed=True).problem
    assert bool(problem) is found


NORM = """(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Conv(x, w) n = BatchNormalization<epsilon=0.00001>(a, g, b, m, v)
    e = Exp(n) t = Mul(e, e) y = Tanh(t) }"""


def norm(text=NORM, **changed):
    rng = np.random.default_rng(0)
    tensors = {"w": rng.standard_normal((4, 4, 1, 1)), "g": np.ones(4), "b": np.zeros(4), "m": np.zeros(4)}
    return net(text, **(tensors | {"v": np.full(4, 0.5)} | changed))


def test_without_a_claim_a_fault_below_the_noise_of_the_outputs_is_found_at_its_node():
    before, after = norm(), norm(NORM.replace("0.00001", "0.00002"))
    found = check(before, after, Kind.DIFFERS, by_value=True)
    assert found.grade == "differs"


@pytest.mark.usefixtures("without_corners")
def test_without_a_claim_a_fault_that_no_output_shows_is_found_too():
    text = "(float[N,4] x) => (float[N,4] y) { p = Mul(x, w) d = Sub(p, far) r = Relu(d) y = Add(r, x) }"
    far = {"far": [1e6, 0, 0, 0]}
    before, after = net(text, w=[1.0, 2, 3, 4], **far), net(text, w=[9.0, 2, 3, 4], **far)
    check(before, after, Kind.VERIFIED)
    check(before, after, Kind.DIFFERS, "computes another 'p'", by_value=True)
    assert check(before, before, Kind.VERIFIED, by_value=True).exact is None


def test_an_epsilon_that_changes_as_little_as_rounding_is_refused_where_bits_are_claimed():
    large = {"v": np.full(4, 10.0)}
    before, after = norm(**large), norm(NORM.replace("0.00001", "0.00002"), **large)
    check(before, after, Kind.DIFFERS, "the attribute 'epsilon' is 2e-05, not 1e-05", exact=after)


def test_models_with_other_names_are_not_compared_value_by_value():
    renamed = NORM.replace("e = Exp(n) t = Mul(e, e)", "f = Exp(n) t = Mul(f, f)")
    check(norm(), norm(renamed), Kind.VERIFIED, by_value=True)


def test_a_model_that_cannot_be_cut_is_refused_with_the_cause(monkeypatch):
    def fail(*_args, **_options):
        raise EvaluationError("no such type")

    monkeypatch.setattr(value_by_value, "first_difference", fail)
    monkeypatch.setattr(segment_check, "first_difference", fail)
    after = norm(b=np.full(4, 1e-7))
    check(norm(), after, Kind.DIFFERS, "cannot be compared value by value: no such type", exact=after)
    assert "not compared value by value" in check(norm(), after, Kind.VERIFIED, by_value=True).notes[-1]


def scaled_tanh(*, inner=1.0, outer=1.0):
    """A Tanh of `inner` times the input, times `outer`; without a Mul before the Tanh where `inner` is 1."""
    read, first = ("x", "") if inner == 1 else ("a", "a = Mul(x, s)")
    tensors = {"w": np.float32(outer)} | ({} if inner == 1 else {"s": np.float32(inner)})
    return net(f"(float[64] x) => (float[64] y) {{ {first} t = Tanh({read}) y = Mul(t, w) }}", **tensors)


@pytest.mark.usefixtures("without_corners")
def test_an_operator_that_has_a_kernel_in_one_model_alone_is_held_to_the_tolerance(monkeypatch):
    before, after = scaled_tanh(), scaled_tanh(inner=1 + 2e-6)
    check(before, after, Kind.DIFFERS, ("bit-identity is required", "Tanh"), exact=after)

    monkeypatch.setattr(
        value_by_value, "computed_by_body", lambda model: {"Tanh"} if len(model.graph.node) == 3 else set()
    )
    found = check(before, after, Kind.VERIFIED, exact=after)
    assert (found.exact, found.own_rounding, found.grade) == (False, True, "within-rounding")
    assert any("has a kernel for Tanh at one of the opsets" in note for note in found.notes)

    other = scaled_tanh(inner=1 + 2e-6, outer=1 + 2.5e-7)  # a node that both compute by the same kernel
    check(before, other, Kind.DIFFERS, ("bit-identity is required", "'w'"), exact=other)
    other = scaled_tanh(inner=1.01)  # more than the tolerance of outputs
    check(before, other, Kind.DIFFERS, "output 'y'", exact=other)


STEPS = "(float[N,4] x) => (float[N,4] y) { a = Mul(x, w) b = Exp(a) c = Add(b, k) d = Relu(c) y = Tanh(d) }"
W, K = np.float32([1, 2, -1, 0.5]), np.float32([-2, -1, 0, 1])
FEED = {"x": np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)}


def difference(before, after, *, claimed=True):
    return first_difference(before, after, [FEED], claimed=claimed).problem


def test_the_node_that_computes_something_else_is_named():
    other = STEPS.replace("c = Add", "c = Sub")
    found = difference(runnable(STEPS, w=W, k=K), runnable(other, w=W, k=K))
    assert found.startswith("from the same inputs Sub 'c' computes another 'c': ")


def test_rounding_is_no_difference_unless_a_constant_has_changed():
    before, after = runnable(STEPS, w=W, k=K), runnable(STEPS, w=W * np.float32(1 + ULP), k=K)
    assert difference(before, after, claimed=False) == ""
    assert "the constant 'w' differs" in difference(before, after)
    assert "'a'" in difference(before, runnable(STEPS, w=W * np.float32(1.0001), k=K), claimed=False)


@pytest.mark.parametrize("memory", [1, 1 << 29])
def test_in_one_run_and_in_many_the_same_is_found(memory, monkeypatch):
    monkeypatch.setattr(value_by_value, "_MEMORY", memory)
    before = runnable(STEPS, w=W, k=K)
    assert difference(before, before) == ""
    assert "'d'" in difference(before, runnable(STEPS.replace("Relu", "Abs"), w=W, k=K))


def test_in_many_runs_no_node_is_run_twice_by_a_model(monkeypatch):
    """Three models run each part: the original, to know its values, and both models cut at them."""
    built, make = [], CutModel.__init__
    monkeypatch.setattr(
        CutModel, "__init__", lambda *args: (built.append((args[2], args[3])), make(*args))[1]
    )
    monkeypatch.setattr(value_by_value, "_MEMORY", 1)
    before = runnable(STEPS, w=W, k=K)
    assert difference(before, before) == ""
    assert [wanted for _, wanted in built[::3]] == [["a"], ["b"], ["c"], ["d"], ["y"]]
    assert [sorted(given) for given, _ in built[::3]] == [[], ["a"], ["b"], ["c"], ["d"]]


def test_values_without_a_counterpart_are_passed_over():
    other = STEPS.replace("b = Exp(a) c = Add(b, k)", "e = Neg(a) f = Neg(e) g = Exp(f) c = Add(k, g)")
    assert difference(runnable(STEPS, w=W, k=K), runnable(other, w=W, k=K)) == ""


def test_random_operators_cannot_be_compared():
    noisy = runnable("(float[4] x) => (float[4] y) { r = RandomNormalLike (x) y = Add (x, r) }")
    assert "random" in first_difference(noisy, noisy, [{"x": np.ones(4, np.float32)}], claimed=True).problem


def test_a_name_that_stands_for_another_value_is_no_difference_without_a_claim():
    one = runnable("(float[N,4] x) => (float[N,4] y) { a = Add(x, x) y = Relu(a) }")
    other = "(float[N,4] x) => (float[N,4] y) { a = Relu(x) y = Add(a, a) }"
    assert difference(one, runnable(other), claimed=False) == ""
    assert "'a'" in difference(one, runnable(other))
    wrong = runnable(other.replace("Add(a, a)", "Sum(a, a, a)"))
    assert "Sum 'y' computes another 'y'" in difference(one, wrong, claimed=False)


TEXT = """<ir_version: 8, opset_import: ["":17]> g (float[2,8] x) => (float[2,8] y) {
  [one] a = Sin(x)  [two] b = Cos(a)  [three] d = Neg(b)  [four] y = Tanh(d)
}"""


def loaded(text: str) -> Runnable:
    return Runnable(structure=model(text).SerializeToString())


def test_the_first_of_two_faults_is_named() -> None:
    wrong = loaded(TEXT.replace("Cos(a)", "Sin(a)").replace("Tanh", "Sigmoid"))
    found = first_value(loaded(TEXT), wrong, Settings())

    assert (found.node, found.operator, found.value) == ("two", "Sin", "b")
    assert "Sin 'two' computes another 'b'" in found.problem


def test_equal_models_and_models_that_do_not_run_have_none() -> None:
    assert first_value(loaded(TEXT), loaded(TEXT), Settings()) == FirstDifference(())
    broken = TEXT.replace("Tanh", "com.nowhere.Tanh").replace('"":17', '"":17, "com.nowhere":1')
    assert first_value(loaded(broken), loaded(TEXT), Settings()) == FirstDifference(())


INSTANCE = "(float[1,2,4] x) => (float[1,2,4] y) { y = InstanceNormalization (x, g, b) }"
ONE, ZERO = [1.0, 1.0], [0.0, 0.0]


def setting(before, after, read=("x", "g", "b")):
    return NodeSettings(before, after).difference("y", read)


def test_a_constant_that_differs_in_a_bit_is_named():
    before = net(INSTANCE, g=ONE, b=ZERO)
    assert setting(before, before) == ""
    moved = net(INSTANCE, g=[1.0, 1 + ULP], b=ZERO)
    assert "the constant 'g' differs" in setting(before, moved)
    assert setting(before, moved, read=["x"]) == "", "it is not read"


@pytest.mark.parametrize(("epsilon", "found"), [("0.00001", False), ("0.0001", True)])
def test_an_attribute_is_compared_with_the_default(epsilon, found):
    given = net(INSTANCE.replace(" (x", f"<epsilon={epsilon}> (x"), g=ONE, b=ZERO)
    assert ("the attribute 'epsilon' is" in setting(net(INSTANCE, g=ONE, b=ZERO), given)) is found


def test_attributes_of_another_operator_are_not_compared():
    one = "(float[2] x) => (float[2] y) { y = Elu<alpha=0.5> (x) }"
    assert setting(net(one), net(one.replace("Elu", "LeakyRelu").replace("0.5", "0.1"))) == ""
    assert "'alpha'" in setting(net(one), net(one.replace("0.5", "0.1")))
