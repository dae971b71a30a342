"""One-node models of GroupQueryAttention and DecoderMaskedMultiHeadAttention, with caches of several lengths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.passes.contrib.level_1 import floats
from tests.passes.contrib.one_node import Case

OPSETS = (17, 23)
NEAR = 1e-6
B, N, K, H = 2, 4, 2, 16


def prompts() -> Iterator[Case]:
    """Yield GroupQueryAttention of a first prompt, without a cache and with an empty one."""
    steps = 5
    for packed, short, rotary, more in product(
        (False, True),
        (False, True),
        (0, 1),
        ({}, {"softcap": 2.0}, {"local_window_size": 3}, {"smooth_softmax": 1}, {"scale": 0.5}),
    ):
        lengths = np.array([steps - 1, steps - 3 if short else steps - 1], np.int32)
        yield _case(
            steps, 0, lengths, packed=packed, rotary=rotary, cached=False, label=f"prompt-{short}", **more
        )


def decoding() -> Iterator[Case]:
    """Yield GroupQueryAttention with a cache that is full, or longer than needed."""
    for steps, room, uneven, rotary in product((1, 3), (0, 4), (False, True), (0, 1)):
        past = 6
        lengths = np.array([past + steps - 1, past + steps - 1 - (2 if uneven else 0)], np.int32)
        for more in ({}, {"local_window_size": 4}, {"rotary_interleaved": 1} if rotary else {"softcap": 1.5}):
            yield _case(
                steps,
                past + (steps + room if room else 0),
                lengths,
                rotary=rotary,
                label=f"cache-{room}-{uneven}",
                **more,
            )
    for extra in ("bias", "sink", "positions", "equal"):
        lengths = np.array([6, 6], np.int32)
        yield _case(1, 6, lengths, rotary=1, label=extra, extra=extra)
        yield _case(
            5, 0, np.array([4, 4], np.int32), rotary=1, cached=False, label=f"{extra}-prompt", extra=extra
        )


def _case(
    steps: int, room: int, lengths: Any, *, packed: bool = False, rotary: int = 0, cached: bool = True, label: str,
    extra: str = "", **more: Any,
) -> Case:  # fmt: skip
    kv = N if extra == "equal" else K
    lengths = lengths[:1] if cached and steps > 1 else lengths  # the kernel takes one item only
    batch = len(lengths)
    total = int(lengths.max()) + 1
    q, k, v = floats(batch, steps, N * H), floats(batch, steps, kv * H), floats(batch, steps, kv * H)
    given: dict[str, Any] = {
        "q": np.concatenate([q, k, v], -1) if packed else q, "k": None if packed else k, "v": None if packed else v,
        "past_k": floats(batch, kv, room, H) if cached else None,
        "past_v": floats(batch, kv, room, H) if cached else None,
        "lengths": lengths, "total": np.array(total, np.int32),
        "cos": floats(32, H // 2) if rotary else None, "sin": floats(32, H // 2) if rotary else None,
        "places": np.arange(steps)[None].repeat(batch, 0) + total - steps + 3 if extra == "positions" else None,
        "bias": floats(batch, 1, steps, total) if extra == "bias" else None,
        "sink": floats(N) if extra == "sink" else None,
    }  # fmt: skip
    attributes = {"num_heads": N, "kv_num_heads": kv, "do_rotary": rotary, **more}
    name = f"{label}-{steps}-{room}-{packed}-{rotary}-{'-'.join(more)}"
    return Case(
        "GroupQueryAttention",
        given,
        attributes,
        ("cos", "sin"),
        ("y", "pk", "pv"),
        opsets=OPSETS,
        within=NEAR,
        label=name,
        fixed=True,
    )


def buffers() -> Iterator[Case]:
    """Yield DecoderMaskedMultiHeadAttention with a shared buffer."""
    for masked, biased, added in product((False, True), repeat=3):
        past, room, width = 4, 9, N * H
        mask = np.array([[1, 1, 0, 1, 1], [1] * 5], np.int32)
        given = {
            "q": floats(B, 1, width), "k": floats(B, 1, width), "v": floats(B, 1, width), "m": mask if masked else None,
            "bias": floats(1, N, 1, past + 1) if added else None,
            "past_k": floats(B, N, room, H), "past_v": floats(B, N, room, H),
            "length": np.array([past], np.int32), "beams": None, "table": None, "b": floats(3 * width) if biased else None,
        }  # fmt: skip
        attributes = {"num_heads": N, "past_present_share_buffer": 1}
        yield Case(
            "DecoderMaskedMultiHeadAttention", given, attributes, (), ("y", "pk", "pv"), opsets=OPSETS, within=NEAR,
            label=f"{masked}-{biased}-{added}",
        )  # fmt: skip


GRIDS = (prompts, decoding, buffers)
