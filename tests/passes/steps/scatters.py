"""Scatters with a reduction, of indices that tests give, and what they are fed."""

from __future__ import annotations

import numpy as np

SHAPELESS = {"unranked": "needs-rank"}


def reduced(
    operator: str, reduction: str, indices: str, *, shape: str = "[4, 3]", updates: str = "[2, 3]"
) -> str:
    """Return a model of one scatter; `indices` declares the constant i."""
    return f"""<ir_version: 8, opset_import: ["": 18]>
        graph (float{shape} x, float{updates} u) => (float{shape} y)
        <{indices}> {{ y = {operator} <reduction = "{reduction}"> (x, i, u) }}"""


FEEDS = {
    "x": np.array([[1, -2, 3], [4, 5, -0.0], [-7, 8, 9], [0.5, 11, 12]], np.float32),
    "u": np.array([[3, 5, -7], [0.25, -2, np.inf]], np.float32),
}
BY_ELEMENT = "int64[2, 3] i = {0, 1, 2, 2, 3, 0}"
BY_ROW = "int64[2, 1] i = {3, 1}"
