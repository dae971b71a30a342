"""Gemm: below opset 11 the third input is required; with MatMul for a target that lacks it."""

from __future__ import annotations

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Value, formula


@formula("Gemm", since=11)
def gemm_11_down(op: Op, a: Value, b: Value, c: Value | None) -> Value:
    """`C` is given.

    What changes: where it was left out, a constant is added: a negative zero for floats, a zero for integers.

    Why equal: x + -0 is x for every float, a negative zero included, which + 0 is not.
    """
    if c is not None:
        return op.itself(a, b, c)
    zero = -0.0 if a.numpy_type.kind == "f" else 0
    return op.itself(a, b, np.array([zero]).astype(a.numpy_type), beta=None)


@formula("Gemm", since=1, exactness=EQUIVALENT)
def gemm(
    op: Op,
    a: Value,
    b: Value,
    c: Value | None,
    *,
    alpha: float,
    beta: float,
    transA: int,  # noqa: N803
    transB: int,  # noqa: N803
) -> Value:
    """It is alpha * A @ B + beta * C.

    Why equal: the text. Runtimes may add in another order. 1e-6 of the largest number seen.
    """
    a = op.Transpose(a, perm=[1, 0]) if transA else a
    b = op.Transpose(b, perm=[1, 0]) if transB else b
    product = a @ b
    if alpha != 1:
        product = product * alpha
    if c is None:
        return product
    return product + (c if beta == 1 else c * beta)
