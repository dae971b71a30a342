"""Upsample of versions 7 and 9, compared with ONNX Runtime; of version 1, which it does not run, with NumPy."""

from __future__ import annotations

import numpy as np
import onnx
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
  y = Upsample<mode="{"linear" if bilinear else "nearest"}", scales=[1., 1., 3., 2.]>(x)
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


def test_an_unknown_mode_is_refused() -> None:
    source = model(f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x) => (float[a,b,c,d] y) <float[4] s = {{1., 1., 2., 2.}}> {{ y = Upsample<mode="bicubic">(x, s) }}""")

    with pytest.raises(CannotMigrate, match="attribute mode has the unknown value 'bicubic'"):
        lift(source, 13)


@pytest.mark.parametrize("given", ["attribute", "constant", "identity", "overridable", "runtime", "input"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_version_9_with_scales_from_every_source(given: str, mode: str) -> None:
    weights, inputs, call = "float[4] s = {1., 1., 1.3, 2.}", "", "RESIZE(x, s)"
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)}
    if given == "constant":
        weights, call = "", "s = Constant<value = float[4] {1., 1., 1.3, 2.}>() RESIZE(x, s)"
    elif given == "identity":
        call = "t = Identity(s) RESIZE(x, t)"
    elif given == "overridable":
        inputs = ", float[4] s"
    elif given == "runtime":
        weights = (
            "float[2] ones = {1., 1.}, float[2] wanted = {7., 11.}, int64[1] two = {2}, int64[1] end = {4}"
        )
        call = """n = Shape(x) m = Slice<starts = [2], ends = [4]>(n) f = Cast<to = 1>(m) q = Div(wanted, f)
  s = Concat<axis = 0>(ones, q) RESIZE(x, s)"""
    elif given == "input":
        weights, inputs = "", ", float[4] s"
        feeds["s"] = np.array([1, 1, 1.3, 2], np.float32)
    source = f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x{inputs}) => (float[a,b,c,d] y) <{weights}> {{ {call.replace("RESIZE", f'y = Upsample<mode="{mode}">')} }}"""
    if not weights:
        source = source.replace("<>", "")

    result = check(source, to=13, feeds=feeds)

    assert result.graph.node[-1].input[2] == ("t" if given == "identity" else "s")


def test_a_caller_can_still_override_an_initializer() -> None:
    source = f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x, float[4] s) => (float[a,b,c,d] y) <float[4] s = {{1., 1., 2., 2.}}> {{ y = Upsample(x, s) }}"""
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)

    check(source, to=13, feeds={"x": x, "s": np.array([1, 1, 3, 1.5], np.float32)}, variants=["plain"])


@pytest.mark.parametrize("opset", [10, 11, 13, 17])
def test_an_upsample_in_an_opset_that_has_removed_it(opset: int) -> None:
    new = model(f"""<ir_version: 7, opset_import: ["":{opset}]>
g ({SHAPE} x) => (float[a,b,c,d] y) <float[4] s = {{1., 1., 1.3, 2.}}> {{ y = Upsample<mode="linear">(x, s) }}""")
    old = model(new)
    old.opset_import[0].version = 9
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)

    result, log = lift(new, 18)

    np.testing.assert_array_equal(run(result, {"x": x})[0], run(old, {"x": x})[0])
    assert [note.code for note in log.notes if note.code == "other-version"] == ["other-version"]


@pytest.mark.parametrize("shape", ["4", "3,4", "2,3,4", "1,2,3,4,2", "1,2,1,3,4,2"])
@pytest.mark.parametrize("version", [7, 9])
def test_every_rank(shape: str, version: int) -> None:
    rank = shape.count(",") + 1
    scales = [1.5, 2.0, 1.1, 1.0, 2.0, 1.3][:rank]
    dims = ",".join("abcdef"[:rank])
    if version == 7:
        check(f"""<ir_version: 3, opset_import: ["":7]>
g (float[{shape}] x) => (float[{dims}] y) {{ y = Upsample<scales={scales}>(x) }}""")
    else:
        given = ", ".join(map(str, scales))
        check(
            f"""<ir_version: 4, opset_import: ["":9]>
g (float[{shape}] x) => (float[{dims}] y) <float[{rank}] s = {{{given}}}> {{ y = Upsample(x, s) }}""",
            to=13,
        )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_every_type(dtype: str, mode: str) -> None:
    check(
        f"""<ir_version: 4, opset_import: ["":9]>
g ({dtype}[1,2,5,7] x) => ({dtype}[a,b,c,d] y) <float[4] s = {{1., 1., 1.3, 2.}}> {{ y = Upsample<mode="{mode}">(x, s) }}""",
        to=13,
    )


@pytest.mark.parametrize("scales", ["1., 1., 0., 2.", "1., 1., -2., 2.", "1., 2., 2.", "1., 1., 1., 2., 2."])
@pytest.mark.parametrize("version", [7, 9])
def test_bad_scales(scales: str, version: int) -> None:
    count = scales.count(",") + 1
    source = model(f"""<ir_version: 4, opset_import: ["":9]>
g ({SHAPE} x) => (float[a,b,c,d] y) <float[{count}] s = {{{scales}}}> {{ y = Upsample(x, s) }}""")
    if version == 7:
        source = model(f"""<ir_version: 3, opset_import: ["":7]>
g ({SHAPE} x) => (float[a,b,c,d] y) {{ y = Upsample<scales=[{scales}]>(x) }}""")

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "bad-scales"


@pytest.mark.parametrize(
    ("height", "rank"), [(0.0, 4), (-2.0, 4), (float("nan"), 4), (float("inf"), 4), (2.0, 3)]
)
def test_version_1_with_bad_scales(height: float, rank: int) -> None:
    node = onnx.helper.make_node("Upsample", ["x"], ["y"], height_scale=height, width_scale=2.0)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, 5, 7][:rank])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node], "g", [x], [y])
    source = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 1)], ir_version=3)

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "bad-scales"
