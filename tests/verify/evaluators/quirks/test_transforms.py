"""Fourier transforms over lengths that are no power of two are run as products: the kernels lose digits."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import onnx_migrate
from onnx_migrate.verify.evaluators.quirks.kernel_meanings import write_as_meant
from onnx_migrate.verify.evaluators.quirks.transforms import TRANSFORM_NOTE
from tests.passes.contrib.one_node import session


@pytest.mark.long
@pytest.mark.parametrize("given", ["window", "length", "both"])
@pytest.mark.parametrize("rank", [2, 3])
def test_a_transform_of_400_elements_is_compared_by_its_text(given: str, rank: int) -> None:
    """The kernel's chirp is off by 3e-5 of the largest number, of which the logarithm of a spectrogram makes 1e-2."""
    window = np.hanning(401)[:-1].astype("float32")
    numbers = ", ".join(map(repr, window.tolist()))
    ends = {"window": "w", "length": ", n", "both": "w, n"}[given]
    proto = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[B,L{", 1" * (rank - 2)}] x) => (float[B,F,201,2] y)
        <float[400] w = {{{numbers}}}, int64 h = {{160}}, int64 n = {{400}}>
        {{ y = STFT (x, h, {ends}) }}""")
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    assert write_as_meant(copy) == (1, (TRANSFORM_NOTE,))
    onnx.checker.check_model(copy, full_check=True)
    x = np.random.default_rng(0).standard_normal((2, 4000)).astype("float32")
    feeds = {"x": x.reshape(x.shape + (1,) * (rank - 2))}
    kernel, meant = (session(item).run(None, feeds)[0] for item in (proto, copy))
    frames = np.lib.stride_tricks.sliding_window_view(x.astype(float), 400, axis=1)[:, ::160]
    exact = np.fft.rfft(frames * (1 if given == "length" else window))
    top = np.abs(exact).max()
    errors = [np.abs(found[..., 0] + 1j * found[..., 1] - exact).max() / top for found in (kernel, meant)]
    assert errors[1] < 2e-6 < 5e-6 < errors[0]
    with pytest.raises(Exception, match="out of"):
        session(copy).run(None, {"x": feeds["x"][:, :399]})
    migration = onnx_migrate.migrate(proto, opset=13)
    assert migration.report.verified
    assert TRANSFORM_NOTE in str(migration.report)


@pytest.mark.parametrize("length", [512, 0])
def test_a_transform_whose_kernel_is_right_or_whose_length_is_fed_stays(length: int) -> None:
    frame = f"int64 n = {{{length}}}" if length else "int64 unused = {0}"
    proto = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[1,L] x{"" if length else ", int64 n"}) => (float[1,F,K,2] y) <int64 h = {{160}}, {frame}>
        {{ y = STFT (x, h, , n) }}""")
    assert write_as_meant(proto) == (0, ())


DFT = [
    # opset, shape, attributes, dft_length, axis as an input
    (17, (2, 37, 1), "", None, None),
    (17, (2, 37, 2), "<inverse = 1>", None, None),
    (17, (2, 3, 37, 1), "<axis = 2, onesided = 1>", None, None),
    (17, (37, 3, 2), "<axis = 0>", None, None),
    (17, (2, 37, 1), "", 25, None),
    (17, (2, 37, 2), "", 45, None),
    (20, (2, 3, 37, 2), "", None, None),
    (20, (2, 37, 3, 1), "<onesided = 1>", None, 1),
    (20, (2, 37, 3, 2), "<inverse = 1>", 40, -3),
]


@pytest.mark.parametrize(("opset", "shape", "attributes", "length", "axis"), DFT)
def test_a_transform_of_an_axis_is_compared_by_its_text(
    opset: int, shape: tuple[int, ...], attributes: str, length: int | None, axis: int | None
) -> None:
    given = {"n": length, "a": axis}
    constants = ", ".join(
        f"int64 {name} = {{{number}}}" for name, number in given.items() if number is not None
    )
    ends = "" if not constants else ", n" if axis is None else ", , a" if length is None else ", n, a"
    dims = ", ".join("abcd"[: len(shape)])
    text = f"""<ir_version: 8, opset_import: ["": {opset}]> g (float{list(shape)} x) => (float[{dims}] y)
        {f"<{constants}>" if constants else ""} {{ y = DFT {attributes} (x{ends}) }}"""
    proto = parser.parse_model(text)
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    assert write_as_meant(copy) == (1, (TRANSFORM_NOTE,))
    onnx.checker.check_model(copy, full_check=True)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    kernel, meant = (session(item).run(None, {"x": x})[0] for item in (proto, copy))
    where = shape.index(37)
    signal = x[..., 0] + (1j * x[..., 1] if shape[-1] == 2 else 0)
    transform = np.fft.ifft if "inverse" in attributes else np.fft.fft
    exact = transform(signal.astype(complex), n=length, axis=where)
    if "onesided" in attributes:
        exact = np.take(exact, range(exact.shape[where] // 2 + 1), axis=where)
    found = meant[..., 0] + 1j * meant[..., 1]
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()
    assert np.abs(kernel - meant).max() < 1e-3 * np.abs(meant).max()


@pytest.mark.long
def test_a_model_with_a_transform_of_an_axis_comes_down() -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2,400,1] x) => (float[2,400,2] y) { y = DFT <axis = 1> (x) }'
    )
    migration = onnx_migrate.migrate(proto, opset=13)
    assert migration.report.verified
    assert TRANSFORM_NOTE in str(migration.report)


def test_a_transform_of_an_open_axis_stays() -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2,L,1] x) => (float[2,L,2] y) { y = DFT <axis = 1> (x) }'
    )
    assert write_as_meant(proto) == (0, ())
