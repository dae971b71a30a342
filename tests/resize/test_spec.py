"""What is known of a Resize, read once from the node and its scope."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_migrate.passes.resize.spec import ResizeSpec, read_resize

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.node_view import NodeView
from tests.harness import model
from tests.resize.shaped import resize
from tests.steps import lower, operators


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
