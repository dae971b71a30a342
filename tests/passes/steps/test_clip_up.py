from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model, run

EDGES = np.array([-np.inf, -3e38, -7, -1, -0.0, 0, 0.5, 6.5, 3e38, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    "attributes", ["min = 0.0, max = 6.0", "min = -1.0", "max = 0.5", "", "min = 2.0, max = -2.0"]
)
@pytest.mark.parametrize("opset", [6, 10])
def test_float(attributes: str, opset: int) -> None:
    written = f"<{attributes}>" if attributes else ""
    source = f"""<ir_version: 5, opset_import: ["": {opset}]> g (float[11] x) => (float[11] y)
        {{ y = Clip {written} (x) }}"""
    result = check(source, to=11, feeds={"x": EDGES})
    assert not result.graph.node[0].attribute


def test_explicit_limits_of_float() -> None:
    source = """<ir_version: 5, opset_import: ["": 10]> g (float[11] x) => (float[11] y)
        { y = Clip <min = -3.4028234663852886e+38, max = 3.4028234663852886e+38> (x) }"""
    check(source, to=11, feeds={"x": EDGES})


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("float16", np.float16)])
def test_bounds_have_the_data_type(kind: str, dtype: type[np.floating]) -> None:
    """ONNX Runtime's Clip-6 supports float only: the expected bounds are the attributes, rounded to the type."""
    x = np.array([-7, -1, 0.1, 0.25, 6.5, 100], dtype)
    source = f"""<ir_version: 5, opset_import: ["": 10]> g ({kind}[6] x) => ({kind}[6] y)
        {{ y = Clip <min = 0.1, max = 6.0> (x) }}"""
    low = dtype(np.float32(0.1))
    check(source, to=12, feeds={"x": x}, expected=[np.minimum(np.maximum(x, low), dtype(6))])


def test_a_bound_beyond_the_range_of_float16_clips_nothing() -> None:
    x = np.array([-60000, 1, 60000, np.inf], np.float16)
    source = """<ir_version: 5, opset_import: ["": 10]> g (float16[4] x) => (float16[4] y)
        { y = Clip <min = 0.0, max = 1e9> (x) }"""
    check(source, to=12, feeds={"x": x}, expected=[np.maximum(x, np.float16(0))])


REFERENCE = """<ir_version: 8, opset_import: ["": 10, "local": 1]> g ({kind}[6] x) => ({kind}[6] y)
    {{ y = local.Bounded <low = -1.5> (x) }}
    <opset_import: ["": 10], domain: "local"> Bounded <low> (a) => (b)
    {{ b = Clip <min: float = @low, max = 2.0> (a) }}"""


@pytest.mark.parametrize(
    ("kind", "dtype"), [("float", np.float32), ("double", np.float64), ("float16", np.float16)]
)
def test_a_bound_that_is_an_attribute_of_a_function(kind: str, dtype: type[np.floating]) -> None:
    x = np.array([-7, -1, 0, 1, 2.5, 100], dtype)
    expected = [np.clip(x, dtype(-1.5), dtype(2))]
    check(REFERENCE.format(kind=kind), to=12, feeds={"x": x}, expected=expected, variants=["plain"])


def test_a_bound_that_is_an_attribute_of_a_function_needs_opset_12() -> None:
    with pytest.raises(CannotMigrate) as caught:
        lift(model(REFERENCE.format(kind="float")), 11)
    assert caught.value.code == "needs-value"


TWO_CALLS = """<ir_version: 8, opset_import: ["": 10, "local": 1]> g (float[3] x, double[3] z)
        => (float[3] y, double[3] w)
    { y = local.Bounded (x) w = local.Bounded (z) }
    <opset_import: ["": 10], domain: "local"> Bounded (a) => (b) { b = Clip <min = -1.5, max = 2.0> (a) }"""


def test_a_function_that_is_called_with_two_types() -> None:
    """The element type differs by call, so the bound is cast at run time by CastLike, which came with opset 15."""
    feeds = {"x": np.array([-3, 1, 9], np.float32), "z": np.array([-3, 1, 9], np.float64)}
    result, _ = lift(model(TWO_CALLS), 15)
    y, w = run(result, feeds)
    assert (y.dtype, w.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(y, [-1.5, 1, 2])
    np.testing.assert_array_equal(w, [-1.5, 1, 2])
    with pytest.raises(CannotMigrate) as caught:
        lift(model(TWO_CALLS), 14)
    assert caught.value.code == "needs-type"
