"""Det downwards: matrices of one to four rows."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower


def det(shape: str) -> str:
    dims = ", ".join("abc"[: shape.count(",") - 1])
    return f"""<ir_version: 6, opset_import: ["": 11]>
        graph (float[{shape}] x) => (float[{dims}] y) {{ y = Det (x) }}"""


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("batch", ["", "3, ", "2, 3, "])
def test_sizes(batch: str, size: int) -> None:
    refused = {"unranked": "needs-rank", "symbolic": "needs-shape"}
    check_down(det(f"{batch}{size}, {size}"), 10, 9, 7, refused=refused, specials=False, rtol=1e-5, atol=1e-4)


def test_specials_of_one_row() -> None:
    x = {"x": np.array([[[np.nan]], [[-0.0]], [[np.inf]]], np.float32)}
    check_down(det("3, 1, 1"), 10, feeds=x, variants=("plain",))


def test_larger_ones_are_refused() -> None:
    with pytest.raises(CannotMigrate, match="these have 5") as caught:
        lower(det("5, 5"), 10)
    assert caught.value.code == "no-equal"
