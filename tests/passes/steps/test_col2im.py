"""Col2Im downwards: overlapping blocks, strides, dilations and padding."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower


def col2im(
    image: list[int], block: list[int], blocks: int, attributes: str = "", *, fed: bool = False
) -> str:
    count, elements = len(image), int(np.prod(block))
    dims = ", ".join("abcde"[: count + 2])
    extra = f", int64[{count}] image" if fed else ""
    image_constant = "" if fed else f"int64[{count}] image = {{{str(image)[1:-1]}}}, "
    return f"""<ir_version: 8, opset_import: ["": 18]>
        graph (float[2, {3 * elements}, {blocks}] x{extra}) => (float[{dims}] y)
        <{image_constant}int64[{count}] block = {{{str(block)[1:-1]}}}> {{ y = Col2Im {attributes} (x, image, block) }}"""


@pytest.mark.parametrize(
    ("image", "block", "blocks", "attributes"),
    [
        ([5, 5], [1, 5], 5, ""),
        ([5, 5], [2, 3], 12, ""),
        ([5, 6], [2, 3], 4, "<strides = [2, 3]>"),
        ([5, 5], [1, 5], 15, "<pads = [0, 1, 0, 1]>"),
        ([6, 6], [2, 2], 25, "<dilations = [1, 1], pads = [0, 0, 0, 0]>"),
        ([6, 6], [2, 2], 4, "<dilations = [1, 5], strides = [2, 1], pads = [1, 1, 0, 0]>"),
        ([7], [3], 4, "<strides = [2], pads = [1, 1]>"),
        ([3, 4, 5], [1, 2, 5], 9, ""),
    ],
)
def test_blocks(image: list[int], block: list[int], blocks: int, attributes: str) -> None:
    if "dilations = [1, 5]" in attributes:
        blocks = 3 * 2
    check_down(col2im(image, block, blocks, attributes), 17, 13, 9)
    check_down(col2im(image, block, blocks, attributes), 7, variants=("plain",))


def test_a_shape_at_run_time_is_refused() -> None:
    with pytest.raises(CannotMigrate, match="image_shape") as caught:
        lower(col2im([5, 5], [1, 5], 5, fed=True), 17)
    assert caught.value.code == "needs-constant"
