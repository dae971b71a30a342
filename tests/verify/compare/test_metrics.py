"""The figures that people quote, against NumPy's own over all inputs at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnx_migrate.verdicts import OutputMetrics
from onnx_migrate.verify.compare.metrics import Metrics

RNG = np.random.default_rng(0)


def metrics(*pairs: tuple[object, object]) -> OutputMetrics:
    """Return the metrics of one output on several inputs."""
    found = Metrics()
    for one, other in pairs:
        found.add("y", one, other)
    (result,) = found.results
    return result


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    x, y = one.astype(float).ravel(), other.astype(float).ravel()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int64, np.uint8])
def test_the_figures_are_those_of_all_inputs_together(dtype: type) -> None:
    a = (RNG.standard_normal((4, 3, 20)) * 40 + 60).clip(0, 127).astype(dtype)
    b = (a + RNG.integers(0, 3, a.shape)).astype(dtype)
    found = metrics(*zip(a, b, strict=True))

    x, y = a.astype(float).ravel(), b.astype(float).ravel()
    error = y - x
    assert found.cosine == pytest.approx(x @ y / np.sqrt((x @ x) * (y @ y)))
    assert found.snr == pytest.approx(10 * np.log10((x @ x) / (error @ error)))
    assert found.psnr == pytest.approx(10 * np.log10(x.max() ** 2 / np.mean(error**2)))
    assert found.largest_absolute == np.abs(error).max()
    assert found.largest_relative == pytest.approx(np.max(np.abs(error)[x != 0] / np.abs(x[x != 0])))
    assert found.equal == np.mean(x == y)
    assert (found.inputs, found.elements) == (4, 240)
    one_by_one = [cosine(p, q) for p, q in zip(a, b, strict=True)]
    assert found.lowest_cosine == pytest.approx(min(one_by_one))


def test_equal_outputs_have_no_error() -> None:
    a = RNG.standard_normal((2, 10)).astype(np.float32)
    found = metrics((a, a))
    assert (found.cosine, found.snr, found.psnr, found.top1, found.rows) == (1, math.inf, math.inf, 1, 2)
    assert found.short == "cosine 1.000000, SNR inf dB, PSNR inf dB, top-1 agrees in 2 of 2 rows"
    zeros = metrics((a * 0, a * 0))
    assert (zeros.cosine, zeros.snr) == (1, math.inf)
    assert metrics((a * 0, a)).snr == -math.inf


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        ((5,), 1), ((3, 5), 3), ((1, 1000, 1, 1), 1), ((2, 7, 50), 14), ((1, 4420, 4), None), ((1, 3, 8, 8), None),
        ((3, 1), None), ((), None), ((0, 5), None),
    ],
)  # fmt: skip
def test_top_1_is_of_outputs_that_are_shaped_like_scores(shape: tuple[int, ...], rows: int | None) -> None:
    a = RNG.standard_normal(shape).astype(np.float32) * 9
    found = Metrics()
    found.add("y", a, a + np.float32(0))
    assert [item.rows or None for item in found.results] == ([rows] if a.size else [])


def test_top_1_counts_rows_with_the_same_largest_element() -> None:
    a = np.float32([[1, 2, 3], [3, 2, 1], [2, 2, 1], [np.nan, 1, 2]])
    b = np.float32([[3, 2, 1], [3, 2, 1], [1, 2, 1], [5, 1, 2]])
    found = metrics((a, b))
    assert (found.rows, found.top1) == (3, 2 / 3)
    assert found.top1_text == ", top-1 agrees in 2 of 3 rows"


def test_probabilities_of_few_classes_are_scores() -> None:
    scores = np.float32([[[0.25, 0.75], [0.9, 0.1]]])
    assert metrics((scores, scores[..., ::-1])).top1 == 0


def test_rows_of_a_box_whose_sum_is_not_1_are_no_scores() -> None:
    """A sum of float16 numbers is within 0.01 of 1; 0.95 is that of corners."""
    corners = np.float32([[[0.2, 0.75], [0.9, 0.05]]])
    assert metrics((corners, corners[..., ::-1])).rows == 0


def test_nan_and_infinity_are_left_out_and_texts_have_no_figures_but_equality() -> None:
    a, b = np.float32([1, np.nan, np.inf, 2]), np.float32([1, np.nan, np.inf, np.nan])
    found = metrics((a, b))
    assert (found.elements, found.equal, found.snr) == (1, 0.75, math.inf)
    texts = metrics((np.array(["a", "b"], object), np.array(["a", "c"], object)))
    assert (texts.cosine, texts.snr, texts.equal, texts.more) == (None, None, 0.5, "")
    assert texts.short == "50 % of the elements are equal"
    assert metrics((np.array([True, False]), np.array([True, True]))).equal == 0.5


def test_another_shape_counts_as_not_equal_and_sequences_have_a_line_for_each_tensor() -> None:
    a = RNG.standard_normal(4).astype(np.float32)
    assert metrics((a, a), (a, a[:2])).equal == 0.5
    found = Metrics()
    found.add_all({"y": [a, a], "z": a}, {"y": [a, a]})
    assert [item.output for item in found.results] == ["y[0]", "y[1]"]
