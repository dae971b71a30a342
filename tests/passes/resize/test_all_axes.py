"""A Resize of some axes and one of all compute the same bits."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.model.legality import check_legal
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from onnx_migrate.spec.targets import resolve
from tests.harness import model, needs_negative_axes, require_opset, run, same
from tests.resize.shaped import feed, resizes

OPENCV = resolve(["opencv==4.8"])


def source(shape: str, attributes: str, given: str, opset: int) -> str:
    """Return a model of one Resize; `given` are the inputs after X, in which `wanted` is a run-time input."""
    return f"""<ir_version: 8, opset_import: ["": {opset}]>
g (float[{shape}] x) => (float[a,b,c,d] y)
<float[2] s = {{1.5, 0.5}}, int64[2] n = {{9, 3}}, int64[1] nine = {{9}}, int64[1] three = {{3}}, float[1] half = {{0.5}}> {{
    sizes = Concat <axis = 0> (nine, three)
    factor = Identity (half)
    factors = Concat <axis = 0> (factor, factor)
    y = Resize <{attributes}> (x{given})
}}"""


def named(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    result = builtin_passes()["runtime_limits"](targets=OPENCV).run(files.load(proto), log).proto  # type: ignore[call-arg]
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
    text = source(shape, f'mode = "{mode}", axes = [{axes}]', given, opset)
    feeds = feed(1, 2, 5, 6)

    result, log = named(model(text))

    assert not [a for node in resizes(result) for a in node.attribute if a.name == "axes"]
    assert [change.exactness for change in log.changes] == [Exactness.EXACT]
    same(run(model(text), feeds), run(result, feeds), "named")


def test_known_scales_and_sizes_are_constants() -> None:
    require_opset(18)
    sized, _ = named(model(source("1,2,5,6", "axes = [3, 2]", ", , , n", 18)))
    scaled, _ = named(model(source("N,C,H,W", "axes = [2, 3]", ", , s", 18)))

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
    text = source("1,2,5,6", attributes, given, 18).replace(
        "float[2] s =", "float[4] roi = {0.0, 0.0, 1.0, 1.0}, float[2] s ="
    )

    result, log = named(model(text))

    assert log.changes == []
    assert "axes" in [attribute.name for attribute in resizes(result)[0].attribute]
    (note,) = log.notes
    assert (note.code, why in note.message) == ("resize-kept", True)
