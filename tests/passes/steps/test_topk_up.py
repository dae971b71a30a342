from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check

X = np.array([[3, 1, 3, 2], [0, 5, 5, 5], [-1, -2, np.inf, -np.inf]], np.float32)


@pytest.mark.parametrize(
    ("attributes", "shape"), [("k = 2", "3,2"), ("k = 3, axis = 0", "3,4"), ("k = 1, axis = 1", "3,1")]
)
def test_topk(attributes: str, shape: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 7]> g (float[3,4] x)
        => (float[{shape}] v, int64[{shape}] i)
        {{ v, i = TopK <{attributes}> (x) }}"""
    check(source, to=10, feeds={"x": X})


def test_k_that_is_an_attribute_of_a_function() -> None:
    source = """<ir_version: 8, opset_import: ["": 9, "local": 1]> g (float[3,4] x)
        => (float[3,N] v, int64[3,N] i)
        { v, i = local.Best <count = 2> (x) }
        <opset_import: ["": 9], domain: "local"> Best <count> (a) => (b, c)
        { b, c = TopK <k: int = @count> (a) }"""
    indices = np.argsort(-X, axis=1, kind="stable")[:, :2]
    check(
        source,
        to=12,
        feeds={"x": X},
        expected=[np.take_along_axis(X, indices, 1), indices],
        variants=["plain"],
    )
