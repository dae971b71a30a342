"""No step makes an array as long as an output whose size the model chooses: such a node is refused in little memory."""

from __future__ import annotations

import tracemalloc

import pytest

from onnx_migrate import CannotMigrate, convert_version
from onnx_migrate.rewrite.bounded_arrays import MOST_ELEMENTS, TooManyElements, bounded, bounded_dims
from tests.harness import model


def test_sizes_up_to_the_bound_are_returned() -> None:
    assert bounded(MOST_ELEMENTS) == MOST_ELEMENTS
    assert bounded_dims([2, 0, 1 << 62]) == (2, 0, 1 << 62)
    with pytest.raises(
        TooManyElements, match="a constant of 33,554,433 elements, and 33,554,432 are the most"
    ):
        bounded(MOST_ELEMENTS + 1)
    with pytest.raises(MemoryError):
        bounded_dims([1 << 20, 1 << 20])


RESIZES = {
    "linear": ('Resize <mode = "linear"> (w, "", "", big)', 13, 9),
    "cubic": ('Resize <mode = "cubic"> (w, "", "", big)', 13, 9),
    "align": (
        'Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (w, "", "", big)',
        13,
        10,
    ),
    "antialias": ('Resize <mode = "linear", antialias = 1> (w, "", "", big)', 18, 17),
}


@pytest.mark.parametrize("name", RESIZES)
def test_a_resize_to_a_huge_size_is_refused_in_little_memory(name: str) -> None:
    node, opset, target = RESIZES[name]
    proto = model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[1,1,3,3] w) => (y)
        <int64[4] big = {{1, 1, 2147483648, 2147483648}}> {{ y = {node} }}"""
    )
    tracemalloc.start()
    with pytest.raises(CannotMigrate, match="needs too much memory: a constant of"):
        convert_version(proto, target)
    assert tracemalloc.get_traced_memory()[1] < 1 << 28
    tracemalloc.stop()
