"""What an older IR version does not have: functions, unlisted and sparse initializers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.harness import loads, model, random_feeds, run, same

NESTED = """<ir_version: 9, opset_import: ["": 13, "f": 1]> g (float[2,3] x) => (float[2,3] y)
{{ h = f.G {first} (x)  y = f.G <beta: float = 0.5> (h) }}
<domain: "f", opset_import: ["": 13]> F <alpha: float = 0.25> (a) => (b) {{ b = LeakyRelu <alpha: float = @alpha> (a) }}
<domain: "f", opset_import: ["f": 1]> G <beta> (a) => (b) {{ b = f.F <alpha: float = @beta> (a) }}"""


def test_an_attribute_that_is_always_handed_on() -> None:
    source = model(NESTED.format(first="<beta: float = 0.75>"))
    result = onnx_migrate.migrate(source, ir_version=8).model
    feeds = random_feeds(source)
    same(run(source, feeds), run(result, feeds), "defaults")


def test_a_default_that_holds_only_at_some_calls_is_refused() -> None:
    source = model(NESTED.format(first=""))
    with pytest.raises(CannotMigrate, match="'beta' at every call") as caught:
        onnx_migrate.migrate(source, ir_version=8)
    assert caught.value.code == "no-such-ir"
    assert str(caught.value.where) == "'b' (F) in function f:G"


def test_a_name_that_is_taken_is_not_given_to_an_overload() -> None:
    plain = model(NESTED.format(first="<beta: float = 0.75>"))
    source = model(plain)
    source.ir_version = 10
    source.functions[0].overload = source.functions[1].node[0].overload = "1"
    source.functions[1].name = "F_1"
    for node in source.graph.node:
        node.op_type = "F_1"
    # ONNX Runtime 1.31 does not find overloads that functions call.
    result = onnx_migrate.migrate(source, ir_version=9, verify=False).model

    assert [function.name for function in result.functions] == ["F_1_1", "F_1"]
    feeds = random_feeds(plain)
    same(run(plain, feeds), run(result, feeds), "overloads")


INITIALIZERS_NESTED = """8 (float[2] x, bool c, bool d) => (float[2] y) { y = If (c) <
        then_branch = t () => (float[2] p) <float[2] w = {1, 2}> {
            p = If (d) <then_branch = tt () => (float[2] r) { r = Add (x, w) },
                        else_branch = te () => (float[2] s) <float[2] v = {5, 6}> { s = Mul (w, v) }>
        },
        else_branch = e () => (float[2] q) <float[2] w = {3, 4}> { q = Sub (x, w) }>
}"""


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_nested_branches(outer: bool, inner: bool) -> None:
    source = model(INITIALIZERS_NESTED)
    result = onnx_migrate.migrate(source, ir_version=3).model
    feeds = {**random_feeds(source), "c": np.array(outer), "d": np.array(inner)}

    assert len(result.graph.initializer) == 3
    same(run(source, feeds), run(result, feeds), "nested")
    onnx.checker.check_model(result)


def test_an_inner_branch_that_returns_an_initializer_of_the_outer_one() -> None:
    source = model(INITIALIZERS_NESTED)
    inner = source.graph.node[0].attribute[0].g.node[0].attribute[0].g
    del inner.node[:]
    inner.output[0].name = "w"
    result = onnx_migrate.migrate(source, ir_version=3, verify=False).model

    assert loads(result)
    feeds = {**random_feeds(source), "c": np.array(True), "d": np.array(True)}
    same([np.array([1, 2], np.float32)], run(result, feeds), "returned")


def test_a_large_weight_is_not_read() -> None:
    source = model(INITIALIZERS_NESTED)
    large = np.arange(4096, dtype=np.float32)
    source.graph.initializer.append(numpy_helper.from_array(large, "large"))
    migration = onnx_migrate.migrate(source, ir_version=3)

    listed = next(tensor for tensor in migration.structure.graph.initializer if tensor.name == "large")
    assert listed.data_location == onnx.TensorProto.EXTERNAL
    assert [value.name for value in migration.structure.graph.input][3:] == ["large", "w_1", "v_1", "w_2"]


@pytest.mark.parametrize("inner", [True, False])
def test_an_inner_initializer_that_hides_an_outer_one(inner: bool) -> None:
    source = model(
        INITIALIZERS_NESTED.replace(
            "<float[2] v = {5, 6}> { s = Mul (w, v) }", "<float[2] w = {5, 6}> { s = Mul (w, x) }"
        )
    )
    result = onnx_migrate.migrate(source, ir_version=3).model
    feeds = {**random_feeds(source), "c": np.array(True), "d": np.array(inner)}
    w = np.array([1, 2] if inner else [5, 6], np.float32)

    same([feeds["x"] + w if inner else w * feeds["x"]], run(result, feeds), "hidden")


TEXT = "10 (float[1] x) => (float[N] y) { y = Add (x, w) }"


def sparse(dims: list[int], places: np.ndarray, values: np.ndarray) -> onnx.ModelProto:
    source = model(TEXT)
    source.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            numpy_helper.from_array(values, "w"), numpy_helper.from_array(places.astype(np.int64), "i"), dims
        )
    )
    return source


def dense(source: onnx.ModelProto) -> np.ndarray:
    result = onnx_migrate.migrate(source, ir_version=5, verify=False).model
    (tensor,) = result.graph.initializer
    assert tensor.name == "w"
    assert not result.graph.sparse_initializer
    return numpy_helper.to_array(tensor)


@pytest.mark.parametrize("dims", [[7], [2, 4], [2, 2, 3]])
def test_positions_in_the_flat_tensor(dims: list[int]) -> None:
    found = dense(sparse(dims, np.array([1, 6]), np.array([2.0, 3.0], np.float32)))
    expected = np.zeros(dims, np.float32)
    expected.reshape(-1)[[1, 6]] = 2, 3
    np.testing.assert_array_equal(found, expected)


def test_coordinates_of_a_tensor_that_becomes_large() -> None:
    rng = np.random.default_rng(0)
    expected = np.where(rng.random((60, 70)) < 0.5, rng.standard_normal((60, 70)), 0).astype(np.float32)
    places = np.argwhere(expected)
    found = dense(sparse([60, 70], places, expected[expected != 0]))
    np.testing.assert_array_equal(found, expected)


def test_no_value_at_all() -> None:
    np.testing.assert_array_equal(dense(sparse([3], np.zeros(0), np.zeros(0, np.float32))), np.zeros(3))


def test_one_that_is_too_large_is_refused() -> None:
    source = sparse([1 << 20, 1 << 10], np.array([5]), np.array([1.0], np.float32))
    with pytest.raises(CannotMigrate, match=r"'w': .*too large") as caught:
        onnx_migrate.migrate(source, ir_version=5, verify=False)
    assert caught.value.code == "no-such-ir"
    assert source.graph.sparse_initializer[0].values.data_type == TensorProto.FLOAT
