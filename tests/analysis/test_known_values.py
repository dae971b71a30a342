"""Shape arithmetic that is told without running it is what ONNX Runtime computes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.analysis.known_values import KnownValues, Producers
from onnx_migrate.analysis.scope import scopes
from onnx_migrate.model.weights import Weights
from tests.harness import run


def of(body: str, weights: str = "", shape: str = "2,3,5,7") -> tuple[onnx.ModelProto, object]:
    text = f"""<ir_version: 8, opset_import: ["":15]>
g (float[{shape}] x) => (float[k] y)
<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] end = {{4}}, int64[2] pair = {{3, 2}},
 float[2] wanted = {{9., 4.}}, int64[2] minus = {{-7, 3}}{weights}> {{ {body} }}"""
    proto = onnx.parser.parse_model(text)
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    return proto, KnownValues(scope, Producers())


@pytest.mark.parametrize(
    "body",
    [
        "n = Shape(x) y = Cast<to = 1>(n)",
        "n = Shape<start = 1>(x) y = Cast<to = 1>(n)",
        "n = Shape(x) m = Slice(n, two, end) f = Cast<to = 1>(m) y = Div(wanted, f)",
        "n = Shape(x) m = Gather(n, pair) q = Div(m, pair) y = Cast<to = 1>(q)",
        "q = Div(minus, pair) y = Cast<to = 1>(q)",
        "n = Shape(x) m = Slice(n, zero, two) c = Concat<axis = 0>(m, pair) y = Cast<to = 1>(c)",
        "f = Cast<to = 1>(minus) g = Mul(f, wanted) h = Floor(g) y = Ceil(h)",
        "a = Add(pair, minus) b = Sub(a, pair) c = Cast<to = 1>(b) d = Max(c, wanted) y = Min(d, wanted)",
        "s = ReduceMin<keepdims = 1>(wanted) l = Less(s, wanted) y = Cast<to = 1>(l)",
        "u = Unsqueeze(wanted, zero) y = Squeeze(u, zero)",
    ],
)
def test_equal_to_what_runs(body: str) -> None:
    proto, found = of(body)
    x = np.zeros((2, 3, 5, 7), np.float32)

    value = found.value("y")

    assert value is not None
    np.testing.assert_array_equal(value, run(proto, {"x": x})[0])


def test_part_of_a_shape_is_enough() -> None:
    _, found = of(
        "n = Shape(x) m = Slice(n, two, end) y = Cast<to = 1>(m) k = Slice(n, zero, two)", shape="N,3,5,7"
    )

    assert found.value("y").tolist() == [5, 7]
    assert found.value("k") is None
    assert found.value("n") is None


@pytest.mark.parametrize("body", ["y = Exp(wanted)", "y = Identity(x)", "n = Shape(x) y = Cast<to = 1>(n)"])
def test_what_is_not_known(body: str) -> None:
    _, found = of(body, shape="N,C,H,W")

    assert found.value("y") is None
