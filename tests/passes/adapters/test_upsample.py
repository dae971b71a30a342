"""Upsample of versions 7 and 9, against ONNX Runtime's own; of version 1, which it does not run, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model, run

SHAPE = "float[1,2,5,7]"


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["2., 2.", "1., 2.", "1.3, 1.7", "1.6, 2.5", "1., 1."])
@pytest.mark.parametrize("to", [10, 11, 13, 18])
def test_attribute(mode: str, scales: str, to: int) -> None:
    check(
        f"""<ir_version: 3, opset_import: ["":7]>
g ({SHAPE} x) => (float[a,b,c,d] y) {{ y = Upsample<mode="{mode}", scales=[1., 1., {scales}]>(x) }}""",
        to=to,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["2., 2.", "1.3, 1.7", "1., 2.5"])
@pytest.mark.parametrize("to", [10, 11, 12, 13])
def test_constant_input(mode: str, scales: str, to: int) -> None:
    check(
        f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x) => (float[a,b,c,d] y) <float[4] s = {{1., 1., {scales}}}> {{ y = Upsample<mode="{mode}">(x, s) }}""",
        to=to,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales_at_run_time(mode: str) -> None:
    feeds = {
        "x": np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32),
        "s": np.array([1, 1, 1.5, 2], np.float32),
    }
    check(
        f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x, float[4] s) => (float[a,b,c,d] y) {{ y = Upsample<mode="{mode}">(x, s) }}""",
        to=11,
        feeds=feeds,
    )


def test_a_shared_tensor_is_not_edited() -> None:
    result = check(
        f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x) => (float[a,b,c,d] y, float[4] t) <float[4] s = {{1., 1., 2., 2.}}> {{
  y = Upsample(x, s)
  t = Mul(s, s)
}}""",
        to=13,
    )

    resize = next(node for node in result.graph.node if node.op_type == "Resize")
    assert list(resize.input) == ["x", "", "s"]


@pytest.mark.parametrize("bilinear", [False, True])
def test_version_1(bilinear: bool) -> None:
    mode = "bilinear" if bilinear else "nearest"
    old = model(f"""<ir_version: 3, opset_import: ["":1]>
g ({SHAPE} x) => (float[a,b,c,d] y) {{ y = Upsample<mode="{mode}", width_scale=2., height_scale=3.>(x) }}""")
    new = model(f"""<ir_version: 3, opset_import: ["":7]>
g ({SHAPE} x) => (float[a,b,c,d] y) {{
  y = Upsample<mode="{'linear' if bilinear else 'nearest'}", scales=[1., 1., 3., 2.]>(x)
}}""")
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)

    for target in (7, 9, 13, 21):
        result, _ = lift(old, target)
        np.testing.assert_array_equal(run(result, {"x": x})[0], run(new, {"x": x})[0])


def test_nearest_below_1_rounds_down() -> None:
    source = model("""<ir_version: 4, opset_import: ["":9]>
g (float[1,1,1,10] x) => (float[a,b,c,d] y) <float[4] s = {1., 1., 1., 0.6}> { y = Upsample(x, s) }""")
    x = np.arange(10, dtype=np.float32).reshape(1, 1, 1, 10)

    result, _ = lift(source, 13)

    indices = np.floor(np.arange(6, dtype=np.float32) / np.float32(0.6)).astype(int)
    np.testing.assert_array_equal(run(result, {"x": x})[0], x[..., indices])
    with pytest.raises(CannotMigrate, match="rounds up") as caught:
        lift(source, 10)
    assert caught.value.code == "no-equal"


def test_a_mode_that_does_not_exist() -> None:
    source = model(f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x) => (float[a,b,c,d] y) <float[4] s = {{1., 1., 2., 2.}}> {{ y = Upsample<mode="bicubic">(x, s) }}""")

    with pytest.raises(CannotMigrate, match="mode is 'bicubic'"):
        lift(source, 13)
