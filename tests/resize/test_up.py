"""Upsample and Resize brought up, compared with ONNX Runtime on the original."""

# ruff: noqa: E501  (models as text)

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from tests.harness import model, run, same
from tests.resize.shaped import KINDS, ROUNDINGS, feed
from tests.steps import check, lift, operators, refuses

IR_VERSIONS = {1: 3, 7: 3, 9: 4, 10: 5, 11: 6}
SIZES = "int64[4] n = {1, 2, 9, 11}"
SCALES = "float[4] s = {1., 1., 1.5, 2.}"
EMPTY = "float[0] e = {}"


def graph(
    opset: int, call: str, weights: str = "", inputs: str = "", shape: str = "1,2,5,7", dtype: str = "float"
) -> str:
    """Return a model of the nodes `call`, which take `x` to `y`."""
    dims = ",".join("abcdef"[: shape.count(",") + 1])
    constants = f"<{weights}>" if weights else ""
    return f"""<ir_version: {IR_VERSIONS.get(opset, 7)}, opset_import: ["":{opset}]>
g ({dtype}[{shape}] x{inputs}) => ({dtype}[{dims}] y) {constants} {{ {call} }}"""


def scaled(
    opset: int, scales: str, mode: str = "nearest", shape: str = "1,2,5,7", dtype: str = "float"
) -> str:
    """Return a model of one Upsample or Resize-10 by constant scales of all axes, or of the last two; "" is no mode."""
    words = f'mode="{mode}"' if mode else ""
    rank = shape.count(",") + 1
    every = scales if scales.count(",") + 1 == rank or rank != 4 else f"1., 1., {scales}"
    if opset == 7:
        return graph(
            7, f"y = Upsample<{words}{', ' if words else ''}scales=[{every}]>(x)", shape=shape, dtype=dtype
        )
    operator = "Resize" if opset == 10 else "Upsample"
    weights = f"float[{every.count(',') + 1}] s = {{{every}}}"
    return graph(
        opset, f"y = {operator}{f'<{words}>' if words else ''}(x, s)", weights, shape=shape, dtype=dtype
    )


def resize_11(given: str, weights: str, shape: str = "1,2,5,7", **attributes: Any) -> str:
    """Return a model of one Resize-11 of x, with the inputs `given` after it."""
    words = ", ".join(
        f'{key}="{item}"' if isinstance(item, str) else f"{key}={item}" for key, item in attributes.items()
    )
    return graph(11, f"y = Resize<{words}>(x, {given})", weights, shape=shape)


MODES = ("nearest", "linear")
IMAGE = ("1,2,5,7",)
ROWS = [
    # version, modes, scales, shapes, types, opsets
    ((7,), MODES, ("2., 2.", "1., 2.", "1.3, 1.7", "1.6, 2.5", "1., 1."), IMAGE, ("float",), (10, 11, 13, 18)),
    ((9,), MODES, ("2., 2.", "1.3, 1.7", "1., 2.5"), IMAGE, ("float",), (10, 11, 12, 13)),
    ((9,), MODES, ("1.3, 2.",), IMAGE, ("int8", "uint8", "int32"), (13,)),
    ((10,), MODES, ("2., 2.", "0.6, 0.4", "1.3, 1.7", "1., 0.5", "1.6, 1."), IMAGE, ("float",), (11, 13, 18, 19)),
    ((10,), ("",), ("0.6, 1.1",), IMAGE, ("float16", "int8", "uint8", "int32"), (11,)),
    ((10,), ("cubic",), ("1.3, 0.6",), IMAGE, ("float",), (11, 13)),  # which runtimes run before the standard has it
    ((10,), ("",), ("1., 0.5, 1.5, 1.1",), ("1,6,1,5",), ("float",), (11,)),
    # where the half that grows would be a copy
    (
        (10,), ("nearest",), ("0.6, 1.05", "1.05, 0.6", "0.5, 1.5", "1.09, 0.3"),
        ("1,1,9,10", "1,2,1,5", "1,2,5,1", "2,1,7,3"), ("float",), (11, 13),
    ),
    *(
        ((version,), ("",), (", ".join(map(str, [1.5, 2.0, 1.1, 1.0, 2.0, 1.3][:rank])),), (shape,), ("float",), (to,))
        for version, to in ((7, 8), (9, 13))
        for rank, shape in ((1, "4"), (2, "3,4"), (3, "2,3,4"), (5, "1,2,3,4,2"), (6, "1,2,1,3,4,2"))
    ),
]  # fmt: skip
"""What one node by constant scales is tried with: each version, mode, … of a row with each of the others."""


@pytest.mark.parametrize(
    ("version", "mode", "scales", "shape", "dtype", "to"), [case for row in ROWS for case in product(*row)]
)
def test_one_node(version: int, mode: str, scales: str, shape: str, dtype: str, to: int) -> None:
    check(scaled(version, scales, mode, shape, dtype), to=to)


@pytest.mark.parametrize("scales", ["2.5, 0.6", "0.4, 1.7", "0.3, 3."])
@pytest.mark.parametrize("to", [11, 13])
def test_10_nearest_up_and_down(scales: str, to: int) -> None:
    assert operators(check(scaled(10, scales), to=to)) == ["Resize", "Resize"]


def test_10_nearest_is_guarded_against_copying_only_where_that_can_be() -> None:
    guarded, _ = lift(model(scaled(10, "0.6, 1.05", shape="1,1,H,W")), 13)
    plain, _ = lift(model(scaled(10, "0.6, 1.5", shape="1,1,H,W")), 13)

    assert operators(guarded) == ["Resize", "Unsqueeze", "Resize", "Gather"]
    assert operators(plain) == ["Resize", "Resize"]


@pytest.mark.parametrize("rank", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("known", [True, False])
def test_10_of_every_rank(rank: int, known: bool) -> None:
    scales = np.array([0.5, 1.1, 2, 1, 0.7, 1.3][:rank], np.float32)
    weights, inputs = f"float[{rank}] s = {{{','.join(map(str, scales))}}}", f", float[{rank}] s"
    lengths = [4, 5, 6, 3, 2, 1][:rank]
    text = graph(
        10, "y = Resize(x, s)", *((weights, "") if known else ("", inputs)), ",".join(map(str, lengths))
    )
    check(text, feeds=feed(*lengths) if known else {**feed(*lengths), "s": scales})


@pytest.mark.parametrize(
    ("shape", "scales"),
    [((2, 2, 5, 7), scales) for scales in ([1, 1, 0.6, 1.05], [1, 1, 1.05, 1.05], [1, 1, 1, 1.05], [0.5, 1, 1.1, 1.1])]
    + [((1, 2, 5, 7), scales) for scales in ([1, 1, 2, 0.6], [1, 1, 0.5, 0.5], [1, 1, 3, 3])],
)  # fmt: skip
@pytest.mark.parametrize("to", [11, 13])
def test_10_with_scales_at_run_time(shape: tuple[int, ...], scales: list[float], to: int) -> None:
    for mode in MODES if shape[0] == 1 else ("nearest",):
        text = graph(10, f'y = Resize<mode="{mode}">(x, s)', "", ", float[4] s", ",".join(map(str, shape)))
        check(text, to=to, feeds={**feed(*shape), "s": np.array(scales, np.float32)})


def test_10_in_a_loop_and_a_scan() -> None:
    check(
        """10 (float[1,2,5,7] x) => (float[1,2,5,7] y, float[3,1,2,5,7] ys, float[5,1,7] z)
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
    source = model(scaled(10, f"{scales[0]!r}, {scales[1]!r}", mode, f"1,1,{lengths[0]},{lengths[1]}"))
    feeds = feed(1, 1, *lengths)
    expected = run(source, feeds)

    for target in (11, 13):
        result, _ = lift(source, target)
        same(expected, run(result, feeds), f"{lengths} × {scales} {mode} to {target}")


# Resize-11


@pytest.mark.parametrize("coordinates", KINDS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_11_drops_the_roi(coordinates: str, mode: str) -> None:
    weights = f"float[8] r = {{0.,0.,0.,0.,1.,1.,1.,1.}}, {SCALES}"
    result = check(resize_11("r, s", weights, mode=mode, coordinate_transformation_mode=coordinates), to=13)

    assert list(result.graph.node[0].input) == ["x", "", "s"]
    assert [tensor.name for tensor in result.graph.initializer] == ["s"]


EMPTY_Z = f"{EMPTY}, int64[1] z = {{0}}"
ONE_SLOT, BOTH_SLOTS = ["x", "", "s"], ["x", "", "", "n"]


@pytest.mark.parametrize(
    ("inputs", "weights", "before", "given", "slots"),
    [
        ("", f"float[0] t = {{}}, {SIZES}", "e = Identity(t)", "e, e, n", BOTH_SLOTS),
        ("", f"int64[1] zero = {{0}}, {SIZES}", "e = ConstantOfShape(zero)", "e, e, n", BOTH_SLOTS),
        ("", f"int64[1] zero = {{0}}, {SCALES}", "e = ConstantOfShape(zero)", "e, s", ONE_SLOT),
        (", float[0] t", f"float[0] t = {{}}, {SIZES}", "", "t, t, n", BOTH_SLOTS),
        ("", f"{EMPTY}, {SIZES}", "", "e, e, n", BOTH_SLOTS),
        (
            "", f"int64[1] z = {{0}}, {SIZES}", "e = Shape(x) f = Slice(e, z, z) h = Cast<to=1>(f)",
            "h, h, n", BOTH_SLOTS,
        ),
        ("", f"{EMPTY}, int64[4] one = {{1,1,1,1}}", "m = Shape(x) n = Add(m, one)", "e, e, n", BOTH_SLOTS),
        ("", f"{EMPTY}, {SCALES}", "", "e, s", ONE_SLOT),
        ("", SCALES, "", "s, s", ONE_SLOT),
        ("", f"{EMPTY}, {SCALES}", "t = Identity(s)", "e, t", ["x", "", "t"]),
    ],
)  # fmt: skip
def test_11_slots(inputs: str, weights: str, before: str, given: str, slots: list[str]) -> None:
    mode = "linear" if before == "" and given == "e, e, n" else "nearest"
    result = check(graph(11, f'{before} y = Resize<mode="{mode}">(x, {given})', weights, inputs), to=13)

    assert list(result.graph.node[-1].input) == slots
    read = {name for node in result.graph.node for name in node.input}
    read |= {value.name for value in result.graph.input}
    assert {tensor.name for tensor in result.graph.initializer} <= read


@pytest.mark.parametrize("shape", [[0], ["k"], None])
def test_11_with_both_slots_at_run_time(shape: list[int | str] | None) -> None:
    inputs = ", float[0] r, float[0] s, int64[4] n"
    source = model(graph(11, 'y = Resize<mode="nearest">(x, r, s, n)', "int64 idle = {0}", inputs))
    source.graph.input[2].CopyFrom(onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, shape))
    empty = np.zeros(0, np.float32)
    feeds = {**feed(1, 2, 5, 7), "r": empty, "s": empty, "n": np.array([1, 2, 9, 11], np.int64)}

    # onnx infers sizes of an unknown length as one of length 0, so ONNX Runtime loads no other variant of this.
    result = check(source, to=13, feeds=feeds, variants=["plain", "function"])

    assert list(result.graph.node[0].input) == ["x", "", "", "n"]


@pytest.mark.parametrize("given", ["s", "e, n"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_11_tf_crop_and_resize_in_every_mode(given: str, mode: str) -> None:
    weights = f"float[8] r = {{0.,0.,0.1,0.2,1.,1.,0.8,0.9}}, {EMPTY}, {SIZES}, {SCALES}"
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 0.5}
    result = check(resize_11(f"r, {given}", weights, mode=mode, **crop), to=13)

    assert list(result.graph.node[0].input) == ["x", "r", *(["s"] if given == "s" else ["", "n"])]


@pytest.mark.parametrize(
    "more", [{"cubic_coeff_a": -0.5}, {"exclude_outside": 1}, {"cubic_coeff_a": -0.6, "exclude_outside": 1}]
)
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
def test_11_cubic(more: dict[str, float], coordinates: str) -> None:
    attributes = {"mode": "cubic", "coordinate_transformation_mode": coordinates, **more}
    check(resize_11("e, s", f"{EMPTY}, {SCALES}", **attributes), to=13)


def half_pixel_for_nn(nearest: str, given: str, shape: str = "1,2,4,8") -> str:
    """Return a Resize-11 of two axes by scales ("s 1.1, 2.") or sizes ("n 9, 9")."""
    name, _, values = given.partition(" ")
    weights = f"float[4] s = {{1.,1.,{values}}}" if name == "s" else f"int64[4] n = {{1,2,{values}}}"
    modes = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": nearest}
    slots = "r, s" if name == "s" else "r, r, n"
    return resize_11(slots, f"float[0] r = {{}}, {weights}", shape, mode="nearest", **modes)


@pytest.mark.parametrize(
    ("nearest", "becomes"), [("floor", "round_prefer_ceil"), ("round_prefer_floor", "ceil")]
)
def test_11_tf_half_pixel_for_nn(nearest: str, becomes: str) -> None:
    result = check(half_pixel_for_nn(nearest, "s 2.,0.5"), to=13)

    attributes = {item.name: item.s.decode() for item in result.graph.node[0].attribute}
    assert attributes["coordinate_transformation_mode"] == "half_pixel"
    assert attributes["nearest_mode"] == becomes


@pytest.mark.parametrize("nearest", ROUNDINGS)
@pytest.mark.parametrize(
    ("given", "shape"),
    [
        *product(
            ("s 2., 0.5", "s 1.3, 0.6", "s 0.5, 1.", "s 0.55, 0.52", "s 1.1, 1.05", "s 1.7, 1.6", "s 0.3, 3."),
            ("1,2,4,8", "1,2,7,19", "1,1,9,1"),
        ),
        *((f"n {sizes}", "1,2,4,8") for sizes in ("8, 4", "7, 5", "4, 11", "4, 8", "3, 9", "2, 5")),
    ],
)  # fmt: skip
def test_11_tf_half_pixel_for_nn_of_every_rounding(nearest: str, given: str, shape: str) -> None:
    check(half_pixel_for_nn(nearest, given, shape), to=13, variants=["plain"])


@pytest.mark.parametrize("nearest", ROUNDINGS)
@pytest.mark.parametrize(
    ("given", "result"),
    [("s 3.,0.25", "exact"), ("s 1.1,1.", "needs-shape"), ("n 9,9", "needs-value")],
    ids=["whole scales", "other scales", "sizes"],
)
def test_11_tf_half_pixel_for_nn_of_unknown_lengths(nearest: str, given: str, result: str) -> None:
    """Two roundings have an equal at 13: exact by whole scales, equivalent otherwise. The other two need the lengths."""
    source = model(half_pixel_for_nn(nearest, given, "N,C,H,W"))
    if nearest in ("floor", "round_prefer_floor"):
        _, log = lift(source, 13)
        assert log.changes[0].exactness is (Exactness.EXACT if result == "exact" else Exactness.EQUIVALENT)
    elif result == "exact":
        lift(source, 13)
    else:
        refuses(result, lift, source, 13)
        lift(source, 12)


@pytest.mark.parametrize("nearest", ROUNDINGS)
def test_11_tf_half_pixel_for_nn_kept_on_request(nearest: str) -> None:
    source = model(half_pixel_for_nn(nearest, "s 1.1,0.6", "N,C,H,W"))
    migrate = make_pass("migrate_opset", opset=18, keep=frozenset({"tf_half_pixel_for_nn"}))

    result = migrate.run(Model(model(source)), ChangeLog()).proto

    assert list(result.graph.node[0].input) == ["x", "", "s"]
    same(run(source, feed(1, 2, 5, 7)), run(result, feed(1, 2, 5, 7)), nearest)


# Upsample


@pytest.mark.parametrize("mode", MODES)
def test_scales_at_run_time(mode: str) -> None:
    text = graph(9, f'y = Upsample<mode="{mode}">(x, s)', "", ", float[4] s")
    check(text, to=11, feeds={**feed(1, 2, 5, 7), "s": np.array([1, 1, 1.5, 2], np.float32)})


def test_a_shared_tensor_is_not_edited() -> None:
    text = graph(9, "y = Upsample(x, s) t = Mul(s, s)", "float[4] s = {1., 1., 2., 2.}")
    result = check(text.replace("d] y)", "d] y, float[4] t)"), to=13)

    resize = next(node for node in result.graph.node if node.op_type == "Resize")
    assert list(resize.input) == ["x", "", "s"]


@pytest.mark.parametrize(("old", "new"), [("nearest", "nearest"), ("bilinear", "linear")])
def test_version_1(old: str, new: str) -> None:
    source = model(graph(1, f'y = Upsample<mode="{old}", width_scale=2., height_scale=3.>(x)'))
    newer = model(graph(7, f'y = Upsample<mode="{new}", scales=[1., 1., 3., 2.]>(x)'))
    for target in (7, 9, 13, 21):
        result, _ = lift(source, target)
        same(run(newer, feed(1, 2, 5, 7)), run(result, feed(1, 2, 5, 7)), f"to {target}")


def test_nearest_below_1_rounds_down() -> None:
    source = model(graph(9, "y = Upsample(x, s)", "float[4] s = {1., 1., 1., 0.6}", shape="1,1,1,10"))
    x = np.arange(10, dtype=np.float32).reshape(1, 1, 1, 10)

    result, _ = lift(source, 13)

    indices = np.floor(np.arange(6, dtype=np.float32) / np.float32(0.6)).astype(int)
    np.testing.assert_array_equal(run(result, {"x": x})[0], x[..., indices])
    refuses("no-equal", lift, source, 10, match="rounds up")


UP = "float[4] s = {1., 1., 1.3, 2.}"


@pytest.mark.parametrize(
    ("weights", "inputs", "before"),
    [
        (UP, "", ""),
        ("", "", "s = Constant<value = float[4] {1., 1., 1.3, 2.}>()"),
        (UP, "", "t = Identity(s)"),
        (UP, ", float[4] s", ""),
        (
            "float[2] ones = {1., 1.}, float[2] wanted = {7., 11.}, int64[1] two = {2}, int64[1] end = {4}",
            "",
            "n = Shape(x) m = Slice<starts = [2], ends = [4]>(n) f = Cast<to = 1>(m) q = Div(wanted, f)"
            " s = Concat<axis = 0>(ones, q)",
        ),
        ("", ", float[4] s", ""),
    ],
    ids=["initializer", "constant", "identity", "overridable", "runtime", "input"],
)
@pytest.mark.parametrize("mode", MODES)
def test_version_9_with_scales_from_every_source(mode: str, weights: str, inputs: str, before: str) -> None:
    scales = "t" if before.startswith("t =") else "s"
    text = graph(9, f'{before} y = Upsample<mode="{mode}">(x, {scales})', weights, inputs)
    feeds = feed(1, 2, 5, 7)
    if inputs and not weights:
        feeds["s"] = np.array([1, 1, 1.3, 2], np.float32)

    result = check(text, to=13, feeds=feeds)

    assert result.graph.node[-1].input[2] == scales


def test_a_caller_can_still_override_an_initializer() -> None:
    text = graph(9, "y = Upsample(x, s)", "float[4] s = {1., 1., 2., 2.}", ", float[4] s")
    feeds = {**feed(1, 2, 5, 7), "s": np.array([1, 1, 3, 1.5], np.float32)}

    check(text, to=13, feeds=feeds, variants=["plain"])


@pytest.mark.parametrize("opset", [10, 11, 13, 17])
def test_an_upsample_in_an_opset_that_has_removed_it(opset: int) -> None:
    new = model(graph(opset, 'y = Upsample<mode="linear">(x, s)', UP))
    old = model(new)
    old.opset_import[0].version = 9

    result, log = lift(new, 18)

    same(run(old, feed(1, 2, 5, 7)), run(result, feed(1, 2, 5, 7)), f"from {opset}")
    assert [note.code for note in log.notes if note.code == "other-version"] == ["other-version"]
