"""DeformConv downwards: groups, offset groups, masks, padding and strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower


def deform_conv(
    attributes: str = "",
    *,
    groups: int = 1,
    group: int = 1,
    mask: bool = False,
    fed_weights: bool = False,
    size: str = "4, 5",
) -> str:
    extra = f", float[2, {groups * 6}, {size}] m" if mask else ""
    weights = ", ".join(str(round(0.1 * (i % 13) - 0.5, 2)) for i in range(6 * (4 // group) * 6))
    constant = (
        ""
        if fed_weights
        else f"<float[6, {4 // group}, 3, 2] w = {{{weights}}}, float[6] b = {{1, 2, 3, 4, 5, 6}}>"
    )
    inputs = f", float[6, {4 // group}, 3, 2] w, float[6] b" if fed_weights else ""
    return f"""<ir_version: 9, opset_import: ["": 19]>
        graph (float[2, 4, 6, 6] x, float[2, {groups * 12}, {size}] o{extra}{inputs}) => (float[n, c, h, l] y) {constant} {{
          y = DeformConv <group = {group}, offset_group = {groups}{attributes}> (x, w, o, b{", m" if mask else ""})
        }}"""


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("mask", [False, True])
def test_groups(mask: bool, group: int, groups: int) -> None:
    source = deform_conv(groups=groups, group=group, mask=mask)
    check_down(source, 18, 11, 9, rtol=1e-5, atol=1e-5, specials=False)


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        (", pads = [1, 0, 1, 0]", "6, 5"),
        (", strides = [2, 1]", "2, 5"),
        (", pads = [1, 2, 2, 1], strides = [2, 3], dilations = [2, 1]", "3, 3"),
    ],
)
def test_places(attributes: str, size: str) -> None:
    check_down(deform_conv(attributes, size=size, mask=True), 18, 13, rtol=1e-5, atol=1e-5, specials=False)


def test_weights_of_unknown_shape_are_refused() -> None:
    source: Any = deform_conv(fed_weights=True).replace("float[6, 4, 3, 2] w", "float[p, q, r, s] w")
    with pytest.raises(CannotMigrate) as caught:
        lower(source, 18)
    assert caught.value.code == "needs-shape"


def test_an_image_of_one_row() -> None:
    source = """<ir_version: 9, opset_import: ["": 19]>
        graph (float[1, 1, 1, 4] x, float[1, 4, 1, 3] o) => (float[a, b, c, d] y)
        <float[1, 1, 1, 2] w = {1, 2}> { y = DeformConv (x, w, o) }"""
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((1, 1, 1, 4)).astype(np.float32),
        "o": rng.uniform(-1.5, 1.5, (1, 4, 1, 3)).astype(np.float32),
    }
    check_down(source, 18, 9, feeds=feeds, variants=("plain",), rtol=1e-5, atol=1e-5)
