"""Numbers in another type: every bit against NumPy and ml_dtypes, and what counts as lost."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx_migrate.passes.precision.numbers import Extent, converted, floats

from tests.support.skips import Elsewhere, import_or_skip

F16, BF16, F32 = TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT

EDGES = np.array(
    [0, -0.0, 1, -1, 65504, 65519.99, 65520, 1e9, 2**-24, 2**-25, 2**-25 * 1.001, 1e-30, 2**-134, np.inf, -np.inf, 3.4e38, np.nan,
     1 + 2**-8, 1 + 2**-9, 1 + 3 * 2**-9, 1 + 2**-11, 1 + 3 * 2**-12],
    np.float32,
)  # fmt: skip


def samples() -> np.ndarray:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    return np.concatenate([EDGES, bits.view(np.float32)])


def test_float16_is_rounded_to_the_nearest() -> None:
    values = samples()
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(np.float16)

    assert converted(values, F16) == expected.tobytes()


def test_bfloat16_is_rounded_to_the_nearest() -> None:
    ml_dtypes = import_or_skip("ml_dtypes", Elsewhere.NEWEST)
    values = samples()
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(ml_dtypes.bfloat16)
    given = np.frombuffer(converted(values, BF16), ml_dtypes.bfloat16)
    numbers = ~np.isnan(values)

    assert given[numbers].tobytes() == expected[numbers].tobytes()
    assert np.isnan(given[~numbers].astype(np.float32)).all()


@pytest.mark.parametrize("kind", [F16, BF16])
def test_every_number_of_a_narrow_type_comes_back(kind: int) -> None:
    raw = np.arange(2**16, dtype="<u2").tobytes()
    wide = floats(raw, kind)
    back = np.frombuffer(converted(wide, kind), "<u2")
    numbers = ~np.isnan(wide)

    assert (back[numbers] == np.arange(2**16)[numbers]).all()


@pytest.mark.parametrize(
    ("values", "kind", "lost"),
    [
        ([1e7, 1], F16, "1e+07 overflows"),
        ([65519], F16, ""),
        ([65520], F16, "65520 overflows"),
        ([1e-12], F16, "1e-12 becomes 0"),
        ([1e-12, 1.0], F16, ""),
        ([np.inf, 1.0], F16, ""),
        ([0.0], F16, ""),
        ([1e7, 1e-12], BF16, ""),
        ([3.4e38], BF16, "3.4e+38 overflows"),
        ([1e7], F32, ""),
    ],
)
def test_what_is_lost(values: list[float], kind: int, lost: str) -> None:
    extent = Extent(kind)
    extent.add(np.array(values, np.float32))

    assert extent.lost == lost
