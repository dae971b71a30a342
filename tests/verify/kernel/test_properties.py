"""Random arrays and allowances: what the kernel accepts obeys the inequality of rule 2, computed here by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onnx_migrate.verify.kernel import Measurement, Observation, Tolerance, judge

_FLOATS = st.sampled_from(["float16", "float32", "float64"])
_FLOOR = {"float16": 4 * 2.0**-10, "float32": 8 * 2.0**-23, "float64": 8 * 2.0**-52}
_CEILING = {"float16": 2e-2, "float32": 1e-2, "float64": 1e-2}
_SMALLEST = {"float16": 2.0**-23, "float32": 2.0**-148, "float64": 2.0**-1073}


@st.composite
def _pairs(draw):
    kind = draw(_FLOATS)
    width = {"float16": 16, "float32": 32, "float64": 64}[kind]
    numbers = st.floats(-1000, 1000, width=width) | st.sampled_from([0.0, -0.0, np.nan, np.inf, -np.inf])
    before = draw(arrays.arrays(kind, st.integers(0, 8), elements=numbers))
    step = draw(st.floats(0, 0.05))
    signs = draw(arrays.arrays("int8", before.shape, elements=st.integers(-1, 1)))
    scale = np.max(np.abs(before[np.isfinite(before)]), initial=0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        after = (before.astype("float64") + signs * step * float(scale)).astype(kind)
    return before, after, draw(st.floats(0, 1)), draw(st.floats(0, 1))


@given(_pairs())
@settings(max_examples=300, deadline=None)
def test_the_same_implies_the_inequality(pair):
    before, after, largest, typical = pair
    entry = judge(Observation("y", before, after, Tolerance(), Measurement(largest, typical)))
    if entry.problem or entry.doubt:
        return
    a, b = before.astype("float64"), after.astype("float64")
    assert np.array_equal(np.isnan(a), np.isnan(b))
    assert np.array_equal(a[np.isinf(a)], b[np.isinf(b)])
    finite = np.isfinite(a)
    scale = np.max(np.abs(a[finite]), initial=0.0)
    kind = before.dtype.name
    limit = max(_FLOOR[kind] * scale, _SMALLEST[kind], min(10 * largest, _CEILING[kind] * scale))
    assert np.all(np.abs(a[finite] - b[finite]) <= limit)


@given(
    arrays.arrays("int64", 12, elements=st.integers(0, 3)),
    arrays.arrays("int64", 12, elements=st.integers(0, 3)),
    arrays.arrays("bool", 12),
)
@settings(max_examples=200, deadline=None)
def test_integers_that_are_the_same_differ_at_unstable_elements_only(before, after, unstable):
    entry = judge(Observation("y", before, after, Tolerance(), Measurement(unstable=unstable)))
    if not entry.problem and not entry.doubt:
        assert not np.any((before != after) & ~unstable)
        assert np.count_nonzero(unstable[before != after]) <= 1 or np.array_equal(before, after)
