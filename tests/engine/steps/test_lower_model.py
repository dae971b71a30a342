"""Lowering all bodies of a model: which functions stay, which are inlined, and what happens where none can be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.engine.steps.lower_model import Lowered, lower_model
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import body_opsets
from tests.harness import model, random_feeds, run, same_bits
from tests.steps import lower, operators

TWO_FUNCTIONS = """<ir_version: 8, opset_import: ["": 13, "local": 1]>
    g (float[2,3,4] x, float[3,4] m) => (float[2,3,4] y, float[3,4] z)
    { a = local.Plain (x)  y = local.Ranked (a)  z = local.Ranked (m) }
<domain: "local", opset_import: ["": 13]> Ranked (a) => (b) { b = Softmax <axis = 0> (a) }
<domain: "local", opset_import: ["": 13]> Plain (a) => (b) { c = Relu (a)  b = Softmax (c) }"""


MIXED = """13 (float[2,3,4] x, float[3,4] m) => (float[2,3,4] w, float[2,3,4] y, float[3,4] z)
    { y = local.Ranked (x)  z = local.Ranked (m)  w = local.Old (x) }
<domain: "local", opset_import: ["": 13]> Ranked (a) => (b) { b = Softmax <axis = 0> (a) }
<domain: "local", opset_import: ["": 11]> Old (a) => (b) { b = Softmax (a) }"""
"""A model with a function of an opset between those that the tests lower it to; its Softmax flattens to two axes."""


def _lower(source: onnx.ModelProto, to: int) -> tuple[Lowered, ChangeLog]:
    log = ChangeLog()
    return lower_model(Model(model(source)), to, log, "lower_opset"), log


def _check(source: onnx.ModelProto, to: int) -> tuple[onnx.ModelProto, ChangeLog]:
    lowered, log = _lower(source, to)
    assert not lowered.refusals
    result = lowered.model.proto
    check_legal(result)
    assert {version for _, version in body_opsets(result)} <= {to, None}
    feeds = random_feeds(source)
    same_bits(run(source, feeds), run(result, feeds), f"to {to}")
    return result, log


def _functions(proto: onnx.ModelProto) -> list[str]:
    return sorted(function.name for function in proto.functions)


def test_only_the_function_that_needs_its_callers_is_inlined() -> None:
    result, log = _check(model(TWO_FUNCTIONS), 11)

    assert _functions(result) == ["Plain"]
    inlined = [note for note in log.notes if note.code == "inlined"]
    assert [note.subject for note in inlined] == ["local:Ranked"]
    assert "inlined the function local:Ranked" in inlined[0].message


def test_where_nothing_needs_the_callers_both_functions_stay() -> None:
    result, log = _check(model(TWO_FUNCTIONS.replace("axis = 0", "axis = -1")), 11)

    assert _functions(result) == ["Plain", "Ranked"]
    assert not [note for note in log.notes if note.code == "inlined"]


def test_a_function_within_a_function_is_inlined_and_its_caller_after_it() -> None:
    source = model("""13 (float[2,3,4] x, float[3,4] m) => (float[2,3,4] y, float[3,4] z)
{ y = local.Outer (x)  z = local.Outer (m) }
<domain: "local", opset_import: ["": 13]> Inner (a) => (b) { b = Softmax <axis = 0> (a) }
<domain: "local", opset_import: ["": 13, "local": 1]> Outer (a) => (b) { c = Relu (a)  b = local.Inner (c) }""")

    result, log = _check(source, 11)

    assert not result.functions
    assert {note.subject for note in log.notes if note.code == "inlined"} >= {"local:Inner", "local:Outer"}


def test_a_model_without_functions_keeps_its_object() -> None:
    whole = Model(model("13 (float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 0> (x) }"))

    lowered = lower_model(whole, 11, ChangeLog(), "lower_opset")

    assert lowered.model is whole


def test_a_body_that_is_older_than_the_target_stays() -> None:
    source = model(MIXED.replace("<axis = 0>", "<axis = -1>"))

    lowered, _ = _lower(source, 12)

    versions = {getattr(owner, "name", ""): version for owner, version in body_opsets(lowered.model.proto)}
    assert not lowered.refusals
    assert (versions["Ranked"], versions["Old"]) == (12, 11)
    assert lowered.model.proto.functions[1] == source.functions[1]


@pytest.mark.parametrize("to", [12, 10, 9])
def test_functions_are_inlined_beside_one_of_another_opset(to: int) -> None:
    source = model(MIXED)
    feeds = random_feeds(source)

    lowered, _ = _lower(source, to)

    result = lowered.model.proto
    assert not lowered.refusals
    assert _functions(result) == ["Old"]
    assert {version for _, version in body_opsets(result)} == {to}
    flat = np.exp(feeds["x"].reshape(2, 12))
    parts = np.exp(feeds["x"])
    others = np.exp(feeds["m"])
    expected = [
        (flat / flat.sum(axis=1, keepdims=True)).reshape(2, 3, 4),
        parts / parts.sum(axis=0),
        others / others.sum(axis=0),
    ]
    for wanted, found in zip(expected, run(result, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_function_that_the_inliner_refuses_leaves_its_refusals() -> None:
    """The function imports another version of ai.onnx.ml than the model, so its nodes cannot move to the model."""
    text = (
        TWO_FUNCTIONS.replace('"local": 1]', '"local": 1, "ai.onnx.ml": 1]')
        .replace('["": 13]> Ranked', '["": 13, "ai.onnx.ml": 3]> Ranked')
        .replace("b = Softmax <axis = 0> (a) }", "c = Softmax <axis = 0> (a)  b = ai.onnx.ml.Binarizer (c) }")
    )

    lowered, log = _lower(model(text), 11)

    assert [item.error.code for item in lowered.refusals] == ["needs-rank"]
    assert lowered.refusals[0].function is not None
    assert lowered.refusals[0].function[:2] == ("local", "Ranked")
    assert lowered.refusals[0].nearest == 13
    assert not [note for note in log.notes if note.code == "inlined"]


def test_a_refusal_that_no_caller_can_resolve_inlines_nothing() -> None:
    source = model("""13 (float[2,3] x) => (float[2,3] y) { y = local.Bend (x) }
<domain: "local", opset_import: ["": 13]> Bend (a) => (b) { b = Sinh (a) }""")

    lowered, log = _lower(source, 8)

    assert [item.error.code for item in lowered.refusals] == ["no-equal"]
    assert not [note for note in log.notes if note.code == "inlined"]


@pytest.mark.parametrize(("to", "stays"), [(9, True), (8, False)])
def test_a_function_with_a_constant_of_integers_is_inlined_below_opset_9(to: int, stays: bool) -> None:
    """Constant-1 takes no integers by its schema, and only graphs have initializers."""
    source = model("""13 (float[2,3] x) => (float[3,2] y) { y = local.Turn (x) }
<domain: "local", opset_import: ["": 13]> Turn (a) => (b)
    { s = Constant <value = int64[2] {3, 2}> ()  b = Reshape (a, s) }""")

    result, _ = _check(source, to)

    assert bool(result.functions) is stays
    if not stays:
        assert "Constant" not in operators(result)


def test_a_function_of_another_opset_does_not_hide_the_ranks_of_what_it_returns() -> None:
    source = model("""15 (float[2,3,4] x) => (float[2,3,4] y) { a = local.Act(x)  y = Softmax<axis=0>(a) }
<domain: "local", opset_import: ["":11]> Act (a) => (b) { b = Relu(a) }""")
    feeds = random_feeds(source)

    result, _ = lower(source, 11)

    assert [function.name for function in result.functions] == ["Act"]
    flat = model("13 (float[2,3,4] x) => (float[2,3,4] y) { a = Relu(x)  y = Softmax<axis=0>(a) }")
    same_bits(run(flat, feeds), run(result, feeds), "function of opset 11")
