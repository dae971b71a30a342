"""Which weights onnxsim is given by value, and which by type and shape alone."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.errors import PassError
from onnx_migrate.files import load
from tests.harness import model

LARGE = 17_000
"""Elements of a float tensor that is neither inline nor small."""


def choose(text: str, limit: int = 0, **sizes: tuple[int, ...]):  # type: ignore[no-untyped-def]
    """Divide the weights of a model whose initializers have these shapes."""
    from onnx_migrate.passes.simplify.values_needed import divide

    source = model(f'<ir_version: 8, opset_import: ["":17]> {text}')
    for name, shape in sizes.items():
        source.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    return divide(load(source), limit)


def test_a_model_within_the_limit_is_given_whole() -> None:
    text = "g (float[N,1] x) => (float[N,17000] y) { y = MatMul(x, w) }"

    assert choose(text, 4 * LARGE, w=(1, LARGE)).hidden == set()
    assert choose(text, 4 * LARGE - 1, w=(1, LARGE)).hidden == {"w"}


def test_of_a_larger_one_small_weights_come_first_and_then_those_that_are_folded() -> None:
    text = "g (float[1] x) => (float[17000] y) { a = Add(x, w)  t = Neg(v)  b = Add(a, t)  y = Add(b, s) }"
    sizes = {"w": (LARGE,), "v": (LARGE,), "s": (2000,)}

    both = choose(text, 4 * LARGE + 8000, **sizes)
    small = choose(text, 8000, **sizes)
    neither = choose(text, 7999, **sizes)

    assert (both.hidden, both.unfolded) == ({"w"}, ())
    assert (small.hidden, small.unfolded, small.hidden_bytes) == ({"w", "v"}, ("v",), 8 * LARGE)
    assert neither.hidden == {"w", "v", "s"}


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ("c = Conv(x, w)  y = BatchNormalization(c, k, k, k, k)", True),
        ("c = Conv(x, w)  y = Mul(c, k)", True),
        ("c = Conv(x, w)  y = Mul(k, c)", True),
        ("c = Mul(x, k)  y = Conv(c, w)", True),
        ("c = Conv(x, w)  y = Relu(c)", False),
        ("c = Conv(x, w)  s = Sigmoid(c)  y = Mul(c, s)", False),
        ("t = Cast<to = 1>(w)  c = Conv(x, t)  y = Relu(c)", True),
        ("s = Shape(w)  y = Reshape(x, s)", False),
        ("q = QuantizeLinear(w, k)  d = DequantizeLinear(q, k)  y = Conv(x, d)", False),
        ("t = com.acme.Thing(w)  y = Conv(x, t)", False),
    ],
)
def test_only_what_a_fold_computes_with_is_needed(body: str, needed: bool) -> None:
    text = f"g (float[1,10,9,9] x) => (float[1,10,9,9] y) {{ {body} }}"

    choice = choose(text, 4 * LARGE + 4, w=(10, 10, 10, 17), k=(1,), spare=(LARGE,))

    assert choice.hidden == ({"spare"} if needed else {"spare", "w"})


def test_a_constant_counts_as_a_weight() -> None:
    source = model("17 (float[1] x) => (float[17000] y) { y = Add(x, k) }")
    value = numpy_helper.from_array(np.ones(LARGE, np.float32))
    source.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["k"], value=value))
    from onnx_migrate.passes.simplify.values_needed import divide

    assert divide(load(source), 0).hidden == {"k"}


def test_weights_without_a_place_outside_are_always_given() -> None:
    text = """g (bool c, float[1] x) => (float[17000] y, float[17000] w) {
      y = If (c) <then_branch = t () => (float[17000] p) { p = Add(x, w) }, else_branch = e () => (float[17000] q)
        { q = Sub(x, w) }> }"""

    with pytest.raises(
        PassError, match="68,000 bytes of weights are in sub-graphs, in functions or outputs"
    ) as caught:
        choose(text, w=(LARGE,))

    assert caught.value.code == "not-simplified"
    assert choose(text, 4 * LARGE, w=(LARGE,), v=(LARGE,)).hidden == {"v"}
