"""Initializers of nested sub-graphs, for IR version 3."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnx_migrate
from tests.harness import loads, model, random_feeds, run, same

NESTED = """8 (float[2] x, bool c, bool d) => (float[2] y) { y = If (c) <
        then_branch = t () => (float[2] p) <float[2] w = {1, 2}> {
            p = If (d) <then_branch = tt () => (float[2] r) { r = Add (x, w) },
                        else_branch = te () => (float[2] s) <float[2] v = {5, 6}> { s = Mul (w, v) }>
        },
        else_branch = e () => (float[2] q) <float[2] w = {3, 4}> { q = Sub (x, w) }>
}"""


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_nested_branches(outer: bool, inner: bool) -> None:
    source = model(NESTED)
    result = onnx_migrate.migrate(source, ir_version=3).model
    feeds = {**random_feeds(source), "c": np.array(outer), "d": np.array(inner)}

    assert len(result.graph.initializer) == 3
    same(run(source, feeds), run(result, feeds), "nested")
    onnx.checker.check_model(result)


def test_an_inner_branch_that_returns_an_initializer_of_the_outer_one() -> None:
    source = model(NESTED)
    inner = source.graph.node[0].attribute[0].g.node[0].attribute[0].g
    del inner.node[:]
    inner.output[0].name = "w"
    result = onnx_migrate.migrate(source, ir_version=3, verify=False).model

    assert loads(result)
    feeds = {**random_feeds(source), "c": np.array(True), "d": np.array(True)}
    same([np.array([1, 2], np.float32)], run(result, feeds), "returned")


def test_a_large_weight_is_not_read() -> None:
    source = model(NESTED)
    large = np.arange(4096, dtype=np.float32)
    source.graph.initializer.append(numpy_helper.from_array(large, "large"))
    migration = onnx_migrate.migrate(source, ir_version=3)

    listed = next(tensor for tensor in migration.structure.graph.initializer if tensor.name == "large")
    assert listed.data_location == onnx.TensorProto.EXTERNAL
    assert [value.name for value in migration.structure.graph.input][3:] == ["large", "w_1", "v_1", "w_2"]


@pytest.mark.parametrize("inner", [True, False])
def test_an_inner_initializer_that_hides_an_outer_one(inner: bool) -> None:
    source = model(
        NESTED.replace("<float[2] v = {5, 6}> { s = Mul (w, v) }", "<float[2] w = {5, 6}> { s = Mul (w, x) }")
    )
    result = onnx_migrate.migrate(source, ir_version=3).model
    feeds = {**random_feeds(source), "c": np.array(True), "d": np.array(inner)}
    w = np.array([1, 2] if inner else [5, 6], np.float32)

    same([feeds["x"] + w if inner else w * feeds["x"]], run(result, feeds), "hidden")
