"""Attention without windows, without lengths of keys, and written out."""

from __future__ import annotations

from typing import Any

import pytest

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import model, random_feeds, reference
from tests.lowering import check_down, lower

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
    return f"""<ir_version: 10, opset_import: ["": {opset}]> graph ({", ".join(inputs)}) => ({declared})
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
    check(
        text(23, FOUR, "softmax_precision = 1", dtype=dtype),
        22,
        13,
        rtol=tolerance,
        atol=2e-3,
        by_text=dtype == "double",
    )


def test_a_node_of_24_without_what_it_added_stays() -> None:
    lowered = check_down(text(24, FOUR, "is_causal = 1"), 23, rtol=1e-6, atol=1e-6, specials=False)
    assert [node.op_type for node in lowered.graph.node] == ["Attention"]


def test_no_window() -> None:
    lowered = check_down(
        text(25, FOUR, "left_window_size = -1"), 24, rtol=1e-6, atol=1e-6,
        expected=by_reference(text(25, FOUR)), variants=("plain",),
    )  # fmt: skip
    assert not lowered.graph.node[0].attribute
    check(text(25, FOUR, "is_causal = 1"), 24, 22, by_text=True)
