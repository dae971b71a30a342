"""Resize and Upsample brought down: every mode by scales and by sizes, constant and computed at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import model, run, same_bits
from tests.resize.shaped import KINDS, ROUNDINGS, feed, resize
from tests.steps import check_down, lower, operators, refuses
from tests.support.skips import Elsewhere, skip

CLOSE = 3e-6
UNRANKED = {"unranked": "needs-rank"}


def assert_parts_refused(proto: onnx.ModelProto, to: int = 10) -> None:
    """Of a length that is no whole number, ONNX Runtime and onnx.reference compute different coordinates."""
    refuses("no-equal", lower, proto, to, match="no whole number of elements")


@pytest.mark.parametrize("scales", [[1, 1, 1.7, 2.3], [1, 1, 0.6, 0.45], [1, 1, 2, 2], [1, 1, 0.5, 3]])
@pytest.mark.parametrize("kind", KINDS)
def test_linear_by_scales(kind: str, scales: list[float]) -> None:
    proto = resize(scales=scales, mode="linear", coordinate_transformation_mode=kind)
    check_down(proto, 12, 11)
    if kind == "align_corners" and scales in ([1, 1, 1.7, 2.3], [1, 1, 0.6, 0.45], [1, 1, 0.5, 3]):
        assert_parts_refused(proto)
        return
    plain = kind == "asymmetric"
    shrinks = min(scales) < 1
    check_down(proto, 10, refused=None if plain else UNRANKED)
    check_down(proto, 9, refused=UNRANKED if shrinks or not plain else None)


@pytest.mark.parametrize("sizes", [[1, 2, 8, 16], [1, 2, 3, 7], [1, 2, 5, 9], [1, 2, 1, 1], [1, 2, 5, 7]])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("kind", KINDS)
def test_by_sizes(kind: str, mode: str, sizes: list[int]) -> None:
    proto = resize(sizes=sizes, mode=mode, coordinate_transformation_mode=kind)
    check_down(proto, 12, variants=("plain", "unranked"))
    copies = sizes == [1, 2, 5, 7]
    # With lengths that are unknown the Gathers sample, where ONNX Runtime copies; which is the same at scale 1.
    check_down(
        proto, 10, 9, refused=UNRANKED, specials=not copies, variants=("plain", "unranked", "if", "function")
    )
    check_down(proto, 10, variants=("symbolic",), rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("sizes", [[1, 2, 8, 16], [1, 2, 3, 7], [1, 2, 5, 9], [1, 2, 1, 1]])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_the_coordinates_that_opset_13_removed(mode: str, sizes: list[int]) -> None:
    proto = resize(sizes=sizes, mode=mode, coordinate_transformation_mode="tf_half_pixel_for_nn", opset=11)
    check_down(proto, 10, 9, refused=UNRANKED, variants=("plain", "unranked", "if", "function"))


@pytest.mark.parametrize("scales", [[1, 1, 1.7, 2.3], [1, 1, 0.6, 0.45], [1, 1, 1.3, 0.7], [1, 1, 3, 2]])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_nearest_by_scales(kind: str, rounding: str, scales: list[float]) -> None:
    proto = resize(
        scales=scales, mode="nearest", coordinate_transformation_mode=kind, nearest_mode=rounding, opset=18
    )
    check_down(proto, 13, 11, variants=("plain",))
    if kind == "align_corners" and scales != [1, 1, 3, 2]:
        assert_parts_refused(proto)
        return
    for target in (10, 9):
        result, _ = lower(proto, target)
        variants = ("plain", "symbolic", "if", "function")
        check_down(proto, target, variants=variants)
        assert (
            "Resize" in operators(result) or "Gather" in operators(result) or "Upsample" in operators(result)
        )


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_many_lengths(kind: str, rounding: str) -> None:
    """Each length to each other one: ties, ends and lengths of 1."""
    for length in (1, 2, 3, 4, 7, 10):
        for size in (1, 2, 3, 4, 5, 6, 8, 14, 15, 20):
            nearest = resize(
                (length,),
                sizes=[size],
                mode="nearest",
                coordinate_transformation_mode=kind,
                nearest_mode=rounding,
            )
            check_down(nearest, 10, variants=("plain", "symbolic"), specials=False)


@pytest.mark.parametrize("shape", [(1, 2, "h", "w"), ("n", 2, "h", "w"), (1, 2, 5, 7)])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_fed_at_run_time(kind: str, mode: str, shape: tuple[int | str, ...]) -> None:
    proto = resize(shape, sizes=[1, 2, 8, 4], fed=True, mode=mode, coordinate_transformation_mode=kind)
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    feeds = {"x": x, "sizes": np.array([1, 2, 8, 4], np.int64)}
    check_down(proto, 10, 9, feeds=feeds, refused=UNRANKED, rtol=CLOSE, atol=CLOSE)


def test_scales_that_are_fed_empty() -> None:
    """The form of the node tests of onnx 1.6: an empty tensor of scales is an input of the model."""
    model = resize(sizes=[1, 2, 3, 9], opset=11, mode="linear")
    for tensor in list(model.graph.initializer):
        model.graph.initializer.remove(tensor)
        model.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        )
    feeds = {"x": np.arange(70, dtype=np.float32).reshape(1, 2, 5, 7), "sizes": np.array([1, 2, 3, 9])}
    empty = np.zeros(0, np.float32)
    given = {**feeds, "no_roi": empty, "no_scales": empty}
    check_down(model, 10, 9, feeds=given, variants=("plain",), rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("opset", [13, 18])
def test_to_the_size_of_another_value(opset: int, mode: str) -> None:
    """What exporters write for `interpolate(x, size=other.shape[2:])`: no length is known, and none is needed."""
    unchanged = "Shape<start = 0, end = 2>(x)" if opset >= 15 else "Slice(sx, zero, two)"
    wanted = "Shape<start = 2>(other)" if opset >= 15 else "Slice(so, two, four)"
    proto = model(f"""{opset} (float[n,c,h,w] x, float[n,d,k,l] other) => (float[n,c,k,l] y)
<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] four = {{4}}> {{
  sx = Shape(x)
  so = Shape(other)
  first = {unchanged}
  rest = {wanted}
  sizes = Concat<axis = 0>(first, rest)
  y = Resize<mode = "{mode}", coordinate_transformation_mode = "half_pixel">(x, , , sizes)
}}""")
    rng = np.random.default_rng(0)
    feeds = [
        {
            "x": rng.standard_normal((2, 3, 5, 7)).astype(np.float32),
            "other": np.zeros((2, 1, height, width), np.float32),
        }
        for height, width in ((8, 5), (3, 3), (5, 9), (1, 1))
    ]
    check_down(proto, 12, 10, 9, feeds=feeds, variants=("plain", "if", "function"))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_an_axis_that_stays(mode: str) -> None:
    for shape in ((1, 2, 5, 7), ("n", 2, 5, "w")):
        proto = resize(shape, scales=[1, 1, 1.7, 1], mode=mode)
        x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
        check_down(proto, 10, feeds={"x": x}, variants=("plain",), rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("shape", [(5, 7), (1, 2, 5, 7), (1, 3, 4, 5, 3), (3, 4, 5)])
def test_ranks(shape: tuple[int, ...], mode: str) -> None:
    if mode == "cubic" and len(shape) not in (2, 4):
        skip("ONNX Runtime has cubic for two axes", Elsewhere.NEVER)
    scales = [1.0] * (len(shape) - min(len(shape), 3 if len(shape) != 4 else 2))
    scales += [1.5, 0.7, 2.0][: len(shape) - len(scales)]
    check_down(resize(shape, scales=scales, mode=mode), 10, 9, refused=UNRANKED)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_channels_last(mode: str) -> None:
    proto = resize((2, 5, 7, 3), scales=[1, 1.7, 0.6, 1], mode=mode)
    check_down(proto, 10, 9, refused=UNRANKED)


@pytest.mark.parametrize(
    "dtype", [TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8, TensorProto.FLOAT16], ids=str
)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_types(mode: str, dtype: int) -> None:
    proto = resize(scales=[1, 1, 1.7, 0.6], mode=mode, dtype=dtype)
    x = np.random.default_rng(0).integers(0, 100, (1, 2, 5, 7)).astype(helper.tensor_dtype_to_np_dtype(dtype))
    check_down(proto, 12, 10, 9, feeds={"x": x}, variants=("plain", "symbolic"))


@pytest.mark.parametrize("a", [-0.75, -0.5])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("scales", [[1, 1, 1.7, 2.3], [1, 1, 0.6, 0.45], [1, 1, 2, 2]])
def test_cubic(scales: list[float], exclude: int, a: float) -> None:
    proto = resize(scales=scales, mode="cubic", exclude_outside=exclude, cubic_coeff_a=a)
    check_down(proto, 11)
    check_down(proto, 10, 9, refused=UNRANKED)


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize(
    "roi", [[0, 0, 0.1, 0.2, 1, 1, 0.9, 0.7], [0, 0, -0.3, 0.2, 1, 1, 1.2, 0.7], [0, 0, 0.8, 0, 1, 1, 0.2, 1]]
)
@pytest.mark.parametrize("scales", [[1, 1, 0.8, 2], [1, 1, 0.2, 1], [1, 1, 1.5, 1.5]])
def test_crop(scales: list[float], roi: list[float], mode: str) -> None:
    proto = resize(
        scales=scales,
        roi=roi,
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.5,
    )
    check_down(proto, 11)
    if 1.5 in scales:
        assert_parts_refused(proto)
        return
    check_down(proto, 10, 9, variants=("plain", "if", "function"))
    check_down(proto, 10, variants=("symbolic",), refused={"symbolic": "needs-shape"})


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("kind", ["tf_crop_and_resize", "align_corners"])
def test_scales_at_run_time_are_refused_where_parts_of_elements_matter(kind: str, mode: str) -> None:
    proto = resize(scales=[1, 1, 3, 2], fed=True, mode=mode, coordinate_transformation_mode=kind)
    refuses("needs-constant", lower, proto, 10, match="make 'scales' an initializer")


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("kind", ["tf_crop_and_resize", "align_corners"])
def test_whole_scales_of_any_length(kind: str, mode: str) -> None:
    roi = [0, 0, -0.2, 0.1, 1, 1, 0.8, 1.1] if kind == "tf_crop_and_resize" else None
    proto = resize(scales=[1, 1, 3, 2], roi=roi, mode=mode, coordinate_transformation_mode=kind)
    check_down(proto, 10, 9, variants=("plain", "symbolic", "if", "function"))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [[8, 9], [3, 9], [10, 14], [4, 5]])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_policy_needs_constant_sizes(mode: str, sizes: list[int], policy: str) -> None:
    proto = resize(sizes=sizes, mode=mode, opset=18, axes=[2, 3], keep_aspect_ratio_policy=policy, fed=True)
    refuses("needs-constant", lower, proto, 17, match="make 'sizes' an initializer")


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [[8, 9], [3, 9], [10, 14], [4, 5]])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_policy(mode: str, sizes: list[int], policy: str) -> None:
    proto = resize(sizes=sizes, mode=mode, opset=18, axes=[2, 3], keep_aspect_ratio_policy=policy)
    refused = {**UNRANKED, "symbolic": "needs-shape"}
    check_down(proto, 17, 13, 10, refused=refused)


@pytest.mark.parametrize("axes", [[2, 3], [3, 2], [-1, -2], [3], [2]])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_axes(mode: str, fed: bool, axes: list[int]) -> None:
    values = [1.6, 2.2][: len(axes)]
    lengths = [8, 4][: len(axes)]
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    for given in ({"scales": values}, {"sizes": lengths}):
        proto = resize(opset=18, mode=mode, axes=axes, fed=fed, **given)
        feeds = {"x": x}
        if fed:
            feeds |= {
                name: np.array(value, np.float32 if name == "scales" else np.int64)
                for name, value in given.items()
            }
        check_down(proto, 17, 13, feeds=feeds, refused=UNRANKED)


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_everything_fed(mode: str) -> None:
    """Sizes and a region of interest that the caller sets."""
    text = f"""18 (float[1, 2, 5, 7] x, float[4] roi, int64[2] sizes) => (float[a, b, c, d] y) {{
          y = Resize <mode = "{mode}", axes = [2, 3], coordinate_transformation_mode = "tf_crop_and_resize",
            extrapolation_value = 3.5> (x, roi, , sizes)
        }}"""
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    feeds = [
        {"x": x, "roi": np.array(roi, np.float32), "sizes": np.array(sizes, np.int64)}
        for roi in ([0.1, 0.2, 0.9, 0.8], [-0.3, 0.5, 1.2, 0.6])
        for sizes in ([8, 4], [1, 9], [5, 3], [5, 1])
    ]
    check_down(text, 17, 13, 10, 9, feeds=feeds, variants=("plain", "symbolic", "if"), rtol=CLOSE, atol=CLOSE)


def test_policy_and_roi() -> None:
    for policy in ("not_larger", "not_smaller"):
        proto = resize(
            opset=18,
            mode="linear",
            axes=[3, 2],
            roi=[0.1, 0.2, 0.9, 0.8],
            sizes=[4, 6],
            coordinate_transformation_mode="tf_crop_and_resize",
            keep_aspect_ratio_policy=policy,
        )
        check_down(proto, 17, 11, variants=("plain", "if", "function"))


def test_axes_and_roi() -> None:
    proto = resize(
        opset=18,
        mode="linear",
        axes=[3, 2],
        roi=[0.1, 0.2, 0.9, 0.8],
        sizes=[4, 6],
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    check_down(proto, 17, 13, 10, refused=UNRANKED)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("scales", [[1, 1, 0.6, 0.45], [1, 1, 0.5, 2], [1, 1, 0.3, 1], [1, 1, 2, 1.5]])
@pytest.mark.parametrize("kind", ["half_pixel", "align_corners", "asymmetric"])
def test_antialias(kind: str, scales: list[float], exclude: int, mode: str) -> None:
    proto = resize(
        (1, 2, 9, 11),
        opset=18,
        scales=scales,
        mode=mode,
        antialias=1,
        exclude_outside=exclude,
        coordinate_transformation_mode=kind,
    )
    grows = min(scales) >= 1 and not (exclude and mode == "linear")
    if kind == "align_corners":
        if grows:
            check_down(proto, 17, rtol=1e-5, atol=1e-5, variants=("plain",), specials=False)
        assert_parts_refused(proto, 10 if grows else 17)
        return
    check_down(proto, 17, 10, variants=("plain", "if", "function"), rtol=1e-5, atol=1e-5, specials=False)
    if exclude:
        check_down(proto, 17, 10, variants=("symbolic",), rtol=1e-5, atol=1e-5, specials=False)
    elif not grows:
        check_down(proto, 17, variants=("symbolic",), refused={"symbolic": "needs-shape"})


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_of_an_open_batch(mode: str) -> None:
    """Lengths are fixed but for the batch, whose size the model takes from the input's shape."""
    text = f"""18 (float[n, 2, 9, 11] x) => (float[n, 2, 4, 5] y) <int64[2] wanted = {{4, 5}}> {{
          first = Shape <start = 0, end = 2> (x)
          sizes = Concat <axis = 0> (first, wanted)
          y = Resize <mode = "{mode}", antialias = 1> (x, , , sizes)
        }}"""
    x = {"x": np.random.default_rng(0).standard_normal((2, 2, 9, 11)).astype(np.float32)}
    check_down(text, 17, 10, feeds=x, variants=("plain", "if", "function"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [[1, 2, 4, 5], [1, 2, 14, 3], [1, 2, 9, 4]])
def test_antialias_of_sizes_at_run_time(sizes: list[int], mode: str) -> None:
    """As PyTorch exports it, with exclude_outside."""
    proto = resize(
        (1, 2, "h", "w"), opset=18, sizes=sizes, fed=True, mode=mode, antialias=1, exclude_outside=1
    )
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 11)).astype(np.float32)
    feeds = {"x": x, "sizes": np.array(sizes, np.int64)}
    check_down(proto, 17, 10, 9, feeds=feeds, variants=("plain", "if", "function"), rtol=1e-5, atol=1e-5)


def test_antialias_needs_constant_sizes() -> None:
    proto = resize((1, 2, 9, 11), opset=18, sizes=[1, 2, 4, 5], fed=True, mode="linear", antialias=1)
    refuses("needs-constant", lower, proto, 17, match="make 'sizes' an initializer")


def test_antialias_of_integers_is_refused() -> None:
    proto = resize(opset=18, scales=[1, 1, 0.5, 0.5], mode="linear", antialias=1, dtype=TensorProto.UINT8)
    refuses("no-equal", lower, proto, 17, match="fixed point")


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize(
    "given", [{"scales": [1, 1, 1.7, 0.6]}, {"scales": [1, 1, 2, 4]}, {"sizes": [1, 2, 8, 3]}]
)
def test_half_pixel_symmetric(given: dict[str, Any], mode: str) -> None:
    proto = resize(opset=19, mode=mode, coordinate_transformation_mode="half_pixel_symmetric", **given)
    power, by_sizes = given.get("scales") == [1, 1, 2, 4], "sizes" in given
    close = CLOSE if by_sizes and mode != "nearest" else 0
    check_down(proto, 18, 13, rtol=close, atol=close, refused=None if power or close else UNRANKED)
    check_down(proto, 10, rtol=close, atol=close, refused=None if power and mode == "nearest" else UNRANKED)


def test_empty_tensor() -> None:
    for mode in ("nearest", "linear", "cubic"):
        proto = resize((0, 2, 5, 7), scales=[1, 1, 1.7, 0.6], mode=mode)
        check_down(proto, 12, 10, feeds={"x": np.zeros((0, 2, 5, 7), np.float32)}, variants=("plain",))


@pytest.mark.parametrize("scales", [[1, 1, 2, 3], [1, 1, 1.3, 1.9], [1, 1, 0.6, 2], [1, 1, 0.5, 0.5]])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_10(mode: str, scales: list[float]) -> None:
    for fed in (False, True):
        extra, constants = (", float[4] s", "") if fed else ("", f"<float[4] s = {{{str(scales)[1:-1]}}}>")
        proto = model(f"""10 (float[1,2,5,7] x{extra}) => (float[a,b,c,d] y) {constants} {{
  y = Resize<mode = "{mode}">(x, s) }}""")
        feeds = {
            "x": np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32),
            "s": np.array(scales, np.float32),
        }
        if fed and mode == "linear":
            _, log = lower(proto, 9)
            assert [record.exactness for record in log.changes] == [Exactness.ASSUMED]
            if min(scales) < 1:
                continue
        elif not fed:
            del feeds["s"]
        unranked = UNRANKED if min(scales) < 1 or (fed and mode == "nearest") else None
        check_down(proto, 9, feeds=feeds, refused=unranked)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_an_empty_tensor_whose_lengths_stay_is_copied(mode: str) -> None:
    source = f"""10 (float[1,2,0,3] x) => (float[a,b,c,d] y) <float[4] s = {{1.0, 1.0, 0.5, 1.0}}>
        {{ y = Resize <mode = "{mode}"> (x, s) }}"""
    assert operators(check_down(source, 9, specials=False, variants=("plain",))) == ["Identity"]


def test_what_stays_a_resize_or_becomes_an_upsample() -> None:
    """PyTorch's nearest is asymmetric and floor; by a whole factor half_pixel is, too."""
    for attributes in (
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        {"coordinate_transformation_mode": "half_pixel"},
    ):
        proto = resize(("n", "c", "h", "w"), scales=[1, 1, 2, 3], mode="nearest", **attributes)
        assert operators(lower(proto, 10)[0]) == ["Resize"]
        assert operators(lower(proto, 9)[0]) == ["Upsample"]


def test_sizes_become_scales() -> None:
    proto = resize(
        sizes=[1, 2, 10, 21],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    result, _ = lower(proto, 10)
    assert operators(result) == ["Resize"]
    feeds = feed(1, 2, 5, 7)
    same_bits(run(proto, feeds), run(result, feeds), "sizes")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales(mode: str) -> None:
    source = f"""9 (float[1, 2, 3, 4] x) => (float[] y)
        <float[4] s = {{1.0, 1.0, 2.0, 1.5}}> {{ y = Upsample <mode = "{mode}"> (x, s) }}"""
    check_down(source, 8, 7)


def test_scales_at_run_time() -> None:
    source = "9 (float[1, 2, 3, 4] x, float[4] s) => (float[] y) { y = Upsample (x, s) }"
    feeds = {"x": np.ones((1, 2, 3, 4), np.float32), "s": np.array([1, 1, 2, 2], np.float32)}
    check_down(source, 8, feeds=feeds, refused="needs-constant")
