"""Attention up and down: plain, causal, with a cache, with masks, windows and lengths of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import model, random_feeds, reference, run
from tests.steps import check as check_up
from tests.steps import check_down, lower, operators
from tests.support.versions import RUNTIME

FOUR = {"q": [2, 4, 3, 8], "k": [2, 4, 5, 8], "v": [2, 4, 5, 6]}
FLAT = {"q": [2, 3, 32], "k": [2, 5, 32], "v": [2, 5, 24]}
CACHE = {"pk": [2, 4, 2, 8], "pv": [2, 4, 2, 6]}
HEADS = "q_num_heads = 4, kv_num_heads = 4"
FAR = (22, 17, 13, 11, 9)


def text(
    opset: int,
    shapes: dict[str, list[int]],
    attributes: str = "",
    outputs: str = "y",
    mask: str = "",
    dtype: str = "float",
) -> str:
    """Return a model of one Attention; `mask` is the type of its mask, `n` among `shapes` gives the lengths of the keys."""
    names = ["q", "k", "v", "m" if mask else "", *("pk", "pv")]
    names = [name if name in shapes or name == "m" else '""' for name in names] + (
        ["n"] if "n" in shapes else []
    )
    while names[-1] == '""':
        names.pop()
    inputs = [f"{'int64' if name == 'n' else dtype}{shape} {name}" for name, shape in shapes.items()]
    inputs += [f"{mask} m"] if mask else []
    declared = ", ".join(f"{dtype}[{', '.join('abcd'[: len(shapes['q']) if o == 'y' else 4])}] {o}"
                         for o in outputs.split(", ") if o != '""')  # fmt: skip
    return f"""{opset} ({", ".join(inputs)}) => ({declared})
        {{ {outputs} = Attention {f"<{attributes}>" if attributes else ""} ({", ".join(names)}) }}"""


def check(
    source: str, *targets: int, by_text: bool = False, feeds: dict[str, Any] | None = None, **more: Any
) -> None:
    given = {**random_feeds(model(source)), **(feeds or {})}
    if by_text:
        more["expected"] = reference(model(source), given, None)
    if "num_heads" in source and "refused" not in more:
        more["refused"] = {"unranked": "needs-rank"}
    check_down(source, *targets, feeds=given, **{"rtol": 2e-5, "atol": 2e-6, **more})


def by_reference(source: str) -> list[Any]:
    return reference(model(source), random_feeds(model(source)), None)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("shapes", [FOUR, FLAT], ids=["four", "flat"])
def test_plain_and_causal(shapes: dict[str, list[int]], causal: int) -> None:
    heads = f", {HEADS}" if shapes is FLAT else ""
    check(text(23, shapes, f"is_causal = {causal}{heads}"), *FAR)
    check(text(23, shapes, f"is_causal = {causal}, scale = 0.3, softcap = 2.0{heads}"), 22, 13)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("shapes", [FOUR, FLAT], ids=["four", "flat"])
def test_cache(shapes: dict[str, list[int]], causal: int) -> None:
    heads = f", {HEADS}" if shapes is FLAT else ""
    check(text(23, {**shapes, **CACHE}, f"is_causal = {causal}{heads}", "y, key, value"), *FAR)


@pytest.mark.parametrize("causal", [0, 1])
def test_heads_of_k_that_several_of_q_share(causal: int) -> None:
    four = {"q": [2, 6, 3, 8], "k": [2, 2, 5, 8], "v": [2, 2, 5, 6]}
    check(text(23, four, f"is_causal = {causal}"), *FAR)
    flat = {"q": [2, 3, 48], "k": [2, 5, 16], "v": [2, 5, 12]}
    check(text(23, flat, f"is_causal = {causal}, q_num_heads = 6, kv_num_heads = 2"), 22, 13)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_matmul_output(mode: int) -> None:
    source = text(
        23, FOUR, f"qk_matmul_output_mode = {mode}, softcap = 1.5", 'y, "", "", qk', mask="float[3,5]"
    )
    check(source, 22, 13, by_text=mode != 0)  # onnx.reference caps the scores of mode 0 too


def test_hidden_keys_in_the_matmul_output_are_assumed() -> None:
    source = text(23, FOUR, "qk_matmul_output_mode = 2, is_causal = 1", 'y, "", "", qk')
    _, log = lower(source, 22)
    assert [change.exactness for change in log.changes] == [Exactness.ASSUMED]


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_types(dtype: str) -> None:
    tolerance = 2e-3 if dtype == "float16" else 1e-12
    source = text(23, FOUR, "softmax_precision = 1", dtype=dtype)
    check(source, 22, 13, rtol=tolerance, atol=2e-3, by_text=dtype == "double")


def test_a_node_of_24_without_what_it_added_stays() -> None:
    lowered = check_down(text(24, FOUR, "is_causal = 1"), 23, rtol=1e-6, atol=1e-6, specials=False)
    assert operators(lowered) == ["Attention"]


def test_no_window() -> None:
    lowered = check_down(
        text(25, FOUR, "left_window_size = -1"), 24, rtol=1e-6, atol=1e-6,
        expected=by_reference(text(25, FOUR)), variants=("plain",),
    )  # fmt: skip
    assert not lowered.graph.node[0].attribute
    check(text(25, FOUR, "is_causal = 1"), 24, 22, by_text=True)


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
    assert operators(lowered) == (["Pad"] if "5]" not in mask else []) + ["Attention"]
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


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [False, True])
def test_from_23(causal: int, past: bool) -> None:
    more = ", float[1, 2, 2, 4] pk, float[1, 2, 2, 4] pv" if past else ""
    given = ', "", pk, pv' if past else ""
    outputs = ("y, nk, nv", ", float[1, 2, 5, 4] nk, float[1, 2, 5, 4] nv") if past else ("y", "")
    source = f"""23 (float[1, 2, 3, 4] q, float[1, 2, 3, 4] k, float[1, 2, 3, 4] v{more})
            => (float[1, 2, 3, 4] y{outputs[1]})
        {{ {outputs[0]} = Attention <is_causal = {causal}, softcap = 2.0> (q, k, v{given}) }}"""
    check_up(source, to=24, newest=24)
    check_up(source, to=25, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", ["float[3, 5]", "bool[3, 5]"])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_masks_up(mask: str, mode: int) -> None:
    source = f"""23 (float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v, {mask} m)
            => (float[1, 2, 3, 4] y, float[1, 2, 3, 5] p)
        {{ y, "", "", p = Attention <qk_matmul_output_mode = {mode}> (q, k, v, m) }}"""
    check_up(source, to=24, newest=24)
    if (mode, mask[:4]) != (2, "bool") or RUNTIME < (
        1,
        32,
    ):  # the body masks by -inf, the kernel by the lowest float
        check_up(source, to=25, rtol=1e-5, atol=1e-6)
