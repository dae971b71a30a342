"""One-node models of GroupQueryAttention and DecoderMaskedMultiHeadAttention, with caches of several lengths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tests.passes.contrib.level_1 import floats, integers
from tests.passes.contrib.one_node import Case

B, N, K, H = 2, 4, 2, 16

near = partial(Case, opsets=(17, 23), within=1e-6)


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
    return near(
        "GroupQueryAttention", given, attributes, ("cos", "sin"), ("y", "pk", "pv"), label=name, fixed=True
    )


def buffers() -> Iterator[Case]:
    """Yield MultiHeadAttention and its form for a decoder with a shared buffer, also with the beams of a search."""
    for masked, biased, added, beams in product((False, True), repeat=4):
        yield buffer("DecoderMaskedMultiHeadAttention", 1, 4, masked, biased, added, beams)
    for steps, past, beams in product((1, 3), (0, 4), (False, True)):
        causal = steps == 3
        yield buffer("MultiHeadAttention", steps, past, not causal, True, False, beams and steps == 1, causal)


def buffer(
    operator: str,
    steps: int,
    past: int,
    masked: bool,
    biased: bool,
    added: bool,
    beams: bool,
    causal: bool = False,
) -> Case:
    room, width, batch = 9, N * H, 2 * B
    mask = integers(0, 2, batch, past + steps, dtype="int32")
    mask[:, -1] = 1
    given: dict[str, Any] = {
        "q": floats(batch, steps, width), "k": floats(batch, steps, width), "v": floats(batch, steps, width),
        "m": mask if masked else None, "bias": floats(1, N, steps, past + steps) if added else None,
        "past_k": floats(batch, N, room, H), "past_v": floats(batch, N, room, H),
        "length": np.array([past], np.int32), "beams": None,
        "table": integers(0, 2, batch // 2, 2, room, dtype="int32") if beams else None,
        "b": floats(3 * width) if biased else None,
    }  # fmt: skip
    attributes: dict[str, Any] = {"num_heads": N}
    if operator == "MultiHeadAttention":
        order = ("q", "k", "v", "b", "m", "bias", "past_k", "past_v", "length", "table")
        given, attributes = (
            {name: given[name] for name in order},
            attributes | {"unidirectional": int(causal)},
        )
    else:
        attributes |= {"past_present_share_buffer": 1}
    label = f"{steps}-{past}-{masked}-{biased}-{added}-{beams}"
    return near(
        operator,
        given,
        attributes,
        (),
        ("y", "pk", "pv"),
        label=f"buffer-{label}",
        fixed=biased or (beams and added),
    )


GRIDS = (prompts, decoding, buffers)
