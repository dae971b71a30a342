"""All limits of the kernel's decisions, each with its unit and its reason. Limits stand only in this file.

`python -m tests.campaigns.proof.constants` multiplies and divides each by ten: a test fails each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Precision:
    """The precision of one floating-point type, and limits for rounding of an output of that type.

    `eps` is the distance from 1 to the next larger number. `least_normal` is the smallest normal number: smaller ones are evenly
    spaced. `floor` is in units in the last place at the output's largest value: any two kernels may differ by so much. `ceiling`
    is a share of that value: if rounding moves an output farther, it looks like a fault.
    """

    eps: float
    least_normal: float
    floor: float
    ceiling: float


PRECISIONS = {
    "float64": Precision(2.0**-52, 2.0**-1022, 8.0, 1e-2),
    "float32": Precision(2.0**-23, 2.0**-126, 8.0, 1e-2),
    "float16": Precision(2.0**-10, 2.0**-14, 4.0, 2e-2),
    "bfloat16": Precision(2.0**-7, 2.0**-126, 2.0, 5e-2),
}
"""The floors are those of sums: kernels add in different orders, and add halves in float32. The ceilings are a product decision.

The largest rounding that public models show between ONNX Runtime's two optimisation levels is 0.4 % in float32.
"""

COARSEST = Precision(2.0**-3, 0.0, 1.0, 0.25)
"""Floats of 8 bits and less: neighbours are up to an eighth apart."""

NOISE_FACTOR = 10.0
"""An element may differ by so many times the difference between two runs of the original: two runs only sample rounding."""

SUBNORMAL_STEPS = 2.0
"""How many steps below the least normal number are always allowed: flushing and one rounding."""

AGAIN_FACTOR = 2.0
"""Another run may show so many times a difference that is shown to be rounding, because it adds rounding of its own."""

DECISIONS = 0.01
"""The share of an output's discrete elements that rounding may decide, one element at least: more is not determined."""

QUANTISED_STEP = 1
"""An int8 or uint8 element of a quantised model may differ by so many steps, in at most `DECISIONS` of the elements."""

QUANTISED_CEILING = 0.05
"""The share of those elements that may differ by a step if the original itself changes half as many between its own runs."""

COMPARED = 0.5
"""The share of an output's elements that one feed at least must compare: a verdict on less is none."""

KERNEL_ULPS = 8.0
"""One node may differ from the same inputs by so many units in the last place at a value's largest element."""

UNCLAIMED_ULPS = 64.0
"""The same if no pass claims equal bits: another tool may write one node as several."""

NEIGHBOURS = 0.01
"""The share of float16 elements that one node may round to the neighbouring number: it computes in float32, rounds once."""

SIMPLIFIED_ULPS = 4.0
"""Simplification may move an output by so many units in the last place of its type, at its largest value."""

SIMPLIFIED_SHARE = 1e-5
"""Simplification may move a float32 output by this share of its largest value."""

SATURATED = 1e-3
"""An output that never exceeds 1 and is smaller than this share of it on one feed is rounded relative to the other feeds."""


def precision_of(dtype: np.dtype[Any]) -> Precision:
    """Return the precision of a floating-point type, that of its parts for a complex one."""
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)
    return PRECISIONS.get(name, COARSEST)
