"""What is read of arrays: element types, blocks and bits."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify.kernel.arrays import (
    bit_patterns,
    differing_bits,
    in_blocks,
    is_float,
    same_bits,
    sum_of_squares,
)
from tests.support.skips import Elsewhere, import_or_skip

X = np.float32([1, -3, np.nan, np.inf])


def test_bits_differ_by_the_sign_of_zero_and_agree_for_every_nan():
    payload = np.array([0x7FC00001, 0x7FC00000], np.uint32).view(np.float32)
    assert len(set(bit_patterns(payload).tolist())) == 1
    zeros = np.float32([0.0, -0.0])
    assert len(set(bit_patterns(zeros).tolist())) == 2


def test_bfloat16_counts_as_float():
    ml_dtypes = import_or_skip("ml_dtypes", Elsewhere.NEWEST)
    assert is_float(np.zeros(1, ml_dtypes.bfloat16))
    assert not is_float(np.zeros(1, bool))


def test_blocks_hold_every_element_once(monkeypatch):
    monkeypatch.setattr("onnx_migrate.verify.kernel.arrays._BLOCK", 4)
    x = np.arange(10.0).reshape(2, 5)
    pairs = list(in_blocks(x, -x))
    assert [a.size for a, _ in pairs] == [4, 4, 2]
    assert np.array_equal(np.concatenate([b for _, b in pairs]), -x.ravel())


def test_the_same_bits_are_the_same_bytes():
    assert same_bits(X, X.copy())
    assert not same_bits(np.float32([0.0]), np.float32([-0.0]))
    assert not same_bits(X, np.float32([1, -3, np.nan, 5]))
    assert same_bits(np.float32(1), np.float32(1))
    assert same_bits(np.zeros((0, 3)), np.zeros((0, 3)))
    assert not same_bits(np.array(["a"], object), np.array(["a"], object)), "not known: no bytes to compare"
    assert not same_bits(X[::2], X[::2]), "not known: not in one piece"
    assert differing_bits(X, np.float32([1, 3, np.nan, 5])) == 2
    assert differing_bits(X, np.float32([1, -3, -np.nan, np.inf])) == 0, "all NaN are the same"


def test_a_block_has_a_million_elements():
    sizes = [a.size for a, _ in in_blocks(np.zeros(2_500_000, np.int8), np.zeros(2_500_000, np.int8))]
    assert sizes == [1 << 20, 1 << 20, 2_500_000 - (2 << 20)], "at most 8 MB in double precision"


def test_squares_are_summed_on_one_thread(monkeypatch):
    sizes = []
    monkeypatch.setattr(np, "dot", lambda a, b: sizes.append(a.size) or 1.0)
    sum_of_squares(np.ones(20_000))
    assert sizes == [8192, 8192, 20_000 - 2 * 8192], "OpenBLAS starts threads for longer products"
