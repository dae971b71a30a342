"""What a body can read: constants that are constant, types, names; and where new constants go."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.weights import Weights
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (bool c, float[2] x, float[1] listed) => (float[2] y) <float[1] w = {2.}, float[1] listed = {3.}> {
    k = Constant <value_ints = [1, 2]> ()
    same = Identity(w)
    y = If(c) <
        then_branch = t () => (float[2] p) { inner = Constant <value_float = 4.0> () p = Add(x, same) },
        else_branch = e () => (float[2] q) { q = f.Block(x) }
    >
}
<domain: "f", opset_import: ["": 17]>
Block (a) => (b) { h = Constant <value = float[1] {0.5}> () b = Mul(a, h) }"""


def open_scopes(proto: onnx.ModelProto, result_ir_version: int = 8) -> list[Scope]:
    return scopes(proto, Weights(), result_ir_version=result_ir_version)


CONSTANTS = {"w": [2.0], "same": [2.0], "k": [1, 2], "x": None, "y": None, "listed": None, "inner": None}


@pytest.mark.parametrize(
    ("ir_version", "name", "value"), [*((8, *row) for row in CONSTANTS.items()), (3, "listed", [3.0])]
)
def test_constants_of_a_graph(ir_version: int, name: str, value: list[float] | None) -> None:
    """Before IR version 4, a listed initializer is a constant."""
    proto = model(TEXT)
    proto.ir_version = ir_version

    found = open_scopes(proto)[0].constant(name)

    assert found is None if value is None else found is not None and found.tolist() == value


def test_a_branch_reads_its_own_constants_and_those_around_it() -> None:
    main, function = open_scopes(model(TEXT))
    nested = list(main.nested())
    branch = nested[1]

    assert [scope.path for scope in nested] == ["graph", "graph/y:then_branch", "graph/y:else_branch"]
    assert branch.constant("inner") == np.float32(4)
    assert branch.constant("same") == np.float32(2)
    assert branch.value_type("x").shape == (2,)
    assert function.path == "function f:Block"
    assert function.constant("h") == np.float32(0.5)
    assert function.constant("w") is None


def test_an_array_that_was_returned_may_be_changed() -> None:
    scope = open_scopes(model(TEXT))[0]
    first = scope.constant("w")
    assert first is not None
    first[0] = 9

    assert scope.constant("w") == np.float32(2)


def test_a_new_constant_is_an_initializer_and_an_equal_one_is_reused() -> None:
    proto = model(TEXT)
    scope = open_scopes(proto)[0]

    names = [scope.add_constant(np.array([7, 8], kind), "w") for kind in (np.int64, np.int64, np.int32)]

    assert names == ["w_1", "w_1", "w_2"]
    assert [tensor.name for tensor in proto.graph.initializer] == ["w", "listed", "w_1", "w_2"]
    assert numpy_helper.to_array(proto.graph.initializer[2]).tolist() == [7, 8]
    assert scope.constant("w_2") is not None


def test_a_function_and_a_graph_of_ir_version_3_get_a_constant_node() -> None:
    for scope in (open_scopes(model(TEXT))[1], open_scopes(model(TEXT), result_ir_version=3)[0]):
        name = scope.add_constant(np.array([7], np.int64), "new")

        assert [node.output[0] for node in scope.leading_constants] == [name]
        assert scope.constant(name) == 7


def test_what_is_read_includes_branches_outputs_and_nodes_written_later() -> None:
    scope = open_scopes(model(TEXT))[0]

    assert scope.is_read("same")  # by a branch
    assert scope.is_read("y")
    assert not scope.is_read("k")
    scope.register(helper.make_node("Neg", ["k"], ["later"]))
    assert scope.is_read("k")
    scope.register(helper.make_node("Constant", [], ["made"], value_int=5))
    assert scope.constant("made") == 5
