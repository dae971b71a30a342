"""Resize of version 10 and 11, compared with ONNX Runtime on the original."""

# ruff: noqa: E501  (models as text)

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from tests.harness import check, lift, model, run, same


def resize_10(scales: str, mode: str, shape: str = "1,2,5,7") -> str:
    return f"""<ir_version: 5, opset_import: ["":10]>
g (float[{shape}] x) => (float[a,b,c,d] y) <float[4] s = {{1., 1., {scales}}}> {{ y = Resize<mode="{mode}">(x, s) }}"""


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["2., 2.", "0.6, 0.4", "1.3, 1.7", "1., 0.5", "1.6, 1."])
@pytest.mark.parametrize("to", [11, 13, 18, 19])
def test_10(mode: str, scales: str, to: int) -> None:
    check(resize_10(scales, mode), to=to)


@pytest.mark.parametrize("scales", ["2.5, 0.6", "0.4, 1.7", "0.3, 3."])
@pytest.mark.parametrize("to", [11, 13])
def test_10_nearest_up_and_down(scales: str, to: int) -> None:
    result = check(resize_10(scales, "nearest"), to=to)

    assert [node.op_type for node in result.graph.node] == ["Resize", "Resize"]


@pytest.mark.parametrize("scales", ["0.6, 1.05", "1.05, 0.6", "0.5, 1.5", "1.09, 0.3"])
@pytest.mark.parametrize("shape", ["1,1,9,10", "1,2,1,5", "1,2,5,1", "2,1,7,3"])
@pytest.mark.parametrize("to", [11, 13])
def test_10_nearest_where_the_growing_half_would_be_a_copy(scales: str, shape: str, to: int) -> None:
    check(resize_10(scales, "nearest", shape), to=to)


def test_10_nearest_is_guarded_against_copying_only_where_that_can_be() -> None:
    guarded, _ = lift(model(resize_10("0.6, 1.05", "nearest", "1,1,H,W")), 13)
    plain, _ = lift(model(resize_10("0.6, 1.5", "nearest", "1,1,H,W")), 13)

    assert [node.op_type for node in guarded.graph.node] == ["Resize", "Unsqueeze", "Resize", "Gather"]
    assert [node.op_type for node in plain.graph.node] == ["Resize", "Resize"]


def test_10_three_axes_of_which_one_has_length_1() -> None:
    check(
        """<ir_version: 5, opset_import: ["":10]>
g (float[1,6,1,5] x) => (float[a,b,c,d] y) <float[4] s = {1., 0.5, 1.5, 1.1}> { y = Resize(x, s) }""",
        to=11,
    )


@pytest.mark.parametrize("to", [11, 13])
def test_10_cubic_which_runtimes_support_before_the_standard(to: int) -> None:
    check(resize_10("1.3, 0.6", "cubic"), to=to)


@pytest.mark.parametrize("rank", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("known", [True, False])
def test_10_of_every_rank(rank: int, known: bool) -> None:
    scales = np.array([0.5, 1.1, 2, 1, 0.7, 1.3][:rank], np.float32)
    shape = ",".join("456321"[:rank])
    given = f"<float[{rank}] s = {{{','.join(map(str, scales))}}}>" if known else ""
    argument = "" if known else f", float[{rank}] s"
    x = np.random.default_rng(0).standard_normal([int(n) for n in shape.split(",")]).astype(np.float32)
    check(
        f"""<ir_version: 5, opset_import: ["":10]>
g (float[{shape}] x{argument}) => (float[{",".join("abcdef"[:rank])}] y) {given} {{ y = Resize(x, s) }}""",
        feeds={"x": x} if known else {"x": x, "s": scales},
    )


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int32"])
def test_10_of_every_type(dtype: str) -> None:
    check(
        f"""<ir_version: 5, opset_import: ["":10]>
g ({dtype}[1,2,5,7] x) => ({dtype}[a,b,c,d] y) <float[4] s = {{1., 1., 0.6, 1.1}}> {{ y = Resize(x, s) }}"""
    )


@pytest.mark.parametrize(
    "scales", [[1, 1, 0.6, 1.05], [1, 1, 1.05, 1.05], [1, 1, 1, 1.05], [0.5, 1, 1.1, 1.1]]
)
def test_10_with_scales_at_run_time_that_barely_grow(scales: list[float]) -> None:
    feeds = {
        "x": np.random.default_rng(0).standard_normal((2, 2, 5, 7)).astype(np.float32),
        "s": np.array(scales, np.float32),
    }
    check(
        """<ir_version: 5, opset_import: ["":10]>
g (float[2,2,5,7] x, float[4] s) => (float[a,b,c,d] y) { y = Resize(x, s) }""",
        feeds=feeds,
    )


def test_10_in_a_loop_and_a_scan() -> None:
    check(
        """<ir_version: 5, opset_import: ["":10]>
g (float[1,2,5,7] x) => (float[1,2,5,7] y, float[3,1,2,5,7] ys, float[5,1,7] z)
<int64 count = {3}, bool go = {1}, float[4] up = {1., 1., 1., 2.}, float[4] s = {1., 1., 0.6, 1.05}, int64[1] none = {0}> {
  y, ys = Loop(count, go, x) <body = body (int64 i, bool c, float[1,2,5,7] v) => (bool c2, float[1,2,5,7] w, float[1,2,5,7] each) {
    c2 = Identity(c)
    small = Resize(v, s)
    big = Resize(small, up)
    sum = ReduceMean<keepdims = 1>(big)
    w = Add(v, sum)
    each = Identity(w)
  }>
  rows = Transpose<perm = [2, 0, 1, 3]>(x)
  z = Scan<num_scan_inputs = 1, body = inner (float[1,2,7] r) => (float[1,7] t) {
    half = Constant<value = float[3] {1., 0.5, 1.}>()
    t3 = Resize(r, half)
    t = ReduceMax<axes = [1], keepdims = 0>(t3)
  }>(rows)
}""",
        variants=["plain"],
    )


@pytest.mark.parametrize("scales", [[1, 1, 2, 0.6], [1, 1, 0.5, 0.5], [1, 1, 3, 3]])
@pytest.mark.parametrize("to", [11, 13])
def test_10_with_scales_at_run_time(scales: list[float], to: int) -> None:
    feeds = {
        "x": np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32),
        "s": np.array(scales, np.float32),
    }
    for mode in ("nearest", "linear"):
        check(
            f"""<ir_version: 5, opset_import: ["":10]>
g (float[1,2,5,7] x, float[4] s) => (float[a,b,c,d] y) {{ y = Resize<mode="{mode}">(x, s) }}""",
            to=to,
            feeds=feeds,
        )


@given(
    lengths=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    scales=st.tuples(st.floats(0.3125, 3, width=32), st.floats(0.3125, 3, width=32)),
    mode=st.sampled_from(["nearest", "linear"]),
)
@settings(max_examples=60, deadline=None)
def test_10_at_random(lengths: tuple[int, int], scales: tuple[float, float], mode: str) -> None:
    if any(
        int(np.float32(scale) * np.float32(length)) < 1 for length, scale in zip(lengths, scales, strict=True)
    ):
        return
    source = model(resize_10(f"{scales[0]!r}, {scales[1]!r}", mode, f"1,1,{lengths[0]},{lengths[1]}"))
    x = np.random.default_rng(0).standard_normal((1, 1, *lengths)).astype(np.float32)
    expected = run(source, {"x": x})

    for target in (11, 13):
        result, _ = lift(source, target)
        same(expected, run(result, {"x": x}), f"{lengths} × {scales} {mode} to {target}")


@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_11_drops_the_roi(coordinates: str, mode: str) -> None:
    result = check(
        f"""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[8] r = {{0.,0.,0.,0.,1.,1.,1.,1.}}, float[4] s = {{1.,1.,1.5,2.}}> {{
  y = Resize<mode="{mode}", coordinate_transformation_mode="{coordinates}">(x, r, s)
}}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "", "s"]
    assert [tensor.name for tensor in result.graph.initializer] == ["s"]


def test_11_keeps_the_roi_of_tf_crop_and_resize() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[8] r = {0.,0.,0.1,0.2,1.,1.,0.8,0.9}, float[4] s = {1.,1.,1.5,2.}> {
  y = Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5>(x, r, s)
}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "r", "s"]


def test_11_with_sizes_and_one_empty_tensor_in_both_slots() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[0] t = {}, int64[4] n = {1, 2, 9, 11}> {
  y = Resize<mode="linear">(x, t, t, n)
}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "", "", "n"]
    assert [tensor.name for tensor in result.graph.initializer] == ["n"]


def test_11_with_scales_in_the_roi_slot() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[4] s = {1.,1.,2.,2.}> {
  y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, s, s)
}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "", "s"]


def test_11_with_a_computed_empty_roi() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <int64[1] zero = {0}, float[4] s = {1.,1.,2.,2.}> {
  r = ConstantOfShape(zero)
  y = Resize<mode="nearest">(x, r, s)
}""",
        to=13,
    )

    assert [node.op_type for node in result.graph.node] == ["Resize"]


@pytest.mark.parametrize(
    ("nearest", "becomes"), [("floor", "round_prefer_ceil"), ("round_prefer_floor", "ceil")]
)
def test_11_tf_half_pixel_for_nn(nearest: str, becomes: str) -> None:
    result = check(
        f"""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,4,8] x) => (float[a,b,c,d] y) <float[0] r = {{}}, float[4] s = {{1.,1.,2.,0.5}}> {{
  y = Resize<mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="{nearest}">(x, r, s)
}}""",
        to=13,
    )

    attributes = {item.name: item.s.decode() for item in result.graph.node[0].attribute}
    assert attributes["coordinate_transformation_mode"] == "half_pixel"
    assert attributes["nearest_mode"] == becomes


ROUNDINGS = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]


@pytest.mark.parametrize("nearest", ROUNDINGS)
@pytest.mark.parametrize(
    "scales", ["2., 0.5", "1.3, 0.6", "0.5, 1.", "0.55, 0.52", "1.1, 1.05", "1.7, 1.6", "0.3, 3."]
)
@pytest.mark.parametrize("shape", ["1,2,4,8", "1,2,7,19", "1,1,9,1"])
def test_11_tf_half_pixel_for_nn_of_every_rounding(nearest: str, scales: str, shape: str) -> None:
    check(
        half_pixel_for_nn(nearest, f"float[4] s = {{1.,1.,{scales}}}", "s", shape), to=13, variants=["plain"]
    )


@pytest.mark.parametrize("nearest", ROUNDINGS)
@pytest.mark.parametrize("sizes", ["8, 4", "7, 5", "4, 11", "4, 8", "3, 9", "2, 5"])
def test_11_tf_half_pixel_for_nn_by_sizes(nearest: str, sizes: str) -> None:
    check(half_pixel_for_nn(nearest, f"int64[4] n = {{1,2,{sizes}}}", "r, n"), to=13, variants=["plain"])


@pytest.mark.parametrize("nearest", ["floor", "round_prefer_floor"])
def test_11_tf_half_pixel_for_nn_is_exact_wherever_the_scales_are_whole(nearest: str) -> None:
    _, log = lift(model(half_pixel_for_nn(nearest, "float[4] s = {1.,1.,3.,0.25}", "s", "N,C,H,W")), 13)

    assert log.changes[0].exactness is Exactness.EXACT


@pytest.mark.parametrize("nearest", ["floor", "round_prefer_floor"])
@pytest.mark.parametrize(
    ("weights", "given"), [("float[4] s = {1.,1.,1.1,1.}", "s"), ("int64[4] n = {1,2,9,9}", "r, n")]
)
def test_11_tf_half_pixel_for_nn_is_equivalent_where_scales_are_not_known(
    nearest: str, weights: str, given: str
) -> None:
    _, log = lift(model(half_pixel_for_nn(nearest, weights, given, "N,C,H,W")), 13)

    assert log.changes[0].exactness is Exactness.EQUIVALENT


@pytest.mark.parametrize("nearest", ["ceil", "round_prefer_ceil"])
@pytest.mark.parametrize(
    ("weights", "given", "code"),
    [("float[4] s = {1.,1.,1.1,1.}", "s", "needs-shape"), ("int64[4] n = {1,2,9,9}", "r, n", "needs-value")],
)
def test_11_tf_half_pixel_for_nn_that_equals_no_mode_of_13(
    nearest: str, weights: str, given: str, code: str
) -> None:
    source = model(half_pixel_for_nn(nearest, weights, given, "N,C,H,W"))

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == code
    lift(source, 12)


@pytest.mark.parametrize("nearest", ROUNDINGS)
def test_11_tf_half_pixel_for_nn_kept_on_request(nearest: str) -> None:
    source = model(half_pixel_for_nn(nearest, "float[4] s = {1.,1.,1.1,0.6}", "s", "N,C,H,W"))
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    migrate = builtin_passes()["migrate_opset"](opset=18, keep=frozenset({"tf_half_pixel_for_nn"}))  # type: ignore[call-arg]

    result = migrate.run(Model(model(source)), ChangeLog()).proto

    assert list(result.graph.node[0].input) == ["x", "", "s"]
    same(run(source, {"x": x}), run(result, {"x": x}), nearest)


def half_pixel_for_nn(nearest: str, weights: str, given: str, shape: str = "1,2,4,8") -> str:
    return f"""<ir_version: 6, opset_import: ["":11]>
g (float[{shape}] x) => (float[a,b,c,d] y) <float[0] r = {{}}, {weights}> {{
  y = Resize<mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="{nearest}">(x, r, {given})
}}"""


def resize_11(inputs: str, weights: str, call: str, attributes: str = 'mode="nearest"') -> str:
    return f"""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x{inputs}) => (float[a,b,c,d] y) <{weights}> {{ {call.replace("RESIZE", f"y = Resize<{attributes}>")} }}"""


SIZES = "int64[4] n = {1, 2, 9, 11}"
SCALES = "float[4] s = {1., 1., 1.5, 2.}"


@pytest.mark.parametrize(
    ("inputs", "weights", "call", "expected"),
    [
        ("", f"float[0] t = {{}}, {SIZES}", "e = Identity(t) RESIZE(x, e, e, n)", ["x", "", "", "n"]),
        (
            "",
            f"int64[1] zero = {{0}}, {SIZES}",
            "e = ConstantOfShape(zero) RESIZE(x, e, e, n)",
            ["x", "", "", "n"],
        ),
        (", float[0] t", f"float[0] t = {{}}, {SIZES}", "RESIZE(x, t, t, n)", ["x", "", "", "n"]),
        (
            "",
            f"{SCALES}, {SIZES}",
            "e = Shape(x) f = Slice(e, z, z) h = Cast<to=1>(f) RESIZE(x, h, h, n)",
            ["x", "", "", "n"],
        ),
        (
            "",
            "int64[4] one = {1,1,1,1}",
            "m = Shape(x) n = Add(m, one) RESIZE(x, e, e, n)",
            ["x", "", "", "n"],
        ),
        ("", SCALES, "RESIZE(x, e, s)", ["x", "", "s"]),
        ("", SCALES, "RESIZE(x, s, s)", ["x", "", "s"]),
        ("", SCALES, "t = Identity(s) RESIZE(x, e, t)", ["x", "", "t"]),
    ],
)
def test_11_slots(inputs: str, weights: str, call: str, expected: list[str]) -> None:
    empties = "float[0] e = {}, int64[1] z = {0}, "
    if "e = " in call:
        empties = "int64[1] z = {0}, "
    result = check(resize_11(inputs, empties + weights, call), to=13)

    assert list(result.graph.node[-1].input) == expected


@pytest.mark.parametrize("shape", [[0], ["k"], None])
def test_11_with_both_slots_at_run_time(shape: list[int | str] | None) -> None:
    source = model(
        resize_11(", float[0] r, float[0] s, int64[4] n", "int64 idle = {0}", "RESIZE(x, r, s, n)")
    )
    source.graph.input[2].CopyFrom(onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, shape))
    empty = np.zeros(0, np.float32)
    feeds = {"r": empty, "s": empty, "n": np.array([1, 2, 9, 11], np.int64)}
    feeds["x"] = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)

    # onnx infers sizes of an unknown length as one of length 0, so ONNX Runtime loads no other variant of this.
    result = check(source, to=13, feeds=feeds, variants=["plain", "function"])

    assert list(result.graph.node[0].input) == ["x", "", "", "n"]


CROP = 'mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5'
ROI = "float[8] r = {0.,0.,0.1,0.2,1.,1.,0.8,0.9}"


@pytest.mark.parametrize("given", ["s", "e, n"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_11_tf_crop_and_resize_in_every_mode(given: str, mode: str) -> None:
    check(
        resize_11(
            "",
            f"{ROI}, float[0] e = {{}}, {SIZES}, {SCALES}",
            f"RESIZE(x, r, {given})",
            CROP.replace("linear", mode),
        ),
        to=13,
    )


@pytest.mark.parametrize(
    "more", ["cubic_coeff_a=-0.5", "exclude_outside=1", "cubic_coeff_a=-0.6, exclude_outside=1"]
)
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
def test_11_cubic(more: str, coordinates: str) -> None:
    attributes = f'mode="cubic", coordinate_transformation_mode="{coordinates}", {more}'
    check(resize_11("", f"float[0] e = {{}}, {SCALES}", "RESIZE(x, e, s)", attributes), to=13)
