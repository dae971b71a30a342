"""Lengths are read from what has them, once."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.dynamic_dims.repair.domain import Dim, Value, Worlds, product
from onnx_migrate.passes.dynamic_dims.repair.graph_state import Body, Length, UnknownLengthError

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.errors import Where
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model
from tests.passes.dynamic_dims.repair.batched import text

WORLDS = Worlds.of({"N": 1, "H": 12}, {"N"}, 64)
N, H = Dim(WORLDS.sizes["N"]), Dim(WORLDS.sizes["H"])


@pytest.fixture
def place() -> tuple[Body, Rewriter]:
    source = Model(model(text("float[1,12] x", "float[1,12] y", "y = Relu(x)")))
    (scope,) = scopes(source.proto, source.weights, result_ir_version=8)
    body = Body(scope, WORLDS)
    body.learn("x", Value(1, (N, H)))
    return body, Rewriter(source.proto.graph.node[0], scope, 17, 17, Where())


def test_lengths(place: tuple[Body, Rewriter]) -> None:
    body, _ = place
    half = Dim(tuple(size // 2 for size in H.sizes))
    more = Dim(tuple(size + 1 for size in H.sizes))
    both = product([N, H], WORLDS.count)

    assert body.length(H) == [Length("x", 1)]
    assert body.length(half) == [Length("x", 1, over=2)]
    assert body.length(more) == [Length("x", 1, plus=1)]
    assert body.length(Dim(tuple(3 * size for size in H.sizes))) == [Length("x", 1, times=3)]
    assert body.length(both) == [Length("x", 0), Length("x", 1)]
    with pytest.raises(UnknownLengthError):
        body.length(Dim((7, 8, 10, 9)))


def test_one_shape_is_read_once(place: tuple[Body, Rewriter]) -> None:
    body, rw = place

    body.shape(rw, [N, 3, H])
    body.shape(rw, [H, 5])

    assert [node.op_type for node in rw.preceding] == [
        "Shape",
        "Gather",
        "Shape",
        "Gather",
        "Concat",
        "Concat",
    ]
