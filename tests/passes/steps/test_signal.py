"""DFT and STFT, windows and MelWeightMatrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.steps import check, check_down, lower, refuses

ATOL = 1e-4
NO_SIZE = {"symbolic": "needs-shape", "unranked": "needs-rank"}
EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


def dft(
    shape: list[int],
    inputs: str = "x",
    attributes: str = "",
    opset: int = 20,
    constants: str = "",
    dtype: str = "float",
) -> str:
    return f"""{opset} ({dtype}{shape} x) => ({dtype} y) {"<" + constants + ">" if constants else ""}
        {{ y = DFT {"<" + attributes + ">" if attributes else ""} ({inputs}) }}"""


@pytest.mark.parametrize(
    ("inputs", "constants"),
    [
        ("x", ""),
        ('x, "", axis', "int64 axis = {0}"),
        ('x, "", axis', "int64 axis = {1}"),
        ('x, "", axis', "int64 axis = {-3}"),
        ("x, n, axis", "int64 n = {6}, int64 axis = {1}"),
    ],
)
@pytest.mark.parametrize("attributes", ["", "inverse = 1", "onesided = 1"])
@pytest.mark.parametrize("parts", [1, 2])
def test_version_20(inputs: str, constants: str, attributes: str, parts: int) -> None:
    if attributes == "onesided = 1" and parts == 2:
        return  # not allowed
    text = dft([3, 4, 5, parts], inputs, attributes, constants=constants)
    check_down(text, 19, 17)
    refused = {"symbolic": "needs-shape", "unranked": "needs-rank"}
    check_down(text, 16, 13, specials=False, atol=ATOL, rtol=1e-5, refused=refused)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("attributes", ["axis = 1", "axis = 1, onesided = 1", "axis = 1, inverse = 1"])
def test_length_17(length: int, attributes: str) -> None:
    text = dft([2, 5, 1], "x, n", attributes, 17, f"int64 n = {{{length}}}")
    check_down(text, 16, 7, specials=False, atol=ATOL, rtol=1e-5, refused=NO_SIZE)


def test_an_open_length_and_a_given_one() -> None:
    """A signal of unknown length is padded and cut to dft_length."""
    text = """17 (float[batch, n, 1] x) => (float[batch, k, 2] y)
        <int64 n = {6}> { y = DFT <onesided = 1> (x, n) }"""
    for samples in (4, 6, 9):
        x = np.random.default_rng(1).standard_normal((2, samples, 1)).astype(np.float32)
        check_down(text, 16, 11, feeds={"x": x}, atol=ATOL, variants=("plain", "if"))


def test_real_inverse() -> None:
    """ONNX Runtime and onnx.reference are not asked: numpy computes the result."""
    rng = np.random.default_rng(2)
    for samples, length in ((5, None), (5, 7), (4, 6), (5, 4), (2, 9)):
        x = rng.standard_normal((2, samples, 2)).astype(np.float32)
        expected = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=length, axis=1)[..., None].astype(np.float32)
        given = ("x, n", f"int64 n = {{{length}}}") if length else ("x", "")
        text = dft([2, samples, 2], given[0], "inverse = 1, onesided = 1", 17, given[1])
        check_down(
            text, 16, 11, feeds={"x": x}, expected=[expected], atol=1e-6, variants=("plain", "if", "function")
        )


def test_double() -> None:
    check_down(dft([2, 16, 1], dtype="double"), 16, 11, specials=False, atol=1e-11, variants=("plain",))


def test_half() -> None:
    x = np.random.default_rng(2).standard_normal((2, 8, 1)).astype(np.float16)
    spectrum = np.fft.fft(x[..., 0].astype(np.float64), axis=1)
    expected = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float16)
    text = dft([2, 8, 1], dtype="float16")
    check_down(text, 16, 11, feeds={"x": x}, expected=[expected], atol=4e-3, variants=("plain", "if"))


def test_refusals() -> None:
    text = '20 (float[2, 5, 1] x, int64 AXIS) => (float y) { y = DFT (x, "", axis) }'
    feeds = {"x": np.ones((2, 5, 1), np.float32), "axis": np.array(1)}
    needs = dict.fromkeys(EVERYWHERE, "needs-constant")
    check_down(text.replace("AXIS", "axis"), 19, feeds=feeds, refused=needs)
    text = "17 (float[2, 5, 1] x, int64 n) => (float y) { y = DFT (x, n) }"
    feeds = {"x": np.ones((2, 5, 1), np.float32), "n": np.array(4)}
    for variant in ("plain", "if"):
        check_down(text, 16, feeds=feeds, refused={variant: "needs-constant"}, variants=(variant,))
    check_down(dft([1, 4097, 1]), 16, refused="no-equal", variants=("plain",))


def stft(
    inputs: str,
    constants: str,
    attributes: str = "",
    *,
    parts: int = 1,
    dtype: str = "float",
    given: str = "",
    batch: int = 2,
) -> str:
    return f"""17 ({dtype}[{batch}, 30, {parts}] x{given}) => ({dtype} y) <{constants}>
        {{ y = STFT {"<" + attributes + ">" if attributes else ""} ({inputs}) }}"""


@pytest.mark.parametrize("attributes", ["", "onesided = 0", "onesided = 1"])
@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize(
    ("inputs", "constants"),
    [
        ('x, step, "", n', "int64 step = {4}, int64 n = {8}"),
        ('x, step, "", n', "int32 step = {3}, int32 n = {7}"),
        ("x, step, w", "int64 step = {5}, DTYPE[6] w = {0.1, 0.2, 0.4, -0.8, 1.6, 3}"),
        ("x, step, w, n", "int64 step = {5}, DTYPE[6] w = {0.1, 0.2, 0.4, -0.8, 1.6, 3}, int64 n = {6}"),
    ],
)
def test_stft(inputs: str, constants: str, attributes: str, dtype: str) -> None:
    text = stft(inputs, constants.replace("DTYPE", dtype), attributes, dtype=dtype)
    tolerance: dict[str, Any] = {"atol": ATOL if dtype == "float" else 1e-11, "specials": False}
    check_down(text, 16, 9, refused=NO_SIZE, **tolerance)


def test_stft_of_complex_signals_and_computed_windows() -> None:
    constants = "int64 step = {4}"
    text = stft("x, step, w", constants, "onesided = 0", parts=2, given=", float[8] w")
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((2, 30, 2)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    frames = np.stack([x[:, start : start + 8] for start in range(0, 23, 4)], 1) * w[:, None]
    spectrum = np.fft.fft(frames[..., 0] + 1j * frames[..., 1], axis=2)
    expected = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
    check_down(text, 16, 11, feeds={"x": x, "w": w}, expected=[expected], atol=ATOL, refused=NO_SIZE)


def test_open_length_of_stft() -> None:
    for dtype in ("float", "double"):
        text = f"""17 ({dtype}[batch, n, 1] x) => ({dtype} y)
            <int64 step = {{4}}, int64 n = {{8}}> {{ y = STFT (x, step, "", n) }}"""
        x = np.random.default_rng(4).standard_normal((3, 21, 1)).astype("f" if dtype == "float" else "d")
        check_down(text, 16, 11, 9, feeds={"x": x}, atol=ATOL, variants=("plain", "if"))


def test_a_signal_without_an_axis_of_parts() -> None:
    text = """17 (float[2, 21] x) => (float y)
        <int64 step = {4}, int64 n = {8}> { y = STFT (x, step, "", n) }"""
    check_down(text, 16, 9, specials=False, atol=ATOL, variants=("plain", "symbolic", "if"))


def test_refusals_of_stft() -> None:
    text = stft('x, step, "", n', "int64 n = {8}", given=", int64 step")
    feeds = {"x": np.ones((2, 30, 1), np.float32), "step": np.array(4)}
    check_down(text, 16, feeds=feeds, refused="needs-constant", variants=("plain",))


# Upward: the axis becomes an input


@pytest.mark.parametrize(
    "attributes",
    [
        "",
        "<axis = 1>",
        "<axis = 2>",
        "<axis = -2>",
        "<axis = -3>",
        "<axis = 2, onesided = 1>",
        "<inverse = 1>",
    ],
)
@pytest.mark.parametrize("length", ["", ", length"])
def test_its_axis_becomes_an_input(attributes: str, length: str) -> None:
    parts = 1 if "onesided" in attributes else 2
    source = f"""17 (float[2, 6, 8, {parts}] x) => (float[a, b, c, d] y) <int64 length = {{7}}>
        {{ y = DFT {attributes} (x{length}) }}"""
    check(source, to=20)


def test_an_axis_that_is_an_attribute_of_a_function() -> None:
    source = """17 (float[2, 6, 8, 2] x) => (float[a, b, c, d] y, float[e, f, g, h] z) {
            y = local.F <at = 1> (x)
            z = local.F <at = 2> (x)
        }
        <domain: "local", opset_import: ["": 17]> F <at> (a) => (b) { b = DFT <axis: int = @at> (a) }"""
    check(source, to=20, variants=["plain", "symbolic", "if"])


def test_version_20_is_unchanged() -> None:
    source = "20 (float[2, 6, 8, 2] x) => (float[a, b, c, d] y) { y = DFT (x) }"
    x = np.random.default_rng(0).standard_normal((2, 6, 8, 2)).astype(np.float32)
    check(source, to=21, feeds={"x": x})


WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")
WINDOWS_ATOL = 1e-6


ATTRIBUTES = ["", "<periodic = 0>", "<periodic = 1, output_datatype = 11>", "<output_datatype = 10>"]


def kind_of(attributes: str) -> tuple[str, float]:
    """Return the element type that a window's attributes ask for, and the tolerance of it."""
    kind = "double" if "11" in attributes else "float16" if "10" in attributes else "float"
    return kind, 1e-3 if kind == "float16" else WINDOWS_ATOL


@pytest.mark.parametrize("operator", WINDOWS)
@pytest.mark.parametrize("attributes", ATTRIBUTES)
@pytest.mark.parametrize("size", [1, 6])
def test_windows(operator: str, attributes: str, size: int) -> None:
    if size == 1 and "periodic = 0" in attributes:
        return  # 0 / 0
    kind, atol = kind_of(attributes)
    known = f"17 (float x) => ({kind}[{size}] y) <int64 n = {{{size}}}> {{ y = {operator} {attributes} (n) }}"
    feeds = {"x": np.zeros((), np.float32)}
    check_down(known, 16, 9, 7, feeds=feeds, atol=atol)


@pytest.mark.parametrize("operator", WINDOWS)
@pytest.mark.parametrize("attributes", ATTRIBUTES)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_windows_of_computed_size(operator: str, attributes: str, dtype: str) -> None:
    kind, atol = kind_of(attributes)
    sizes = [6] if "periodic = 0" in attributes else [1, 6]
    computed = f"17 ({dtype} n) => ({kind}[size] y) {{ y = {operator} {attributes} (n) }}"
    check_down(computed, 16, 9, feeds=[{"n": np.array(size, dtype)} for size in sizes], atol=atol)


@pytest.mark.parametrize("operator", WINDOWS[:2])
def test_integers(operator: str) -> None:
    """The middle of a window is 1, and all else is cut to 0."""
    text = f"""17 (float x) => (int32[7] y)
        <int64 n = {{7}}> {{ y = {operator} <periodic = 0, output_datatype = 6> (n) }}"""
    check_down(
        text, 16, feeds={"x": np.zeros((), np.float32)}, expected=[np.array([0, 0, 0, 1, 0, 0, 0], np.int32)]
    )


@pytest.mark.parametrize(
    ("bands", "length", "rate", "lower", "upper"),
    [(8, 16, 8192, 0, 4096), (20, 400, 16000, 20, 8000), (80, 400, 16000, 0, 8000), (3, 64, 8000, 0, 100)],
)
@pytest.mark.parametrize("attributes", ["", "<output_datatype = 11>"])
def test_mel_weight_matrix(
    bands: int, length: int, rate: int, lower: int, upper: int, attributes: str
) -> None:
    kind = "double" if attributes else "float"
    text = f"""17 (float x) => ({kind} y)
        <int64 bands = {{{bands}}}, int64 n = {{{length}}}, int64 rate = {{{rate}}},
         float lower = {{{lower}}}, float upper = {{{upper}}}>
        {{ y = MelWeightMatrix {attributes} (bands, n, rate, lower, upper) }}"""
    check_down(text, 16, 9, 7, feeds={"x": np.zeros((), np.float32)}, atol=WINDOWS_ATOL)


def test_a_matrix_that_is_computed_is_refused() -> None:
    text = """17 (int64 bands) => (float y)
        <int64 n = {16}, int64 rate = {8000}, float lower = {0}, float upper = {4000}>
        { y = MelWeightMatrix (bands, n, rate, lower, upper) }"""
    for variant in ("plain", "if", "function"):
        check_down(
            text, 16, feeds={"bands": np.array(4)}, refused={variant: "needs-constant"}, variants=(variant,)
        )


def test_a_window_of_a_size_without_end_is_computed_at_run_time() -> None:
    text = "17 (float x) => (float[n] y) <int64 n = {1099511627776}> { y = HannWindow (n) }"
    assert "Cos" in {node.op_type for node in lower(text, 16)[0].graph.node}


def test_a_matrix_without_end_is_refused() -> None:
    text = """17 (float x) => (float y)
        <int64 bands = {1048576}, int64 n = {1048576}, int64 rate = {8000}, float lower = {0}, float upper = {4000}>
        { y = MelWeightMatrix (bands, n, rate, lower, upper) }"""
    refuses("no-equal", lower, text, 16, match="a matrix of 524289 by 1048576")
