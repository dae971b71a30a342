"""Dims that follow though onnx's inference gives up, compared with the shapes that the model has when it runs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from onnx_migrate.facts.scope import scopes
from onnx_migrate.facts.shape_arithmetic import OPERATORS
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.model.model import Model
from tests.harness import model

OPEN: dict[str, tuple[str, tuple[int | None, ...] | None]] = {
    "Slice, one axis": ("y = Slice (x, zero, n1, two)", (4, 6, None)),
    "Slice, the first axes": ("y = Slice (x, zero, n1)", (None, 6, 8)),
    "Slice, two axes, one end known": ("y = Slice (x, zeros, n_and_3, axes)", (None, 6, 3)),
    "Slice, a negative step": ("y = Slice (x, last, far, two, back)", (4, 6, 8)),
    "Slice, computed axes": ("y = Slice (x, zero, one, n1mod)", (None, None, None)),
    "Pad, one axis": ("p = Concat <axis = 0> (n1, n1) y = Pad (x, p, , two)", (4, 6, None)),
    "Pad, all axes": ("p = Concat <axis = 0> (zeros, n1, zeros, one) y = Pad (x, p)", (4, 6, None)),
    "TopK": ("y, i = TopK <axis = 1> (x, n1)", (4, None, 8)),
    "Split": ("p = Concat <axis = 0> (n1, rest) y, z = Split <axis = 1> (x, p)", (4, None, 8)),
    "ReduceSum, computed axes": ("y = ReduceSum (x, n1mod)", (None, None, None)),
    "ReduceSum, computed axes that go": ("y = ReduceSum <keepdims = 0> (x, n1mod)", (None, None)),
    "Resize, computed sizes": ("s = Concat <axis = 0> (four, six, n1) y = Resize (x, , , s)", (4, 6, None)),
    "Resize, axes": ("y = Resize <axes = [2]> (x, , , n1)", (4, 6, None)),
    "Tile": ("r = Concat <axis = 0> (one, two, n1) y = Tile (x, r)", (4, 12, None)),
    "Compress": ("y = Compress <axis = 2> (x, mask)", (4, 6, None)),
    "OneHot": ("dep = Squeeze (n1) y = OneHot (ids, dep, values)", (5, None)),
    "Squeeze, computed axes": ("u = Unsqueeze (x, zero) y = Squeeze (u, n1zero)", (None, None, None)),
    "Unsqueeze, computed axes": ("y = Unsqueeze (x, n1mod)", (None, None, None, None)),
    "Reshape": ("s = Concat <axis = 0> (four, n1, minus) y = Reshape (x, s)", (4, None, None)),
    "Reshape, 0 and -1": ("s = Concat <axis = 0> (zero, copied, minus) y = Reshape (x, s)", (4, 6, 8)),
    "Expand": ("s = Concat <axis = 0> (four, six, n1) c = Slice (x, zero, one, two) y = Expand (c, s)", (4, 6, None)),
    "ScatterND": ("y = ScatterND (x, place, row)", (4, 6, 8)),
    "CenterCropPad": ("y = CenterCropPad <axes = [1]> (x, n1)", (4, None, 8)),
    "Concat of a known and an open axis": ("c = Slice (x, zero, n1, two) y = Concat <axis = 1> (c, c)", (4, 12, None)),
    "Gather behind": ("c = Slice (x, zero, n1, two) y = Gather <axis = 1> (c, ids)", (4, 5, None)),
    "Transpose behind": ("c = Slice (x, zero, n1, two) y = Transpose <perm = [2, 0, 1]> (c)", (None, 4, 6)),
}  # fmt: skip

TEXT = """18 (float[4,6,8] x, float[N] d) => (float y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
  int64[1] four = {4}, int64[1] six = {6}, int64[1] minus = {-1}, int64[2] zeros = {0, 0}, int64[1] last = {-1},
  int64[1] far = {-9}, int64[1] back = {-1}, int64[1] three = {3}, int64[2] axes = {0, 2}, int64[5] ids = {0, 1, 2, 1, 0},
  float[2] values = {0, 1}, bool[8] mask = {1, 0, 1, 0, 0, 0, 0, 1}, int64[1,1] place = {1}, float[1,6,8] row, float pi = {3}>
{
  n1 = Shape (d) n1mod = Mod (n1, one) n1zero = Sub (n1mod, n1mod) n_and_3 = Concat <axis = 0> (n1, three)
  rest = Sub (six, n1) xs = Shape (x) copied = Gather (xs, one) BODY
}"""


def built(body: str) -> onnx.ModelProto:
    proto = model(TEXT.replace("BODY", body).replace(", float[1,6,8] row", ""))
    row = onnx.numpy_helper.from_array(np.ones((1, 6, 8), np.float32), "row")
    proto.graph.initializer.append(row)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


@pytest.mark.parametrize("name", OPEN)
def test_axes_that_a_node_does_not_name_keep_their_size(name: str) -> None:
    body, expected = OPEN[name]
    proto = built(body)
    scope = scopes(proto, Model(proto).weights, result_ir_version=proto.ir_version)[0]

    ValueFacts(scope, Producers(), followed=OPERATORS, all_dims=True).find_all(18)
    found = scope.value_type("y").shape

    assert found == expected
    feed = {"x": np.ones((4, 6, 8), np.float32), "d": np.ones(3, np.float32)}
    if found is not None and name not in ("Resize, axes", "CenterCropPad"):
        actual = ReferenceEvaluator(proto).run(None, feed)[0].shape
        assert len(actual) == len(found)
        assert all(dim in (None, size) for dim, size in zip(found, actual, strict=True))
