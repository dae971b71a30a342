"""What is added to the scores of an Attention: masks, windows, lengths of keys, and rows in which all is hidden."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import model, random_feeds, run
from tests.lowering import check_down, lower
from tests.passes.steps.test_attention import CACHE, FAR, FLAT, FOUR, HEADS, by_reference, check, text


@pytest.mark.parametrize(
    "mask", ["float[3,5]", "float[2,1,3,5]", "float[4,3,5]", "bool[3,5]", "bool[2,4,3,5]"]
)
def test_masks(mask: str) -> None:
    check(text(23, FOUR, "", mask=mask), *FAR, by_text=True)
    check(text(23, FOUR, "is_causal = 1", mask=mask), 22, 13, by_text=True)


def test_a_row_in_which_all_is_hidden_gives_zeros() -> None:
    hidden = np.array([[True] * 5, [False] * 5, [False, True, False, True, True]])
    for outputs, mode in (("y", 0), ('y, "", "", qk', 3)):
        source = text(23, FOUR, f"qk_matmul_output_mode = {mode}", outputs, mask="bool[3,5]")
        check(source, 22, 13, by_text=True, feeds={"m": hidden})
        result = run(lower(source, 22)[0], {**random_feeds(model(source)), "m": hidden})
        assert not result[0][:, :, 1].any()


def test_lengths_of_keys() -> None:
    lengths = {"n": np.array([5, 2])}
    for attributes in ("is_causal = 0", "is_causal = 1"):
        for mask in ("", "float[3,5]", "bool[3,4]", "float[2,1,3,5]"):
            source = text(24, {**FOUR, "n": [2]}, attributes, mask=mask)
            check(source, 23, 22, 13, by_text=True, feeds=lengths)


def test_a_query_before_all_keys_gives_zeros() -> None:
    check(text(24, {**FOUR, "n": [2]}, "is_causal = 1"), 23, 13, by_text=True, feeds={"n": np.array([1, 0])})


@pytest.mark.parametrize("mask", ["float[3,4]", "bool[2,4,3,3]", "float[3,5]", "bool[3,1]"])
def test_a_mask_that_is_shorter_than_the_keys(mask: str) -> None:
    lowered = check_down(text(24, FOUR, mask=mask), 23, variants=("plain",), rtol=2e-5, atol=2e-6,
                         expected=by_reference(text(24, FOUR, mask=mask)))  # fmt: skip
    assert [node.op_type for node in lowered.graph.node] == (["Pad"] if "5]" not in mask else []) + [
        "Attention"
    ]
    check(text(24, FOUR, mask=mask), 23, 22, 13, by_text=True)
    check(text(24, FLAT, HEADS, mask=mask), 23, 22, by_text=True)
    check(text(24, {**FOUR, **CACHE}, "", "y, key, value", mask=mask), 23, 22, by_text=True)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(("left", "right"), [(1, -1), (-1, 1), (1, 0), (0, 2)])
def test_windows(left: int, right: int, causal: int) -> None:
    attributes = f"left_window_size = {left}, right_window_size = {right}, is_causal = {causal}"
    check(text(25, FOUR, attributes), 24, 22, 13, by_text=True)
    check(text(25, {**FOUR, **CACHE}, attributes, "y, key, value", mask="bool[3,7]"), 24, 13, by_text=True)
    check(text(25, {**FOUR, "n": [2]}, attributes), 24, 13, by_text=True, feeds={"n": np.array([5, 3])})
