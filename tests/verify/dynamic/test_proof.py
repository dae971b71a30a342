"""Dims that were made symbolic are free, or not: which requirement fails, at which sizes."""

from __future__ import annotations

import importlib

import onnx
import pytest

from onnx_migrate import process
from onnx_migrate.errors import UsageError
from onnx_migrate.verdicts import SizeCondition
from onnx_migrate.verify import Runnable
from onnx_migrate.verify.dynamic.proof import _INCREMENTS, PROVE, _with_bounds, prove_dynamic
from onnx_migrate.verify.dynamic.proof import prove as prove_in_child
from tests.support.paths import FIXTURES
from tests.verify.harness import net, prove, runnable, wrong_optimiser

RELU = "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"


def test_a_free_batch_holds():
    proof = prove(
        "(float[N,4,6] x) => (float[N,24] y) <int64[2] s = {0, -1}> { r = Reshape(x, s) y = Softmax<axis=-1>(r) }",
        {"N": 1},
    )
    assert proof.holds, proof.reason
    assert [dict(t.sizes)["N"] for t in proof.trials] == [1, 2, 3]


def test_the_name_of_the_function_that_the_child_runs_resolves():
    module, _, name = PROVE.partition(":")
    assert getattr(importlib.import_module(module), name) is prove_in_child
    proof = prove_dynamic(runnable(RELU), {"N": 1}, {"N"})
    assert proof.holds, "in a child process"
    assert 0 < proof.seconds < 600


def test_batch_and_other_dims_are_also_changed_at_once():
    proof = prove("(float[N,3,H,4] x) => (float[N,3,H,4] y) { y = Relu(x) }", {"N": 1, "H": 5})
    assert proof.holds, proof.reason
    assert dict(proof.trials[-1].sizes) == {"N": 2, "H": 37}


SHUFFLE = """(float[BATCH,4,H,4] x) => (float[A,1,B,8] y)
    <int64[6] s = {-1,1,2,2,4,4}, int64[4] t = {-1,1,8,8}> {
    a = Relu(x) [shuffle] b = Reshape(a, s) c = Transpose<perm=[0,1,4,2,5,3]>(b) y = Reshape(c, t) }"""
"""A pixel shuffle with H and W baked into its shapes: twice the height silently is twice the batch."""
STAYS = "axis 0 of output 'y' is the batch and should stay 1 whatever H is"

REFUSED = {
    "batch stays 1": ("(float[N,4,6] x) => (float[A,B,2] y) <int64[3] s = {1, -1, 2}> { [keep] y = Reshape(x, s) }", {"N": 1},
        "the cause is Reshape 'keep'", ("keep", "Reshape", "s", "[1, -1, 2]")),
    "does not run": ("(float[N,4,6] x) => (float[N,24] y) <int64[2] s = {1, 24}> { [keep] y = Reshape(x, s) }", {"N": 1},
        "the cause is Reshape 'keep'", ("keep", "Reshape", "s", "[1, 24]")),
    "merged": ("(float[N,4,6] x) => (float[M,6] y) <int64[2] s = {-1, 6}> { [keep] y = Reshape(x, s) }", {"N": 1},
        "the cause is Reshape 'keep'", ("keep", "Reshape", "s", "[-1, 6]")),
    "mixed": ("(float[N,4] x) => (float[N,4] y) { a = Relu(x) [keep] y = Softmax<axis=0>(a) }", {"N": 1},
        "the cause is Softmax 'keep'", ("keep", "Softmax", "", "")),
    "first item only": ("(float[N,4] x) => (float[A,4] y) <int64[1] i = {0}> { a = Relu(x) [keep] y = Gather<axis=0>(a, i) }",
        {"N": 1}, "the cause is Gather 'keep'", ("keep", "Gather", "i", "[0]")),
    "old size declared": ("(float[N,4] x) => (float[1,4] y) { y = Relu(x) }", {"N": 1},
        "'y' is declared with shape {1,4} and has shape {2,4}", None),
    "one symbol is one size": ("(float[N,4] x) => (float[4,N] y, float[N,4] z) { z = Relu(x) y = Relu(x) }", {"N": 1},
        "output 'y'", None),
    "frozen height": (f"""(float[1,2,H,8] x) => (float[1,2,H,8] y) <float[1,1,8,8] prior = {{{','.join(['0.5'] * 64)}}}> {{
        [grid] y = Add(x, prior) }}""", {"H": 8}, "grid", ("grid", "Add", "prior", "float[1, 1, 8, 8]")),
    "height in the batch": (SHUFFLE.replace("BATCH", "N"), {"N": 1, "H": 4}, STAYS,
        ("shuffle", "Reshape", "s", "[-1, 1, 2, 2, 4, 4]")),
    "height in a batch of 1": (SHUFFLE.replace("BATCH", "1"), {"H": 4}, STAYS,
        ("shuffle", "Reshape", "s", "[-1, 1, 2, 2, 4, 4]")),
    "batch on another axis": ("""(float[N,2,T] x) => (float[2,A,4] y) <int64[3] s = {2,-1,4}> {
        a = Transpose<perm=[1,0,2]>(x) [fold] y = Reshape(a, s) }""", {"N": 1, "T": 4}, "axis 1 of output 'y' is the batch",
        ("fold", "Reshape", "s", "[2, -1, 4]")),
    "one other size only": ("(float[1,T] x) => (float[1,T] y) <float[1,6] p = {1,2,3,4,5,6}> { [add] y = Add(x, p) }", {"T": 6},
        f"the model does not run with T = {' or '.join(str(6 + more) for more in _INCREMENTS)}",
        ("add", "Add", "p", "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_dim_that_is_not_free_is_refused_with_the_node_and_its_constant(name):
    text, symbols, reason, blocker = REFUSED[name]
    proof = prove(text, symbols, {"N"} & symbols.keys())
    assert not proof.holds
    assert reason in proof.reason
    if blocker is not None:
        found = proof.blocker
        assert (found.node, found.operator, found.constant, found.holds) == blocker


def test_strides_that_refuse_some_sizes_are_noted_and_accepted():
    strided = """(float[1,2,H,8] x) => (float[1,2,H,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
        a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)
        b = Resize<mode="nearest">(a, , s)
        [skip] y = Add(x, b) }"""
    proof = prove(strided, {"H": 8}, ())
    assert proof.holds, proof.reason
    assert proof.notes[0] == "the model does not run at H = 9; it does at 40 and 72, in steps of 2"


def test_an_unknown_symbol_is_an_error_of_usage_that_lists_the_known_ones():
    with pytest.raises(UsageError, match=r"'M'\nHint: dims have these names: N"):
        prove(RELU, {"M": 1})


@wrong_optimiser
def test_an_output_that_the_optimiser_changes_at_the_original_sizes_is_a_note():
    model = onnx.load(FIXTURES / "pad_maxpool_opset9.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
    proof = prove(model, {"N": 1})
    assert proof.holds, proof.reason
    assert "ONNX Runtime's optimisation changes 'y' at the original sizes" in proof.notes[0]


def test_a_model_that_does_not_load_or_ends_the_process_does_not_hold(monkeypatch):
    proof = prove("(float[N,4] x) => (float[N,4] y) { y = Rela(x) }", {"N": 1})
    assert not proof.holds
    assert "the model does not load" in proof.reason
    monkeypatch.setattr(
        process, "run", lambda *_, **__: process.TimedOut(5.0, stage="result: running at N=2")
    )
    proof = prove_dynamic(Runnable(), {"N": 1})
    assert not proof.holds
    assert "timed out after 5 s, in the step 'result: running at N=2'; not tried: --timeout" in proof.reason


@pytest.mark.parametrize(
    ("batch", "symbols", "names"), [("N", {"N": 1, "T": 4}, ("N",)), ("1", {"T": 4}, ())]
)
def test_a_dim_that_becomes_axis_0_by_a_transpose_is_accepted(batch, symbols, names):
    text = (
        f"(float[{batch},2,T] x) => (float[T,{batch},2] y) {{ a = Relu(x) y = Transpose<perm=[2,0,1]>(a) }}"
    )
    proof = prove(text, symbols, names)
    assert proof.holds, proof.reason


def test_an_output_axis_that_stays_at_the_old_size_is_noted():
    fixed = "(float[T,4] x) => (float[9,4] y) <int64[2] s = {9, 4}> { m = ReduceMean<keepdims=1, axes=[0]>(x) y = Expand(m, s) }"
    proof = prove(fixed, {"T": 9}, ())
    assert proof.holds, proof.reason
    (note,) = proof.notes
    assert "axis 0 of output 'y' is 9, the original size of T" in note
    assert not prove(fixed, {"T": 7}, ()).notes


def test_sizes_that_must_divide_by_a_stride_are_said_as_steps():
    text = """(float[1,1,H] x) => (float[1,1,H] y) <float[1,1,8] w, float[1,1,8] v> {
        c = Conv<strides=[8]>(x, w) u = ConvTranspose<strides=[8]>(c, v) y = Add(x, u) }"""
    ones = [[[0.5] * 8]]
    proof = prove(net(text.replace("<float[1,1,8] w, float[1,1,8] v>", ""), w=ones, v=ones), {"H": 16}, ())
    assert proof.holds, proof.reason
    assert any("it does at 48 and 80, in steps of 8" in note for note in proof.notes), proof.notes


def test_the_largest_size_is_said_where_larger_ones_fail():
    text = "(float[T] x) => (float[T] y) { s = Shape(x) z = Constant<value = int64[1] {0}>() q = Slice(p, z, s) y = Add(x, q) }"
    proof = prove(net(text, p=[0.5] * 20), {"T": 9}, ())
    assert not proof.holds or any("it does up to 20" in note for note in proof.notes)
    longer = prove(net(text, p=[0.5] * 50), {"T": 9}, ())
    assert longer.holds, longer.reason
    assert any("it does up to 50" in note for note in longer.notes) or not longer.notes


STRIDED = """(float[1,1,H] x) => (float[1,1,H] y) {
    c = Conv<strides=[8]>(x, w) u = ConvTranspose<strides=[8]>(c, v) y = Add(x, u) }"""
"""A model that runs at multiples of 8 only."""
LONG = "(float[H] x) => (float[H] y) { s = Shape(x) z = Constant<value = int64[1] {0}>() q = Slice(p, z, s) y = Add(x, q) }"
"""A model that runs up to the length of its constant."""


@pytest.mark.parametrize(
    ("bounds", "conditions"),
    [
        ((0, 0), [("a multiple of 8", 8)]),
        ((12, 0), [("a multiple of 24", 24)]),
        ((16, 0), [("a multiple of 16", 16)]),
        ((12, 30), [("a multiple of 24 and at least 30", 24)]),
        ((0, 30), [("a multiple of 8 and at least 30", 8)]),
    ],
)
def test_steps_of_a_model_and_of_its_tables_are_one_condition(bounds, conditions):
    ones = [[[0.5] * 8]]
    proof = prove_dynamic(runnable(STRIDED, w=ones, v=ones), {"H": 16}, bounds=bounds)
    assert proof.holds, proof.reason
    assert [(each.text, each.step) for each in proof.conditions] == conditions


def test_a_largest_size_and_the_bounds_of_tables_are_both_said():
    proof = prove_dynamic(runnable(LONG, p=[0.5] * 30), {"H": 9}, bounds=(3, 6))
    assert [each.text for each in proof.conditions] == ["at most 30 and a multiple of 3 and at least 6"]


def test_multiples_beside_a_remainder_and_the_steps_of_tables_are_both_said():
    condition = SizeCondition("H", "9 plus a multiple of 8", "as measured")
    (bounded,) = _with_bounds([condition], {"H"}, 3, 0)
    assert (bounded.text, bounded.step, bounded.note) == (
        "9 plus a multiple of 8 and a multiple of 3",
        0,
        "as measured",
    )


def test_two_conditions_on_one_symbol_are_both_said():
    conditions = [
        SizeCondition("H", "at most 700", "long"),
        SizeCondition("H", "a multiple of 24", "steps", 24),
    ]
    assert [each.text for each in _with_bounds(conditions, {"H", "W"}, 32, 0)] == [
        "at most 700 and a multiple of 32",
        "a multiple of 96",
        "a multiple of 32",
    ]
