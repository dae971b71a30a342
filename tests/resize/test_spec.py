"""A Resize as it is read: its inputs, what ONNX Runtime computes of lengths, and its sampling."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx_migrate.passes.steps.resize_sampling import AxisValues, antialiased

from onnx_migrate.engine.steps.formula import Op
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.node_view import NodeView
from onnx_migrate.rewrite.resize.spec import ResizeSpec, Sampling, read_resize
from tests.harness import model
from tests.resize.shaped import apply_resize_passes, resize
from tests.steps import lift, lower, operators


def read(opset: int, dims: str, call: str) -> ResizeSpec | None:
    proto = model(f"""{opset} (float[{dims}] x, int64[2] m, float[2] t) => (float[a,b] y)
<float[2] s = {{1., 1.5}}, int64[2] n = {{9, 3}}, float[4] r = {{0., 0.25, 1., 0.75}}, float[0] e = {{}}> {{ y = {call} }}""")
    node = proto.graph.node[0]
    scope = scopes(proto, Weights(), result_ir_version=8)[0]
    view = NodeView(node, scope, Where("graph", "y", node.op_type, opset))
    return read_resize(view, view.constant_value)


SCALED = [(5, 5, 1, True), (7, 10, 1.5, False)]
OPEN = [(5, 5, 1, True), (None, None, 1.5, False)]
UNKNOWN = [(5, None, None, False), (7, None, None, False)]
BOUND = (None, None, False)
WHOLE = (0, 1)


@pytest.mark.parametrize(
    ("opset", "dims", "call", "axes"),
    [
        (9, "5,7", "Upsample(x, s)", SCALED),
        (10, "5,7", "Resize(x, s)", SCALED),
        (11, "5,7", "Resize(x, e, s)", SCALED),
        (11, "5,7", "Resize(x, e, s, e)", SCALED),
        (13, "5,N", "Resize(x, , s)", OPEN),
        (13, "5,7", "Resize(x, , t)", UNKNOWN),
        (13, "5,7", "Resize(x, , , m)", UNKNOWN),
        (11, "5,7", "Resize(x, e, e, n)", [(5, 9, 1.8, False), (7, 3, 3 / 7, False)]),
        (13, "9,N", "Resize(x, , , n)", [(9, 9, 1, True), (None, 3, None, False)]),
        (18, "7,5", "Resize<axes = [-1, 0]>(x, , s)", [(7, 10, 1.5, False), (5, 5, 1, True)]),
        (18, "5,4,7", "Resize<axes = [2, 0]>(x, , , n)", [(5, 3, 0.6, False), (4, 4, 1, True), (7, 9, 9 / 7, False)]),
        (18, "3,3", 'Resize<keep_aspect_ratio_policy = "not_larger">(x, , , n)', [(3, 3, 1, True), (3, 3, 1, True)]),
        (18, "3,3", 'Resize<keep_aspect_ratio_policy = "not_smaller">(x, , , n)', [(3, 9, 3, False), (3, 9, 3, False)]),
        (18, "3,N", 'Resize<keep_aspect_ratio_policy = "not_larger">(x, , , n)', [(3, *BOUND), (None, *BOUND)]),
    ],
)  # fmt: skip
def test_lengths_sizes_and_scales(
    opset: int, dims: str, call: str, axes: list[tuple[int | None, int | None, float | None, bool]]
) -> None:
    spec = read(opset, dims, call)

    assert spec is not None
    assert [axis.place for axis in spec.axes] == list(range(len(axes)))
    single = [(*axis[:2], None if axis[2] is None else float(np.float32(axis[2])), axis[3]) for axis in axes]
    assert [(axis.length, axis.size, axis.scale, axis.kept) for axis in spec.axes] == single
    assert spec.by_sizes == ("n)" in call or "m)" in call)


@pytest.mark.parametrize(
    ("dims", "call", "lengths"),
    [("", "Resize(x, , s)", [None, None]), ("", "Resize(x, , t)", None), ("5", "Resize(x, , s)", None)],
)
def test_what_is_known_of_axes_whose_number_is_not(dims: str, call: str, lengths: list[None] | None) -> None:
    spec = read(13, dims, call)

    assert (spec if spec is None else [axis.length for axis in spec.axes]) == lengths


@pytest.mark.parametrize(
    ("roi", "kind", "regions"),
    [
        ("r", "tf_crop_and_resize", [(0, 1), (0.25, 0.75)]),
        ("r", "half_pixel", [WHOLE, WHOLE]),
        ("e", "tf_crop_and_resize", [WHOLE, WHOLE]),
        ("", "tf_crop_and_resize", [WHOLE, WHOLE]),
        ("t", "tf_crop_and_resize", [None, None]),
    ],
)
def test_the_region_that_is_sampled(roi: str, kind: str, regions: list[tuple[float, float] | None]) -> None:
    spec = read(13, "5,7", f'Resize<coordinate_transformation_mode = "{kind}">(x, {roi}, s)')

    assert spec is not None
    assert [axis.roi for axis in spec.axes] == regions


def test_a_policy_becomes_scales_where_they_give_its_lengths() -> None:
    proto = resize(
        opset=18, sizes=[10, 30], axes=[2, 3], keep_aspect_ratio_policy="not_larger", mode="linear"
    )
    node = lower(proto, 17)[0].graph.node[0]
    assert node.op_type == "Resize"
    assert node.input[2]
    assert len(node.input) == 3


def test_sizes_become_scales_below_11_only_where_lengths_agree() -> None:
    def lowered(size: int, length: int) -> list[str]:
        proto = resize(
            (1, 1, 1, length),
            sizes=[1, 1, 1, size],
            mode="linear",
            coordinate_transformation_mode="asymmetric",
        )
        return operators(lower(proto, 10)[0])

    assert lowered(10, 5) == ["Resize"]
    assert "Gather" in lowered(25, 13)  # 13 × (25 / 13) is inferred to be 24


@pytest.mark.parametrize(
    "first",
    [
        "first = Shape <start = 0, end = 2> (x)",
        "all = Shape (x) first = Slice (all, zero, two)",
        "all = Shape (x) first = Gather (all, both)",
        """all = Shape (x) n = Gather (all, none) c = Gather (all, one) n1 = Unsqueeze (n, zero) c1 = Unsqueeze (c, zero)
        first = Concat <axis = 0> (n1, c1)""",
    ],
)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_first_axes(mode: str, first: str) -> None:
    """Two axes are resampled: 2 Gathers of nearest, 2 + 4 of linear; the others are left alone."""
    proto = model(f"""18 (float[n,c,5,7] x) => (float[n,c,8,9] y)
<int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[2] both = {{0, 1}}, int64 none = {{0}}, int64 one = {{1}},
int64[2] wanted = {{8, 9}}> {{
  {first}
  sizes = Concat <axis = 0> (first, wanted)
  y = Resize <mode = "{mode}", coordinate_transformation_mode = "align_corners"> (x, , , sizes)
}}""")
    result, _ = lower(proto, 10)
    gathers = [node.attribute[0].i for node in result.graph.node if node.op_type == "Gather"]
    assert "Resize" not in operators(result)
    assert [axis for axis in gathers if axis] == ([2, 2, 3, 3, 3, 3] if mode == "linear" else [2, 3])


runtime_types = importlib.import_module("onnx_migrate.passes.resize.runtime_types")


@pytest.mark.parametrize("odd", [0, -1])
def test_dims_of_0_and_minus_1_are_not_known(odd: int) -> None:
    proto = model("13 (float[1,13] x) => (float[a,b] y) <float[2] s = {1., 1.3}> { y = Resize(x, , s) }")
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = odd

    assert runtime_types.run_time_types(Model(proto), DimPlan()).lookup(None, (), "y").shape == (1, None)


def calls(body: str, *sizes: int) -> onnx.ModelProto:
    nodes = "\n".join(f"  y{place} = local.up (x{place})" for place in range(len(sizes)))
    inputs = ", ".join(f"float[1,{size}] x{place}" for place, size in enumerate(sizes))
    return model(f"""13 ({inputs}) => (float[a,b] y0) {{ {nodes} }} <domain: "local", opset_import: ["":13]>
up (v) => (w) {{
{body}
}}""")


def test_types_behind_a_function() -> None:
    up = float(np.float32(25 / 13))
    constant = f"s = Constant<value = float[2] {{1., {up!r}}}>()"
    plain = "s = Constant<value = float[2] {1., 2.}>()"

    once = runtime_types.run_time_types(Model(calls(f"{constant} w = Resize(v, , s)", 13)), DimPlan())
    twice = runtime_types.run_time_types(Model(calls(f"{constant} w = Resize(v, , s)", 13, 9)), DimPlan())
    shared = runtime_types.run_time_types(
        Model(calls(f"{constant} u = Resize(v, , s) w = Resize(u, , s)", 13)), DimPlan()
    )
    harmless = runtime_types.run_time_types(Model(calls(f"{plain} w = Resize(v, , s)", 13, 9)), DimPlan())

    assert once.lookup(None, (), "y0").shape == (1, 25)
    assert twice is None
    assert shared is None
    assert harmless.lookup(None, (), "y1").shape == (1, 18)


def test_types_of_a_chain() -> None:
    up, down = float(np.float32(25 / 13)), float(np.float32(31 / 25))
    proto = model(f"""13 (float[1,13] x) => (float[a,b] z) <float[2] s = {{1., {up!r}}}, float[2] t = {{1., {down!r}}}> {{
  y = Resize(x, , s)
  z = Resize(y, , t)
}}""")

    types = runtime_types.run_time_types(Model(proto), DimPlan())
    later = runtime_types.run_time_types(Model(proto), DimPlan.of({"x": {1: "W"}}, Interface.of(proto)))

    assert types.lookup(None, (), "y").shape == (1, 25)
    assert types.lookup(None, (), "z").shape == (1, 31)
    assert later.lookup(None, (), "z").shape == (1, None)


def test_types_behind_sizes_that_follow_from_known_shapes() -> None:
    proto = model("""13 (float[1,2,4,4] x) => (float[a,b,c,d] y)
<int64[1] zero = {0}, int64[1] two = {2}, int64[2] eight = {8, 8}>
{ s = Shape(x) h = Slice(s, zero, two, zero) z = Concat<axis=0>(h, eight) v = Resize(x, , , z) y = Relu(v) }""")

    types = runtime_types.run_time_types(Model(proto), DimPlan())

    assert types.lookup(None, (), "y").shape == (1, 2, 8, 8)
    assert [item.name for item in proto.graph.initializer] == ["zero", "two", "eight"]


CROP = 'Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">'
SIZES = "int64[4] n = {1, 2, 9, 11}"
SCALES = "float[4] s = {1., 1., 1.5, 2.}"
FOUR, THREE, FIVE = (
    "float[4] s = {{1., 1., {}, 2.}}",
    "float[3] s = {1., 2., 2.}",
    "float[5] s = {1., 1., 1., 2., 2.}",
)
UPSAMPLED = ("1., 1., 0., 2.", "1., 1., -2., 2.", "1., 2., 2.", "1., 1., 1., 2., 2.")

REFUSED = [
    # by the adapters
    *((7, "", f"Upsample<scales=[{scales}]>(x)", "bad-scales") for scales in UPSAMPLED),
    *((9, f"float[{scales.count(',') + 1}] s = {{{scales}}}", "Upsample(x, s)", "bad-scales") for scales in UPSAMPLED),
    (9, FOUR.format("2."), 'Upsample<mode="bicubic">(x, s)', "no-such-mode"),
    (10, FOUR.format("0."), "Resize(x, s)", "bad-scales"),
    (10, THREE, "Resize(x, s)", "bad-scales"),
    (11, FOUR.format("0."), "Resize(x, e, s)", "bad-scales"),
    (11, FOUR.format("-1."), "Resize(x, e, s)", "bad-scales"),
    (11, THREE, "Resize(x, e, s)", "bad-scales"),
    (11, FIVE, "Resize(x, e, s)", "bad-scales"),
    (11, "double[4] s = {1., 1., 2., 2.}", "Resize(x, e, s)", "bad-scales"),
    (11, "int64[4] n = {1, 2, -9, 11}", "Resize(x, e, e, n)", "bad-sizes"),
    (11, "int64[3] n = {2, 9, 11}", "Resize(x, e, e, n)", "bad-sizes"),
    (11, "int32[4] n = {1, 2, 9, 11}", "Resize(x, e, e, n)", "bad-sizes"),
    (11, f"{SCALES}, {SIZES}", "Resize(x, e, s, n)", "scales-and-sizes"),
    (11, "int64[0] n = {}", "Resize(x, e, e, n)", "no-scales"),
    (11, "int64[0] n = {}", "Resize(x, e, e)", "no-scales"),
    (11, f"float[4] r = {{0.,0.,1.,1.}}, {SCALES}", f"{CROP}(x, r, s)", "bad-roi"),
    *(
        (11, SCALES, f"Resize<{attribute}>(x, e, s)", "no-such-mode")
        for attribute in ('mode="bilinear"', 'coordinate_transformation_mode="half"', 'nearest_mode="round"')
    ),
    # by resize_form, at opsets from which no adapter starts
    *(
        (opset, *row)
        for opset in (13, 18)
        for row in (
            (FOUR.format("0."), "Resize(x, , s)", "bad-scales"),
            (FOUR.format("-1."), "Resize(x, , s)", "bad-scales"),
            (THREE, "Resize(x, , s)", "bad-scales"),
            ("int64[4] n = {1, 2, -9, 11}", "Resize(x, , , n)", "bad-sizes"),
            ("int64[2] n = {9, 11}", "Resize(x, , , n)", "bad-sizes"),
            (f"{SCALES}, {SIZES}", "Resize(x, , s, n)", "scales-and-sizes"),
            ("float[0] s = {}", "Resize(x, , s)", "no-scales"),
        )
    ),
]  # fmt: skip


def graph(opset: int, weights: str, call: str) -> onnx.ModelProto:
    empty = "float[0] e = {}" if opset == 11 else ""
    constants = ", ".join(filter(None, (empty, weights)))
    return model(f"""<ir_version: {3 if opset == 7 else 7}, opset_import: ["":{opset}]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) {f"<{constants}>" if constants else ""} {{ y = {call} }}""")


def code_of(source: onnx.ModelProto) -> str:
    refuse = apply_resize_passes if source.opset_import[0].version >= 13 else lambda item: lift(item, 13)
    with pytest.raises(CannotMigrate) as caught:
        refuse(source)
    return caught.value.code


@pytest.mark.parametrize(("opset", "weights", "call", "code"), REFUSED)
def test_what_is_refused(opset: int, weights: str, call: str, code: str) -> None:
    assert code_of(graph(opset, weights, call)) == code


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scales_that_are_not_finite(value: float) -> None:
    source = graph(11, SCALES, "Resize(x, e, s)")
    scales = np.array([1, 1, value, 2], np.float32)
    next(t for t in source.graph.initializer if t.name == "s").CopyFrom(
        onnx.numpy_helper.from_array(scales, "s")
    )

    assert code_of(source) == "bad-scales"


@pytest.mark.parametrize(
    ("height", "rank"), [(0.0, 4), (-2.0, 4), (float("nan"), 4), (float("inf"), 4), (2.0, 3)]
)
def test_scales_of_upsample_1(height: float, rank: int) -> None:
    node = onnx.helper.make_node("Upsample", ["x"], ["y"], height_scale=height, width_scale=2.0)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, 5, 7][:rank])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    source = onnx.helper.make_model(
        onnx.helper.make_graph([node], "g", [x], [y]),
        opset_imports=[onnx.helper.make_opsetid("", 1)],
        ir_version=3,
    )

    assert code_of(source) == "bad-scales"


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(("length", "size"), [(9, 4), (11, 5), (7, 3)])
def test_weights_of_antialias_add_up_to_one(mode: str, length: int, size: int) -> None:
    op = Op(SimpleNamespace(node=onnx.NodeProto()))
    scale = op.constant(np.array([np.float32(size) / np.float32(length)]))
    whole = op.constant([0.0]), op.constant([1.0])
    axis = AxisValues(0, op.constant([length]), op.constant([size]), scale, whole, True)

    taps = antialiased(op, axis, Sampling(mode, "half_pixel", "floor", antialias=True))

    total = np.sum([weights.array for _, weights in taps], axis=0)
    np.testing.assert_allclose(total, np.ones(size), rtol=1e-6)
    assert all(((places.array >= 0) & (places.array < length)).all() for places, _ in taps)


def test_nearest_is_one_gather_for_each_axis_that_changes() -> None:
    proto = resize(sizes=[1, 2, 8, 7], mode="nearest", coordinate_transformation_mode="align_corners")
    assert operators(lower(proto, 10)[0]) == ["Gather"]


def test_large_products_of_weights_are_not_stored() -> None:
    small = resize((1, 1, 4, 4), sizes=[1, 1, 7, 9], mode="linear")
    large = resize((1, 1, 40, 40), sizes=[1, 1, 70, 90], mode="linear")
    result = lower(large, 10)[0]
    assert operators(lower(small, 10)[0]).count("Mul") == 4
    assert operators(result).count("Mul") == 8
    assert max(len(tensor.raw_data) for tensor in result.graph.initializer) <= 90 * 8


def test_a_resize_that_changes_no_length_is_an_identity() -> None:
    proto = resize(sizes=[1, 2, 5, 7], mode="cubic")
    assert operators(lower(proto, 10)[0]) == ["Identity"]
