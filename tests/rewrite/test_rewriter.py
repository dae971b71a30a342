"""The editing API of one node: attributes, inputs, nodes beside it, and constants."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

TEXT = """<ir_version: 8, opset_import: ["": 17, "own": 1]>
g (float[N,3] x, float16[1] half) => (y) { b = own.unknown (x) [n] y = own.Op <axes = [1, 2], limit = 0.1> (x, x, x) }
<domain: "own", opset_import: ["": 17]> f <m> (v) => (w) { [n] w = own.Op <axes: ints = @m> (v) }"""


def rewriter(target: int = 17, body: int = 0) -> Rewriter:
    proto = onnx.parser.parse_model(TEXT)
    scope = scopes(proto, Weights(), result_ir_version=8)[body]
    return Rewriter(scope.body.node[-1], scope, 13, target, Where("graph", "n", "Op"))


def test_inputs_between_are_left_out_and_empty_ones_at_the_end_are_cut() -> None:
    rw = rewriter()
    rw.set_input(4, "half")
    assert list(rw.node.input) == ["x", "x", "x", "", "half"]

    rw.set_input(4, "")
    assert list(rw.node.input) == ["x", "x", "x"]


def test_attributes_are_set_popped_and_dropped() -> None:
    rw = rewriter()

    assert rw.pop("axes") == [1, 2]
    rw.set("limit", 2)
    rw.set("mode", "nearest")

    assert [(item.name, rw.get(item.name)) for item in rw.node.attribute] == [
        ("limit", 2),
        ("mode", "nearest"),
    ]
    rw.drop("limit", "mode", "absent")
    assert not rw.node.attribute


def test_nodes_beside_it_have_fresh_names_sorted_attributes_and_no_empty_inputs_at_the_end() -> None:
    rw = rewriter()

    first = rw.before("Split", ["x", ""], outputs=2, hint="part", to=1, axis=0, none=None)
    rw.before("Abs", [first])
    output = rw.output(0)
    rw.after("Cast", [rw.detach_output(0)], [output], to=1)

    split, absolute = rw.preceding
    assert (list(split.input), list(split.output)) == (["x"], ["n_part", "n_part_1"])
    assert [attribute.name for attribute in split.attribute] == ["axis", "to"]
    assert (split.name, absolute.name, list(absolute.output)) == ("n_Split", "n_Abs", ["n_abs"])
    (cast,) = rw.following
    assert (list(rw.node.output), list(cast.input), list(cast.output)) == (["n_raw"], ["n_raw"], ["y"])
    assert rw.is_read("n_part")


def test_equal_constants_of_a_body_are_one() -> None:
    rw = rewriter()

    names = {rw.constant(np.array([1, 2], np.int64), hint) for hint in ("axes", "other")}

    assert names == {"n_axes"}
    assert rw.constant(np.array([1, 2], np.int32), "axes") == "n_axes_1"


def test_an_attribute_becomes_an_input_of_the_type_that_is_asked_for() -> None:
    rw = rewriter()

    rw.attribute_to_input("axes", 1)
    rw.attribute_to_input("limit", 2, like="half")
    rw.attribute_to_input("absent", 3)

    assert [attribute.name for attribute in rw.node.attribute] == []
    assert list(rw.node.input) == ["x", "n_axes", "n_limit"]
    body = rw.scope.body
    assert isinstance(body, onnx.GraphProto)
    axes, limit = map(numpy_helper.to_array, body.initializer)
    assert (axes.dtype, axes.tolist()) == (np.int64, [1, 2])
    assert (limit.dtype, limit) == (np.float16, np.float16(0.1))


def test_a_type_known_only_at_run_time_is_cast_like_from_opset_15_and_refused_before() -> None:
    rw = rewriter(target=15)
    rw.attribute_to_input("limit", 1, like="b")
    assert [(node.op_type, list(node.input)) for node in rw.preceding] == [("CastLike", ["n_limit", "b"])]
    assert rw.version == 13, "a node of another domain keeps its version"

    with pytest.raises(CannotMigrate, match="element type"):
        rewriter(target=14).attribute_to_input("limit", 1, like="b")


def test_an_attribute_that_each_call_sets_becomes_a_constant_that_refers_to_it() -> None:
    rw = rewriter(body=1)

    rw.attribute_to_input("axes", 1)

    (constant,) = rw.preceding
    (attribute,) = constant.attribute
    assert (constant.op_type, attribute.name, attribute.ref_attr_name) == ("Constant", "value_ints", "m")
    assert list(rw.node.input) == ["v", *constant.output]
    with pytest.raises(CannotMigrate):
        rewriter(target=11, body=1).attribute_to_input("axes", 1)


def test_reasons_exactness_and_facts_are_kept_for_the_log() -> None:
    rw = rewriter()

    rw.note("rounds down", Exactness.ASSUMED)
    rw.note("and once more")
    rw.record_fact(TensorProto(name="fact"))
    rw.supersede("a")
    rw.supersede("b", "c")

    assert (rw.reasons, rw.exactness) == (["rounds down", "and once more"], Exactness.ASSUMED)
    assert [fact.name for fact in rw.facts if isinstance(fact, TensorProto)] == ["fact"]
    assert (rw.superseded, rw.first_output) == (("a", "b", "c"), "y")
