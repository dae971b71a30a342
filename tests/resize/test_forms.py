"""The form in which a Resize is written: the numbers stay the same, and the model loads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_migrate import files
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.migration import migrate
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from onnx_migrate.rewrite.resize import forms
from onnx_migrate.rewrite.resize.spec import ResizeSpec, read_resize
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.targets import resolve
from tests.harness import ORT_NEWEST, loads, model, needs_negative_axes, require_opset, run, same
from tests.resize.shaped import apply_resize_passes, feed, resizes, run_time
from tests.steps import operators, refuses

OPSETS = [opset for opset in (11, 13, 18, 19, 21, 26) if opset <= ORT_NEWEST]


def by_scales(opset: int, shape: str, scales: str, attributes: str = 'mode="linear"') -> str:
    slots = "e, s" if opset < 13 else ", s"
    return f"""{opset} (float[{shape}] x) => (float[a,b,c,d] y) <float[0] e = {{}}, float[4] s = {{1., 1., {scales}}}> {{
  y = Resize<{attributes}>(x, {slots})
}}"""


# auto


def static_skip(opset: int) -> onnx.ModelProto:
    """13 to 25, added to a tensor of length 25: PyTorch's U-Nets, which ONNX Runtime 1.28 and later do not load."""
    scale = float(np.float32(25 / 13))
    slots = "e, s" if opset < 13 else ", s"
    text = f"""{opset} (float[1,2,13,13] x, float[1,2,25,25] skip) => (float[1,2,25,25] y)
<float[0] e = {{}}, float[4] s = {{1., 1., {scale!r}, {scale!r}}}> {{
  big = Resize<mode="linear">(x, {slots})
  y = Add(big, skip)
}}"""
    return model(text)


@pytest.mark.parametrize("opset", OPSETS)
def test_a_model_that_does_not_load_loads_with_sizes(opset: int) -> None:
    source = static_skip(opset)
    feeds = {**feed(1, 2, 13, 13), "skip": np.ones((1, 2, 25, 25), np.float32)}

    result, log = apply_resize_passes(source)

    assert loads(result)
    onnx.checker.check_model(result, full_check=True)
    assert resizes(result)[0].input[3]
    assert [change.exactness for change in log.changes] == [Exactness.EXACT]
    alone = model(source)
    alone.graph.node.pop()
    alone.graph.node[0].output[0] = "y"
    alone.graph.input.pop()
    same([run(alone, {"x": feeds["x"]})[0] + 1], run(result, feeds), "sizes for scales")


@pytest.mark.parametrize(
    ("scale", "read", "walks"),
    [("2.0", "s", False), ("1.9230769", "s", True), ("2.0", "t", True), ("2.0", "listed", True)],
    ids=["agreed", "may disagree", "at run time", "overridable"],
)
def test_the_model_is_traversed_only_where_a_resize_may_need_it(
    scale: str, read: str, walks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[object] = []
    monkeypatch.setattr(
        "onnx_migrate.passes.resize.traversal.ResizeTraversal.visit_all",
        lambda self, visit: walked.append(visit),
    )
    text = f"""9 (float[1,3,8,8] x, float[4] t, float[4] listed) => (float[a,b,c,d] y)
<float[4] s = {{1.0, 1.0, {scale}, {scale}}}> {{ y = Upsample<mode = "nearest">(x, {read}) }}"""
    proto = model(text)
    if read == "listed":
        proto.graph.initializer.append(helper.make_tensor("listed", 1, [4], [1, 1, 2, 2]))

    migrate(proto, opset=17, verify=False, simplify=False, keep_initializers_as_inputs=True)

    assert bool(walked) == walks


def test_lengths_are_followed_through_resizes_that_are_inferred_wrong() -> None:
    up, down = float(np.float32(25 / 13)), float(np.float32(31 / 25))
    source = f"""13 (float[1,1,13,13] x) => (float[1,1,a,b] z, int64[4] n)
<float[4] s = {{1., 1., {up!r}, {up!r}}}, float[4] t = {{1., 1., {down!r}, {down!r}}}> {{
  y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , s)
  r = Relu(y)
  z = Resize<mode="linear">(r, , t)
  n = Shape(z)
}}"""
    feeds = feed(1, 1, 13, 13)
    expected = run(model(source), feeds)

    result, _ = apply_resize_passes(source)
    actual = run(result, feeds)

    np.testing.assert_array_equal(actual[0], expected[0])
    assert actual[0].shape == (1, 1, 31, 31)
    assert actual[1].tolist() == [1, 1, 31, 31]
    inferred = onnx.shape_inference.infer_shapes(result, strict_mode=True, data_prop=True)
    dims = next(v for v in inferred.graph.value_info if v.name == "y").type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [1, 1, 25, 25]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(("length", "out"), [(13, 25), (7, 31), (706, 223), (12, 25), (5, 9)])
def test_auto_changes_no_number(mode: str, coordinates: str, length: int, out: int) -> None:
    scale = float(np.float32(out / length))
    attributes = f'mode="{mode}", coordinate_transformation_mode="{coordinates}"'
    source = by_scales(13, f"1,1,{length},4", f"{scale!r}, 1.", attributes)
    feeds = feed(1, 1, length, 4)

    result, _ = apply_resize_passes(source)

    same(run(model(source), feeds), run(result, feeds), f"{length} to {out}")


def test_auto_keeps_scales_that_load() -> None:
    for scales in ("2., 2.", "1.5, 0.5", "1.3, 0.7"):
        source = model(by_scales(11, "1,2,11,23", scales))
        result, log = apply_resize_passes(source)
        assert result == source
        assert not log.changes


def test_auto_warns_where_sizes_would_not_be_exact() -> None:
    scale = np.nextafter(np.float32(195 / 199), np.float32(0))
    assert int(np.float32(199) * scale) == 195
    assert np.float32(195) / np.float32(199) != scale
    source = model(by_scales(11, "1,2,199,4", f"{float(scale)!r}, 1."))

    result, log = apply_resize_passes(source)

    assert result == source
    assert [note.code for note in log.notes] == ["resize-length"]


@pytest.mark.parametrize("opset", OPSETS)
def test_a_dynamic_batch_is_not_frozen(opset: int) -> None:
    source = model(static_skip(opset))
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"

    result, _ = apply_resize_passes(source)

    assert loads(result)
    for batch in (1, 3):
        feeds = {**feed(batch, 2, 13, 13), "skip": np.zeros((batch, 2, 25, 25), np.float32)}
        assert run(result, feeds)[0].shape == (batch, 2, 25, 25)
    if opset >= 18:
        assert "axes" in [attribute.name for attribute in resizes(result)[0].attribute]


def test_dims_that_will_be_dynamic_are_not_known() -> None:
    source = static_skip(13)
    wish = {"x": {0: "N", 2: "H", 3: "W"}, "skip": {0: "N", 2: "P", 3: "Q"}}

    kept, _ = apply_resize_passes(source, dynamic=wish)
    batch, _ = apply_resize_passes(source, dynamic={"x": {0: "N"}, "skip": {0: "N"}})

    assert kept == source
    assert operators(batch) == ["Shape", "Slice", "Concat", "Resize", "Add"]


@pytest.mark.parametrize("place", ["function", "if"])
def test_inside_bodies(place: str) -> None:
    from tests.harness import make_variant

    scale = float(np.float32(25 / 13))
    source = model(by_scales(11, "1,2,13,4", f"{scale!r}, 1.", 'mode="nearest"'))
    source.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [1, 2, 25, 4]))
    feeds = feed(1, 2, 13, 4)
    variant, given = make_variant(source, place, feeds)

    result, log = apply_resize_passes(variant)

    assert len(log.changes) == (2 if place == "if" else 1)
    same(run(source, feeds), run(result, given), place)


def test_value_info_that_a_length_contradicts_is_dropped() -> None:
    source = static_skip(13)
    source.graph.value_info.add().CopyFrom(helper.make_tensor_value_info("big", 1, [1, 2, 24, 24]))

    result, log = apply_resize_passes(source)

    assert not result.graph.value_info
    assert "value-info" in [note.code for note in log.notes]


# Folding


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("wanted", ["10., 21.", "3., 4.", "3., 21.", "5., 7.", "9., 7."])
@pytest.mark.parametrize("to", OPSETS)
def test_run_time_scales_of_known_shapes_become_constants(mode: str, wanted: str, to: int) -> None:
    source = run_time(mode, "2,2,5,7", wanted)
    feeds = feed(2, 2, 5, 7)

    result, _ = apply_resize_passes(source, to)

    same(run(source, feeds), run(result, feeds), f"{mode} to {wanted}")
    assert not {"Shape", "Div", "Min", "ReduceMin"} & {node.op_type for node in result.graph.node}


def test_run_time_scales_of_unknown_shapes_stay() -> None:
    source = run_time("nearest", "N,2,H,W")

    result, _ = apply_resize_passes(source, 13)

    for shape in ((1, 2, 5, 7), (2, 2, 20, 9), (1, 2, 20, 40)):
        same(run(source, feed(*shape)), run(result, feed(*shape)), str(shape))


def test_computed_sizes_of_a_wrong_number_are_refused() -> None:
    """onnx does not infer how many there are."""
    source = """13 (float[1,2,5,3] x) => (float[a,b,c,d] y) <int64[1] zero = {0}, int64[1] one = {1}> {
  s = Shape(x)
  rank = Shape(s)
  end = Sub(rank, one)
  n = Slice(s, zero, end)
  y = Resize<mode="nearest">(x, , , n)
}"""
    refuses("bad-sizes", apply_resize_passes, source, match="3 elements for 4 resized axes")


def test_sizes_computed_from_a_dynamic_batch_stay_computed() -> None:
    source = """13 (float[N,2,5,7] x) => (float[a,b,c,d] y) <int64[1] zero = {0}, int64[1] two = {2}, int64[2] hw = {9, 11}> {
  n = Shape(x)
  m = Slice(n, zero, two)
  z = Concat<axis = 0>(m, hw)
  y = Resize<mode="linear">(x, , , z)
}"""
    fixed = source.replace("float[N,", "float[3,")

    dynamic, _ = apply_resize_passes(source)
    static, _ = apply_resize_passes(fixed)

    assert dynamic == model(source)
    assert operators(static) == ["Resize"]
    same(run(model(fixed), feed(3, 2, 5, 7)), run(static, feed(3, 2, 5, 7)), "folded")


@pytest.mark.parametrize("kind", ["scale_factor", "gather"])
def test_shape_arithmetic_of_other_exporters(kind: str) -> None:
    floor = """
  h = Gather<axis = 0>(n, i2) hf = Cast<to = 1>(h) hm = Mul(hf, factor) hr = Floor(hm) hi = Cast<to = 7>(hr)
  w = Gather<axis = 0>(n, i3) wf = Cast<to = 1>(w) wm = Mul(wf, factor) wr = Floor(wm) wi = Cast<to = 7>(wr)
  hu = Unsqueeze(hi, zero) wu = Unsqueeze(wi, zero) hw = Concat<axis = 0>(hu, wu)"""
    twice = "  hw1 = Slice(n, two, four) hw = Mul(hw1, whole)"
    source = f"""13 (float[1,2,5,7] x) => (float[a,b,c,d] y)
<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] four = {{4}}, int64 i2 = {{2}}, int64 i3 = {{3}},
 float factor = {{1.5}}, int64[1] whole = {{2}}> {{
  n = Shape(x)
  m = Slice(n, zero, two)
{floor if kind == "scale_factor" else twice}
  z = Concat<axis = 0>(m, hw)
  y = Resize<mode="linear">(x, , , z)
}}"""

    result, _ = apply_resize_passes(source)

    assert operators(result) == ["Resize"]
    same(run(model(source), feed(1, 2, 5, 7)), run(result, feed(1, 2, 5, 7)), kind)


# The forms scales and sizes


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("shape", ["1,2,5,7", "N,2,5,7", "N,C,H,W"])
def test_the_form_sizes(mode: str, opset: int, shape: str) -> None:
    source = by_scales(opset, shape, "2., 3.", f'mode="{mode}"')

    result, log = apply_resize_passes(source, form="sizes")

    node = resizes(result)[0]
    assert node.input[3]
    assert not node.input[2] or opset < 13
    assert [change.exactness for change in log.changes] == [Exactness.EXACT]
    for given in (feed(1, 2, 5, 7),) if shape[0] == "1" else (feed(1, 2, 5, 7), feed(3, 2, 5, 7)):
        same(run(model(source), given), run(result, given), shape)


@pytest.mark.parametrize("opset", OPSETS)
def test_sizes_of_axes_that_are_partly_known(opset: int) -> None:
    source = by_scales(opset, "N,2,5,W", "1.6, 3.")

    result, _ = apply_resize_passes(source, form="sizes")

    for given in (feed(1, 2, 5, 7), feed(3, 2, 5, 2)):
        same(run(model(source), given), run(result, given), "1.6 by 5, and 3")


def test_sizes_that_would_not_be_exact() -> None:
    for shape, scales in (("1,2,5,7", "1.5, 2."), ("1,2,H,W", "1.6, 2.")):
        source = model(by_scales(11, shape, scales))
        result, log = apply_resize_passes(source, form="sizes")
        assert result == source
        assert [note.code for note in log.notes] == ["resize-kept"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("sizes", ["8, 10", "3, 4", "5, 14"])
def test_the_form_scales(mode: str, opset: int, sizes: str) -> None:
    slots = "e, e, n" if opset < 13 else ", , n"
    source = f"""{opset} (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[0] e = {{}}, int64[4] n = {{1, 2, {sizes}}}> {{
  y = Resize<mode="{mode}">(x, {slots})
}}"""

    result, _ = apply_resize_passes(source, form="scales")

    assert len(resizes(result)[0].input) == 3
    same(run(model(source), feed(1, 2, 5, 7)), run(result, feed(1, 2, 5, 7)), sizes)


@pytest.mark.parametrize("opset", [opset for opset in OPSETS if opset >= 18])
@pytest.mark.parametrize("given", ["s", ", n"])
def test_negative_axes_are_counted_from_the_front(given: str, opset: int) -> None:
    """ONNX Runtime before 1.27 does not load them, or crashes: the same is computed as without them."""
    text = f"""{opset} (float[1,2,5,6] x) => (float[1,2,a,b] y) <float[2] s = {{0.5, 1.5}}, int64[2] n = {{3, 9}}> {{
  y = Resize<mode = "linear", axes = [-1, 2]>(x, , {given})
}}"""

    result, log = apply_resize_passes(text)

    assert [list(item.ints) for item in resizes(result)[0].attribute if item.name == "axes"] == [[3, 2]]
    assert [change.exactness for change in log.changes] == [Exactness.EXACT]
    plain = (
        text.replace("axes = [-1, 2]", "axes = [2, 3]")
        .replace("0.5, 1.5", "1.5, 0.5")
        .replace("3, 9", "9, 3")
    )
    same(run(model(plain), feed(1, 2, 5, 6)), run(result, feed(1, 2, 5, 6)), "counted from the front")


def test_scales_that_would_be_inferred_wrong_are_not_written() -> None:
    sizes = model("""13 (float[1,2,5,7] x) => (float[a,b,c,d] y) <int64[4] n = {1, 2, 9, 7}> {
  y = Resize<mode="linear">(x, , , n)
}""")

    for source, code in ((sizes, "resize-kept"), (static_skip(13), "resize-length")):
        result, log = apply_resize_passes(source, form="scales")
        assert result == source
        assert [note.code for note in log.notes] == [code]


def test_two_resizes_of_the_model_in_a_row_are_not_joined() -> None:
    source = """10 (float[1,1,4,9] x) => (float[a,b,c,d] z) <float[4] s = {1., 1., 1., 0.6}, float[4] t = {1., 1., 2., 2.}> {
  y = Resize<mode="nearest">(x, s)
  z = Resize<mode="nearest">(y, t)
}"""

    result, _ = apply_resize_passes(source, 11)

    assert len(resizes(result)) == 2
    same(run(model(source), feed(1, 1, 4, 9)), run(result, feed(1, 1, 4, 9)), "in a row")


def test_axes() -> None:
    scale = float(np.float32(25 / 13))
    source = f"""18 (float[N,13,2,13] x) => (float[a,b,c,d] y) <float[2] s = {{{scale!r}, {scale!r}}}> {{
  y = Resize<mode="nearest", axes=[3, 1]>(x, , s)
}}"""

    result, _ = apply_resize_passes(source)

    assert resizes(result)[0].input[3]
    same(run(model(source), feed(2, 13, 2, 13)), run(result, feed(2, 13, 2, 13)), "axes")


def test_empty_inputs_are_left_out() -> None:
    result, _ = (
        apply_resize_passes("""13 (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[0] e = {}, int64[4] n = {1, 2, 9, 11}> {
  t = Identity(e)
  y = Resize<mode="nearest">(x, t, t, n)
}""")
    )

    assert [list(node.input) for node in result.graph.node] == [["x", "", "", "n"]]
    assert [tensor.name for tensor in result.graph.initializer] == ["n"]


def rewriter(call: str, dims: str, sizes: str = "3, 12", opset: int = 13) -> tuple[onnx.ModelProto, Rewriter]:
    proto = model(f"""{opset} (float[{dims}] x) => (float[a,b] y)
<float[2] s = {{1., 2.}}, float[2] h = {{1., 1.5}}, int64[2] n = {{{sizes}}}>
{{ y = Resize{call} }}""")
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    return proto, Rewriter(proto.graph.node[0], scope, opset, opset, Where("graph", "y", "Resize"))


def rewritten(rw: Rewriter, write: Callable[[Rewriter, ResizeSpec], str | None]) -> str | None:
    spec = read_resize(rw, rw.constant_value)
    assert spec is not None
    return write(rw, spec)


def written_model(proto: onnx.ModelProto, rw: Rewriter) -> onnx.ModelProto:
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    del result.graph.node[:]
    result.graph.node.extend([*rw.preceding, rw.node])
    return result


X = {"x": np.arange(15, dtype=np.float32).reshape(3, 5)}


@pytest.mark.parametrize(
    ("opset", "dims", "written"),
    [
        (13, "3,5", ["Resize"]),
        (13, "N,5", ["Shape", "Slice", "Concat", "Resize"]),
        (18, "N,5", ["Resize"]),
        (13, "3,M", ["Shape", "Slice", "Mul", "Concat", "Resize"]),
        (13, "N,M", ["Shape", "Mul", "Resize"]),
    ],
)
def test_scales_to_sizes_computes_the_same(opset: int, dims: str, written: list[str]) -> None:
    proto, rw = rewriter('<mode = "linear">(x, , s)', dims, opset=opset)
    expected = run(proto, X)[0]

    assert rewritten(rw, forms.scales_to_sizes) is None

    result = written_model(proto, rw)
    assert operators(result) == written
    np.testing.assert_array_equal(run(result, X)[0], expected)


def test_sizes_to_scales_computes_the_same() -> None:
    proto, rw = rewriter('<mode = "linear">(x, , , n)', "3,5", "3, 15")
    expected = run(proto, X)[0]

    assert rewritten(rw, forms.sizes_to_scales) is None
    assert rw.constant_value(rw.input(2)).tolist() == [1, 3]
    np.testing.assert_array_equal(run(written_model(proto, rw), X)[0], expected)


@pytest.mark.parametrize(
    ("call", "dims", "sizes", "write"),
    [
        ("(x, , h)", "3,5", "3, 12", forms.scales_to_sizes),
        ("(x, , h)", "3,M", "3, 12", forms.scales_to_sizes),
        ("(x, , , n)", "3,M", "3, 12", forms.sizes_to_scales),
        ("(x, , , n)", "3,7", "3, 31", forms.sizes_to_scales),
        ("(x, , , n)", "3,5", "3, 9", forms.sizes_to_scales),
    ],
    ids=["no size comes to 1.5", "1.5 of any length", "dynamic", "runs as 30", "inferred as 8"],
)
def test_a_form_that_has_no_equal_is_kept(
    call: str, dims: str, sizes: str, write: Callable[[Rewriter, ResizeSpec], str | None]
) -> None:
    proto, rw = rewriter(call, dims, sizes)
    before = proto.SerializeToString()

    assert rewritten(rw, write)

    assert (proto.SerializeToString(), rw.preceding) == (before, [])


OPENCV = resolve(["opencv==4.8"])


def some_axes(shape: str, attributes: str, given: str, opset: int) -> str:
    """Return a model of one Resize; `given` are the inputs after X, in which `wanted` is a run-time input."""
    return f"""{opset} (float[{shape}] x) => (float[a,b,c,d] y)
<float[2] s = {{1.5, 0.5}}, int64[2] n = {{9, 3}}, int64[1] nine = {{9}}, int64[1] three = {{3}}, float[1] half = {{0.5}}> {{
    sizes = Concat <axis = 0> (nine, three)
    factor = Identity (half)
    factors = Concat <axis = 0> (factor, factor)
    y = Resize <{attributes}> (x{given})
}}"""


def named(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    result = make_pass("runtime_limits", targets=OPENCV).run(files.load(proto), log).proto
    check_legal(result)
    onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True)
    return result, log


@pytest.mark.parametrize("opset", [18, 19])
@pytest.mark.parametrize("shape", ["1,2,5,6", "N,2,5,6", "N,C,H,W"])
@pytest.mark.parametrize("given", [", , s", ", , , n", ", , , sizes", ", , factors"])
@pytest.mark.parametrize(
    ("mode", "axes"),
    [
        ("linear", "2, 3"),
        pytest.param("linear", "-1, -2", marks=needs_negative_axes),
        ("nearest", "2, 3"),
        ("nearest", "3, 2"),
        ("nearest", "0, 3"),
    ],
)
def test_all_axes_compute_the_same_bits(mode: str, given: str, axes: str, shape: str, opset: int) -> None:
    require_opset(opset)
    text = some_axes(shape, f'mode = "{mode}", axes = [{axes}]', given, opset)
    feeds = feed(1, 2, 5, 6)

    result, log = named(model(text))

    assert not [a for node in resizes(result) for a in node.attribute if a.name == "axes"]
    assert [change.exactness for change in log.changes] == [Exactness.EXACT]
    same(run(model(text), feeds), run(result, feeds), "named")


def test_known_scales_and_sizes_are_constants() -> None:
    require_opset(18)
    sized, _ = named(model(some_axes("1,2,5,6", "axes = [3, 2]", ", , , n", 18)))
    scaled, _ = named(model(some_axes("N,C,H,W", "axes = [2, 3]", ", , s", 18)))

    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in sized.graph.initializer}
    np.testing.assert_array_equal(values[resizes(sized)[0].input[3]], np.array([1, 2, 3, 9]))
    assert "Gather" not in [node.op_type for node in (*sized.graph.node, *scaled.graph.node)]


@pytest.mark.parametrize(
    ("attributes", "given", "why"),
    [
        (
            'mode = "linear", axes = [2, 3], keep_aspect_ratio_policy = "not_larger"',
            ", , , n",
            "aspect_ratio",
        ),
        ('coordinate_transformation_mode = "tf_crop_and_resize", axes = [2, 3]', ", roi, s", "roi"),
    ],
)
def test_the_attribute_is_kept_where_it_cannot_be_removed(attributes: str, given: str, why: str) -> None:
    require_opset(18)
    text = some_axes("1,2,5,6", attributes, given, 18).replace(
        "float[2] s =", "float[4] roi = {0.0, 0.0, 1.0, 1.0}, float[2] s ="
    )

    result, log = named(model(text))

    assert log.changes == []
    assert "axes" in [attribute.name for attribute in resizes(result)[0].attribute]
    (message,) = (note.message for note in log.notes if note.code == "resize-kept")
    assert why in message
