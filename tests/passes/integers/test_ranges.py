"""The range of each value holds all numbers that ONNX Runtime computes for it, of inputs at the ends of their types too."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx_migrate.passes.integers.ranges import Ranges, fits, ranges_of

from onnx_migrate.facts.typed_graph import Frame, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.files import load
from tests.harness import model, run

HEAD = """18 (int8[2,6] a, uint8[2,6] b) => (y)
  <int64 zero = {0}, int64 one = {1}, int64[1] ones = {1}, int64[1] two = {2}, int64 four = {4}, int64[1] four1 = {4},
   int64[2] pads = {1, 1}, int64[2] twice = {2, 1}, float half = {0.5}, int64 depth = {5}, int64[2] values = {-7, 9},
   int64[12] flat = {5, -9, 0, 3, 7, -2, 1, 1, 4, 8, -6, 2}, int64[2,6] places = {0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0}> {
  i = Cast <to = 7> (a)  j = Cast <to = 7> (b)  k = Add (j, one)
  e = Cast <to = 1> (a)  g = Mul (e, half)  h = Cast <to = 1> (b) """
"""Of `a`, `i` is from -128 to 127; of `b`, `j` is from 0 to 255, and `h` too; `g` is from -64 to 63.5."""

BODIES = """
y = Add (i, j)
y = Sub (i, j)
y = Mul (i, j)
y = Mul (i, i)
y = Div (i, k)
y = Div (j, k)
y = Mod (i, k)
n = Neg (k) y = Div (i, n)
n = Neg (k) y = Mod (j, n)
y = Mod <fmod = 1> (i, k)
m = Mod (j, four) y = Pow (i, m)
y = BitwiseAnd (i, j)
y = BitwiseOr (i, j)
y = BitwiseXor (i, j)
y = BitwiseNot (i)
y = Neg (i)
y = Abs (i)
y = Relu (i)
y = Sign (i)
y = Min (i, j)
y = Max (i, j)
y = Clip (i, zero, four)
y = Clip (i, four)
y = CumSum (i, one)
y = ReduceSum (i, ones)
y = ReduceSum (i)
y = ReduceMean (g, ones)
y = ReduceMax (i, ones)
y = ReduceMin (i)
t = Transpose (j) y = MatMul (i, t)
y = ArgMax <axis = 1> (i)
y = ArgMin (i)
v, y = TopK (i, two)
y, w = TopK (i, two)
y = NonZero (i)
y, p, q, r = Unique (i)
y = Shape (i)
y = Size (i)
s = Shape (i) y = ConstantOfShape (s)
y = Trilu (k)
y = Pad (k, pads, zero, ones)
y = Pad <mode = "edge"> (i, pads, , ones)
y = ScatterElements <axis = 1> (i, places, j)
y = ScatterElements <reduction = "add", axis = 1> (i, places, j)
y = ScatterElements <reduction = "max", axis = 1> (i, places, j)
c = Less (i, zero) y = Where (c, i, k)
y = Concat <axis = 1> (i, j)
y = Tile (i, twice)
m = Mod (j, depth) y = OneHot (m, depth, values)
m = Mod (j, depth) y = Gather (flat, m)
s = Squeeze (four1) y = Range (zero, s, one)
y = Floor (g)
y = Ceil (g)
y = Round (g)
y = Sqrt (h)
m = Mod (i, four) f = Cast <to = 1> (m) y = Exp (f)
l = Add (h, half) y = Log (l)
l = Add (h, half) y = Div (g, l)
y = Relu (g)
y = Neg (g)
y = Abs (g)
y = Mul (g, h)
y = Cast <to = 7> (g)
y = Cast <to = 6> (j)
y = Cast <to = 3> (j)
y = Cast <to = 9> (i)
y = Sub (g, h)
""".strip().splitlines()

UNKNOWN = {'y = ScatterElements <reduction = "add", axis = 1> (i, places, j)'}
"""Those of which nothing is known, or numbers beyond int32."""


def ranges_in(source: onnx.ModelProto) -> tuple[Frame, Ranges]:
    """Return the main graph of a model, and the ranges of its values."""
    types = TypeTable(source)
    (frame,) = frames_of(source, types)
    return frame, ranges_of(frame, types, load(source).weights, ports=False)


@pytest.mark.parametrize("body", BODIES)
def test_ranges_hold_what_is_computed(body: str) -> None:
    source = model(f"{HEAD}{body} }}")
    frame, ranges = ranges_in(source)
    assert fits(ranges.of(frame.find("y")) or (-math.inf, math.inf)) == (body not in UNKNOWN)
    inner = [name for node in source.graph.node for name in node.output if name]
    del source.graph.output[:]
    source.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    rng = np.random.default_rng(0)
    for a, b in ((-128, 255), (127, 0), (-128, 0), (127, 255), (0, 1), (None, None), (None, None)):
        feeds = {
            "a": rng.integers(-128, 128, (2, 6), np.int8) if a is None else np.full((2, 6), a, np.int8),
            "b": rng.integers(0, 256, (2, 6), np.uint8) if b is None else np.full((2, 6), b, np.uint8),
        }
        for name, numbers in zip(inner, run(source, feeds), strict=True):
            interval = ranges.of(frame.find(name))
            if interval is not None and numbers.size:
                assert interval[0] <= numbers.min() <= numbers.max() <= interval[1], (name, interval)


@pytest.mark.parametrize("scores", ["float[1,N,6]", "float[]"])
def test_classes_of_boxes_are_not_known_where_the_scores_sizes_are_not(scores: str) -> None:
    source = model(f"17 (float[1,6,4] b, {scores} s) => (y) {{ y = NonMaxSuppression (b, s) }}")
    frame, ranges = ranges_in(source)
    assert not fits(ranges.of(frame.find("y")) or (0, 0))
