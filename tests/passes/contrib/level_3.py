"""One-node models of ONNX Runtime's attentions, with all kinds of masks, caches and biases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tests.passes.contrib.level_1 import floats, integers
from tests.passes.contrib.level_2 import scale, small, zero
from tests.passes.contrib.one_node import Array, Case

B, S, N, H = 2, 5, 2, 4

near = partial(Case, opsets=(11, 17, 23), within=1e-6)


def masks(total: int, queries: int = S) -> dict[str, Array | None]:
    """Return a mask of each kind."""
    flat = integers(0, 2, B, total, dtype="int32")
    flat[:, 0] = 1
    return {
        "none": None,
        "keys": flat,
        "matrix": integers(0, 2, B, queries, total, dtype="int32"),
        "lengths": np.array([total - 2, total], np.int32),
        "ends": np.array([total - 1, total, 1, 0], np.int32),
        "one": np.ones((B, 1), np.int32),
        "packed": np.array([total - 2, total, 0, queries, 2 * queries, 0, total, 2 * total], np.int32),
    }


def attentions() -> Iterator[Case]:
    """Yield Attention with weights."""
    width, hidden = 6, N * H
    w, b = floats(width, 3 * hidden), floats(3 * hidden)
    for causal, cached, (kind, mask), biased in product((0, 1), (0, 3), masks(S).items(), (False, True)):
        total = S + cached
        mask = masks(total)[kind]
        given = {
            "x": floats(B, S, width), "w": w, "b": b if biased else None, "m": mask,
            "past": floats(2, B, N, cached, H) if cached else None,
            "more": floats(B if causal else 1, 1 if cached else N, S, total) if biased and not cached else None,
        }  # fmt: skip
        attributes: dict[str, Any] = {"num_heads": N, "unidirectional": causal}
        attributes |= {"scale": 0.3} if biased else {}
        attributes |= {"mask_filter_value": -50.0} if causal else {}
        outputs = ("y", "present") if cached or biased else ("y",)
        label = f"{causal}-{cached}-{kind}-{biased}"
        yield near("Attention", given, attributes, ("w", "b"), outputs, label=label)
    sizes = [hidden, hidden, N * 6]
    w, b = floats(width, sum(sizes)), floats(sum(sizes))
    given = {"x": floats(B, S, width), "w": w, "b": b}
    yield near("Attention", given, {"num_heads": N, "qkv_hidden_sizes": sizes}, ("w", "b"), label="sizes")
    for causal, cached, (kind, _), columns in product((0, 1), (0, 3), masks(S).items(), (False, True)):
        if kind in ("one", "packed"):
            continue
        given = {
            "x": integers(0, 256, B, S, width, dtype="uint8"), "w": small("int8", width, 3 * hidden), "b": floats(3 * hidden),
            "xs": scale(0.0131), "ws": np.asarray(np.linspace(0.01, 0.02, 3 * hidden), "float32") if columns else scale(0.0127),
            "m": masks(S + cached)[kind], "xz": zero("uint8", 3), "wz": np.zeros(3 * hidden if columns else (), "int8"),
            "past": floats(2, B, N, cached, H) if cached else None,
        }  # fmt: skip
        outputs = ("y", "present") if cached else ("y",)
        constants = ("w", "b", "xs", "ws", "xz", "wz")
        label = f"{causal}-{cached}-{kind}-{columns}"
        yield near(
            "QAttention", given, {"num_heads": N, "unidirectional": causal}, constants, outputs, label=label
        )


def multi_head() -> Iterator[Case]:
    """Yield MultiHeadAttention."""
    hidden = N * H
    for causal, cached, kind, biased, crossed in product(
        (0, 1), (0, 3), ("none", "keys", "matrix", "lengths"), (False, True), (0, 7)
    ):
        if crossed and (causal or cached):
            continue
        length = crossed or S
        total = length + cached
        outputs = ("y", "pk", "pv") if cached else ("y",)
        given = {
            "q": floats(B, S, hidden), "k": floats(B, length, hidden), "v": floats(B, length, hidden),
            "b": floats(3 * hidden) if biased else None, "m": masks(total)[kind],
            "more": floats(1, N, S, total) if biased and kind != "keys" else None,
            "pk": floats(B, N, cached, H) if cached else None, "pv": floats(B, N, cached, H) if cached else None,
        }  # fmt: skip
        renamed = {("past_" + name if name in ("pk", "pv") else name): value for name, value in given.items()}
        attributes: dict[str, Any] = {"num_heads": N, "unidirectional": causal} | (
            {"scale": 0.4} if biased else {}
        )
        label = f"{causal}-{cached}-{kind}-{biased}-{crossed}"
        yield near("MultiHeadAttention", renamed, attributes, ("b",), outputs, label=label)
    for kind, biased in product(("none", "keys"), (False, True)):
        given = {
            "q": floats(B, S, hidden), "k": floats(B, N, 7, H), "v": floats(B, N, 7, H),
            "b": floats(3 * hidden) if biased else None, "m": masks(7)[kind],
        }  # fmt: skip
        yield near("MultiHeadAttention", given, {"num_heads": N}, ("b",), label=f"cache-{kind}-{biased}")
    given = {
        "q": floats(B, S, hidden),
        "k": floats(B, S, hidden),
        "v": floats(B, S, hidden),
        "b": None,
        "m": masks(S)["keys"],
    }
    yield near("MultiHeadAttention", given, {"num_heads": N}, (), ("y", "pk", "pv", "qk"), label="scores")
    given = {"q": floats(B, S, hidden), "k": floats(B, S, hidden), "v": floats(B, S, N * 6)}
    yield near("MultiHeadAttention", given, {"num_heads": N}, label="wide-values")
    packed = floats(B, S, N, 3, H)
    yield near(
        "MultiHeadAttention", {"q": packed}, {"num_heads": N}, label="packed", kernel=False,
        expected=[_by_numpy(*(np.moveaxis(packed[:, :, :, at], 1, 2) for at in range(3)))],
    )  # fmt: skip
    query, packed = floats(B, S, N, H), floats(B, 7, N, 2, H)
    yield near(
        "MultiHeadAttention", {"q": query.reshape(B, S, hidden), "k": packed}, {"num_heads": N},
        label="packed-keys", kernel=False,
        expected=[_by_numpy(np.moveaxis(query, 1, 2), *(np.moveaxis(packed[:, :, :, at], 1, 2) for at in range(2)))],
    )  # fmt: skip


def _by_numpy(query: Array, key: Array, value: Array) -> Array:
    """Return an attention of values by head, with the heads side by side."""
    scores = query @ np.swapaxes(key, 2, 3) / math.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    found = weights / weights.sum(-1, keepdims=True) @ value
    return np.asarray(np.moveaxis(found, 1, 2).reshape(found.shape[0], found.shape[2], -1), np.float32)


def rotary() -> Iterator[Case]:
    """Yield RotaryEmbedding."""
    for interleaved, by_heads, offset, part in product((0, 1), (False, True), (False, True), (0, 4)):
        size, longest = 8, 9
        half = (part or size) // 2
        x = floats(B, N, S, size) if by_heads else floats(B, S, N * size)
        places = np.array([2] if part else 2) if offset else integers(0, longest, B, S)
        given = {"x": x, "p": places, "c": floats(longest, half), "s": floats(longest, half)}
        attributes = {"interleaved": interleaved} | (
            {"rotary_embedding_dim": part, "num_heads": N} if part else {}
        )
        label = f"{interleaved}-{by_heads}-{offset}-{part}"
        yield near("RotaryEmbedding", given, attributes, ("c", "s"), label=label)
    for layout, sections, interleaved, by_heads in product(
        (0, 1), ([3, 3, 2], [2, 3, 3]), (0, 1), (False, True)
    ):
        x = floats(B, N, S, 16) if by_heads else floats(B, S, N * 16)
        given = {"x": x, "p": integers(0, 9, 3, B, S), "c": floats(9, 8), "s": floats(9, 8)}
        attributes = {
            "num_heads": N,
            "interleaved": interleaved,
            "mrope_layout": layout,
            "mrope_section": sections,
        }
        attributes |= {"scale": 0.5} if interleaved else {}
        label = f"{layout}-{sections}-{interleaved}-{by_heads}"
        yield near(
            "MRotaryEmbedding", given, attributes, ("c", "s"), opsets=(17, 23), fixed=True, label=label
        )


def linear() -> Iterator[Case]:
    """Yield the linear attentions: with heads that are shared, each rule, and what GatedDeltaNet does to its inputs before."""
    rules = ("linear", "gated", "delta", "gated_delta")
    for (queries, values, keys), rule, past in product(
        ((2, 2, 2), (4, 2, 2), (2, 4, 4), (2, 4, 2)), rules, (False, True)
    ):
        given = {
            "q": floats(B, S, queries * H), "k": floats(B, S, keys * H) / 2, "v": floats(B, S, values * 3),
            "past": floats(B, values, H, 3) if past else None,
            "decay": -abs(floats(B, S, values * H if past else values)) if rule.startswith("gated") else None,
            "beta": abs(floats(B, S, values if past else 1)) / 2 if rule.endswith("delta") else None,
        }  # fmt: skip
        attributes = {"q_num_heads": queries, "kv_num_heads": values, "update_rule": rule}
        label = f"{queries}-{values}-{keys}-{rule}-{past}"
        yield near(
            "LinearAttention", given, attributes, (), ("y", "state"), opsets=(13, 21), fixed=True, label=label
        )
    more = (
        {}, {"qk_l2_norm": 1}, {"gate_activation": "softplus"}, {"gate_activation": "sigmoid", "gate_lower_bound": -3.0},
        {"gate_activation": "kda"}, {"beta_activation": "sigmoid"}, {"scale": 0.3, "update_rule": "gated"},
        {"update_rule": "linear"}, {"update_rule": "delta"},
    )  # fmt: skip
    for place, attributes in enumerate(more):
        rule, axes = str(attributes.get("update_rule", "gated_delta")), ((B, S) if place % 2 else (B * S,))
        each = place in (2, 4, 5)  # a decay for each number of a key
        gated, several = rule.startswith("gated"), "gate_activation" in attributes
        given = {
            "q": floats(*axes, N, H), "k": floats(*axes, N, H) / 4, "v": floats(*axes, 2 * N, 3), "lengths": None,
            "decay": -abs(floats(*axes, 2 * N, *([H] if each else []))) if gated else None,
            "beta": abs(floats(*axes, 2 * N)) / 2 if rule.endswith("delta") else None, "past": floats(B, 2 * N, 3, H),
            "a": floats(2 * N) if several else None, "b": floats(2 * N, *([H] if place == 4 else [])) if several else None,
        }  # fmt: skip
        label = f"{place}-{'-'.join(map(str, attributes.values()))}"
        yield near(
            "GatedDeltaNet", given, attributes, (), ("y", "state"), opsets=(13, 21), fixed=True, label=label
        )


GRIDS = (attentions, multi_head, rotary, linear)
