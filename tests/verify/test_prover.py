"""Results of a migration against their original: numbers, bit-identity, dims made dynamic, and which pass is at fault."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnx_migrate
from onnx_migrate import files
from onnx_migrate.errors import CannotMigrate, LoadError, VerificationFailed
from onnx_migrate.model.model import Model, Segment
from onnx_migrate.verdicts import FirstDifference
from onnx_migrate.verification import faulty_pass
from onnx_migrate.verify import Settings, Tolerance, prover
from onnx_migrate.verify.prover import Prover, first_difference
from tests.harness import model
from tests.verify.harness import ULP, net


def add(bias):
    return files.load(net("(float[1,4] x) => (float[1,4] y) { y = Add(x, b) }", b=bias))


def load(text):
    return files.load(net(text))


def prove(original, result, exact=None, **tolerance):
    with Prover(Settings(tolerance=Tolerance(**tolerance), isolated=False)) as prover:
        return prover.prove(Segment(original, result, exact, exact is not None))


def test_bit_identity_is_required_where_it_is_claimed():
    original, rounded = add(1.0), add(1.0 + ULP)
    assert prove(original, rounded).verdict.exact is None
    assert prove(original, rounded, original).verdict.exact is True
    for result in (original, rounded):
        with pytest.raises(VerificationFailed, match=r"other data: 'b' differs (?s:.*) report this as a bug"):
            prove(original, result, rounded)
    with pytest.raises(VerificationFailed, match="--rtol and --atol allow larger differences") as caught:
        prove(original, rounded, atol=0.0)
    assert caught.value.verification.kind.value == "differs"
    assert re.search(
        r"; at \[0, \d\] .* became .*; elements: \d .* by \de-0\d to \de-0\d", caught.value.with_hint
    )


def test_a_frozen_dim_is_refused_with_the_node():
    text = "(float[N,4] x) => (float[A,4] y) <int64[2] s = {1, 4}> { [keep] y = Reshape(x, s) }"
    with pytest.raises(CannotMigrate, match="keep") as caught:
        prove(load(text.replace("N", "1").replace("A", "1")), load(text))
    assert caught.value.code == "frozen-dim"
    assert "export the model with N dynamic" in caught.value.hint
    free = load(text.replace("{1, 4}", "{-1, 4}"))
    proof = prove(load(text.replace("N", "1").replace("A", "1")), free, free)
    assert proof.dynamic is not None
    assert proof.dynamic.holds


@pytest.mark.usefixtures("without_corners")
def test_inner_values_are_compared_for_weights_in_memory_too():
    """A Relu whose output is all zeros hides the difference; the values before it are compared."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((64, 64)).astype(np.float32)  # too large to stay in the structure
    text = "(float[1,64] x) => (float[1,64] y) { m = MatMul(x, w) d = Sub(m, far) r = Relu(d) y = Add(r, x) }"
    models = []
    for array, name in ((weights, "w"), (weights + 1, "v")):
        model = net(text.replace("w)", f"{name})"), **{name: array, "far": np.full(64, 1e5)})
        models.append(files.load(model))
        assert models[-1].weights.memory
    assert prove(models[0], models[0], models[0]).verdict.notes == ()
    with pytest.raises(VerificationFailed, match="without optimisation 'd' differs"):
        prove(models[0], models[1], models[1])


def test_a_weight_that_no_run_shows_is_found_where_bit_identity_is_claimed(monkeypatch):
    text = "(float[1,4] x) => (float[1,4] y) { p = Relu(x) d = Sub(p, far) m = Mul(d, w) r = Relu(m) y = Add(r, x) }"
    far, w = np.full(4, 1e5), np.ones(4)
    original, other = (files.load(net(text, far=far, w=array)) for array in (w, w + ULP))
    monkeypatch.setattr(
        "onnx_migrate.verify.prover.verify", lambda *_, **__: pytest.fail("the models were run")
    )

    with pytest.raises(
        VerificationFailed, match="a weight has other data: 'w' differs in 4 of 4 elements"
    ) as caught:
        prove(original, other, other)

    assert caught.value.verification.exact is False


def test_a_weight_that_no_run_shows_is_found_in_a_simplified_result(monkeypatch):
    text = "(float[1,4] x) => (float[1,4] y) { p = Relu(x) n = Neg(p) r = Relu(n) m = MatMul(r, w) y = Add(m, x) }"
    weights = np.arange(1.0, 17.0).reshape(4, 4)
    moved = weights.copy()
    moved[2, 1] += 1
    original, scaled, wrong = (files.load(net(text, w=array)) for array in (weights, weights * 2, moved))
    assert prove(original, scaled, original).verdict.kind == "verified"
    with pytest.raises(VerificationFailed, match=r"simplification changed a weight: .* of MatMul 'm'"):
        prove(original, wrong, original)


def test_a_file_that_is_changed_during_the_verification_is_no_finding(tmp_path, monkeypatch):
    proto = net("(float[1,4000] x) => (float[1,4000] y) { y = Add(x, b) }", b=np.ones(4000))
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    original, result = files.load(tmp_path / "a.onnx"), files.load(proto)
    verify = prover.verify

    def changed(*args, **kwargs):
        verdict = verify(*args, **kwargs)
        os.truncate(tmp_path / "a.onnx", 9000)
        return verdict

    monkeypatch.setattr(prover, "verify", changed)
    with pytest.raises(LoadError) as caught:
        prove(original, result)
    assert caught.value.code == "source-changed"


TEXT = """<ir_version: 7, opset_import: ["":11]>
g (bool c, float[2,8] x) => (float[2,8] y) <float[8] w = {1., -2., 3., -4., 5., -6., 7., -8.}> {
  [first] a = Mul(x, w)  [second] b = Clip(a)  [third] d = Sin(b)
  [choice] e = If (c) <
    then_branch = t () => (float[2,8] p) { p = Neg(d) }, else_branch = f () => (float[2,8] q) { q = Abs(d) } >
  [fourth] g = Add(e, w)  [last] y = Tanh(g)
}"""

Edit = Callable[[onnx.ModelProto], None]


def node(proto: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(item for item in proto.graph.node if item.name == name)


def breaks_an_operator(proto: onnx.ModelProto) -> None:
    node(proto, "third").op_type = "Cos"


def breaks_a_weight(proto: onnx.ModelProto) -> None:
    values = numpy_helper.to_array(proto.graph.initializer[0]).copy()
    values[3] += 0.5
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w"))


def breaks_a_branch(proto: onnx.ModelProto) -> None:
    for attribute in node(proto, "choice").attribute:
        attribute.g.node[0].op_type = "Exp"


def breaks_and_renames(proto: onnx.ModelProto) -> None:
    """The node that differs computes a value of a new name, so the fault shows at the next one that kept its own."""
    node(proto, "third").op_type = "Cos"
    node(proto, "third").output[0] = "other"
    for attribute in node(proto, "choice").attribute:
        attribute.g.node[0].input[0] = "other"


def renames(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].name = "erste"


def documents(proto: onnx.ModelProto) -> None:
    proto.doc_string = "words"


def failed(*passes: Edit, **options: object) -> VerificationFailed:
    with pytest.raises(VerificationFailed) as caught:
        onnx_migrate.migrate(model(TEXT), passes=passes, isolated=False, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("broken", "culprit", "operator"),
    [
        (breaks_an_operator, "third", "Cos"),
        (breaks_a_weight, "first", "Mul"),
        (breaks_a_branch, "choice", "If"),
        (breaks_and_renames, "choice", "If"),
    ],
)
def test_the_pass_and_the_node_are_named(broken: Edit, culprit: str, operator: str) -> None:
    error = failed(documents, broken, simplify=False)

    found = error.first_difference
    assert found is not None
    assert (found.passes, found.node, found.operator) == ((broken.__name__,), culprit, operator)
    assert error.reason.startswith(
        f"the numbers first differ after pass '{broken.__name__}', at node '{culprit}' ({operator}): output 'y': "
    )
    assert "computes another" in found.problem


def test_the_order_of_the_passes_does_not_matter_nor_does_simplification() -> None:
    for passes in ((breaks_an_operator, renames), (renames, breaks_an_operator)):
        found = failed(*passes).first_difference
        assert found is not None
        assert (found.passes, found.node) == (("breaks_an_operator",), "third")


def test_a_result_without_a_fault_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faulty_pass, "first_difference", lambda *args, **options: pytest.fail("was called"))

    assert onnx_migrate.migrate(model(TEXT), passes=[documents], isolated=False).report.verified


def stages(*edits: Edit) -> list[tuple[str, Model]]:
    current, found = model(TEXT), []
    for edit in edits:
        edit(current)
        found.append((edit.__name__, files.load(current).copy()))
    return found


def invalidates(proto: onnx.ModelProto) -> None:
    node(proto, "last").domain = "com.nowhere"


def validates(proto: onnx.ModelProto) -> None:
    node(proto, "last").domain = ""


def blamed(*edits: Edit) -> FirstDifference | None:
    start = files.load(model(TEXT))
    with Prover(Settings(isolated=False)) as prover:
        return first_difference(prover, start, stages(*edits), claimed=False)


def test_a_model_that_does_not_run_is_passed_over() -> None:
    found = blamed(documents, invalidates, breaks_an_operator, validates, renames)

    assert found is not None
    assert found.passes == ("invalidates", "breaks_an_operator", "validates")
    assert found.node == "third"


def test_bisection_takes_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = prover._same
    monkeypatch.setattr(prover, "_same", lambda *args, **options: calls.append(1) or real(*args, **options))
    edits: list[Edit] = [documents, renames] * 7 + [breaks_an_operator] + [documents, renames] * 8

    found = blamed(*edits)

    assert found is not None
    assert found.passes == ("breaks_an_operator",)
    assert len(calls) <= 5


def test_without_stages_nothing_is_blamed() -> None:
    assert blamed() is None


def test_where_time_is_over_the_passes_that_are_left_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prover, "_PATIENCE", 0.0)

    found = blamed(documents, breaks_an_operator, renames)

    assert found is not None
    assert found.passes == ("documents", "breaks_an_operator", "renames")
    assert found.node == "third"


def half(k):
    """Return a graph of float16 that multiplies its input by a number, of which the parser wants the bits."""
    bits = np.float16(k).view(np.uint16)
    return f"(float16[2,8] x) => (float16[2,8] y) <float16[1] k = {{{bits}}}> {{ a = Mul(x, k)  BODY }}"


@pytest.mark.parametrize(
    ("k", "before", "after", "problem"),
    [
        # ONNX Runtime computes the chain in float32, where 1000 * 1000 is no infinity.
        ("1000", "y = Abs(a)", "b = Mul(a, a)  y = Sqrt(b)", "leaves the original is 'y'"),
        ("1.5", "y = Abs(a)", "b = Mul(a, a)  y = Sqrt(b)", ""),
        # The original overflows on numbers of this size: it is compared on smaller ones.
        ("1000", "b = Mul(a, a)  y = Sqrt(b)", "y = Abs(a)", ""),
        ("1000", "b = Mul(a, a)  y = Sqrt(b)", "b = Mul(a, a)  y = Pow(b, half)", ""),
        # The mean of 8 numbers minus itself: what is left is rounding, which other inputs change as much.
        ("1.5", "m = ReduceMean<axes = [1]>(a)  y = Sub(a, m)", "n = ReduceSum(a)  y = Sub(a, a)", "differ"),
    ],
)  # fmt: skip
def test_models_of_float16_are_compared_with_every_value_rounded(k, before, after, problem):
    text = half(k).replace("> {", ", float16 half = {14336}> {")
    original, result = (load(text.replace("BODY", body)) for body in (before, after))
    if problem:
        with pytest.raises(VerificationFailed, match=problem):
            prove(original, result)
        return
    assert [output.name for output in prove(original, result).verdict.rounded] == ["y"]


def test_a_given_tolerance_holds_with_every_value_rounded_too():
    text = half("1.5")
    original, result = (
        load(text.replace("BODY", body)) for body in ("y = Abs(a)", "b = Abs(a)  y = Mul(b, k)")
    )
    assert prove(original, result, rtol=0.6).verdict.rounded[0].error == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(VerificationFailed):
        prove(original, result)


def test_models_of_float32_have_nothing_rounded():
    assert prove(add(1.0), add(1.0)).verdict.rounded == ()
