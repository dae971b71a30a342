"""What is declared of dims made dynamic, and that the model runs so at other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import UsageError
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model, run
from tests.steps import refuses
from tests.support.repairs import repaired, text

NET = """17 (float[1,3,8,8] x) => (float[1,3,16,16] y, float[1,3,1,1] z, int64[4] s) <float[4] k = {1., 1., 2., 2.}> {
  a = Relu(x)
  y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(a, , k)
  z = GlobalAveragePool(a)
  s = Shape(a)
}"""


def name(source: onnx.ModelProto, dynamic: Any) -> tuple[onnx.ModelProto, dict[str, Any]]:
    result = make_pass("dynamic_dims", dynamic=dynamic).run(Model(source), ChangeLog()).proto
    return result, {port.name: port.shape for port in Interface.of(result).outputs}


def test_dims_of_outputs_follow_from_the_inputs() -> None:
    result, outputs = name(model(NET), "x:N,3,H,W")

    assert outputs == {"y": ("N", 3, "2*H", "2*W"), "z": ("N", 3, 1, 1), "s": (4,)}
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype(np.float32)
    y, z, _ = run(result, {"x": x})
    np.testing.assert_array_equal(y, np.maximum(x, 0).repeat(2, 2).repeat(2, 3))
    assert z.shape == (2, 3, 1, 1)


def test_lengths_stay_numbers_where_only_the_batch_is_dynamic() -> None:
    _, outputs = name(model(NET), {"x": {0: "N"}})

    assert outputs["y"] == ("N", 3, 16, 16)


def test_an_output_named_by_the_user_keeps_the_name() -> None:
    _, outputs = name(model(NET), {"x": [0, 2], "y": {2: "tall"}})

    assert outputs["y"] == ("x_dim_0", 3, "tall", 16) or outputs["y"][:3] == ("x_dim_0", 3, "tall")


def test_recorded_shapes_of_the_old_sizes_are_removed() -> None:
    source = model(NET)
    source.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [1, 3, 8, 8]))

    result, _ = name(source, "x:N,3,8,8")

    assert not result.graph.value_info


def test_recorded_shapes_in_branches_are_removed() -> None:
    source = model("""17 (float[1,3] x, bool c) => (float[1,3] y) {
  y = If (c) <then_branch = t () => (float[1,3] a) { a = Relu(x) }, else_branch = e () => (float[1,3] a) { a = Neg(x) }>
}""")

    result, outputs = name(source, "x:N,3")

    assert outputs == {"y": ("N", 3)}
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(run(result, {"x": x, "c": np.array(False)})[0], -x)


def test_one_name_for_two_sizes_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        name(model(NET), {"x": {0: "N", 1: "N"}})

    assert caught.value.code == "other-size"


def test_another_name_for_an_output_that_equals_a_symbol_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        name(model(NET), {"x": {0: "N"}, "z": {0: "M"}})

    assert caught.value.code == "two-names"


def test_a_name_for_an_output_of_fixed_length_is_refused() -> None:
    source = model("17 (float[1,4] x) => (float[1,4] y) { y = ReduceMax<axes=[0]>(x) }")

    refuses("frozen-output", name, source, {"x": {0: "N"}, "y": {0: "N"}})


def test_an_input_without_a_shape_is_refused() -> None:
    source = model(NET)
    source.graph.input[0].type.tensor_type.ClearField("shape")

    refuses("needs-rank", name, source, {"x": {0: "N"}})


SUM = text("float[1,4] x, float[1,4] z", "float[1,4] y", "y = Add(x, z)")


def test_generated_names_that_must_be_equal_become_one() -> None:
    result, log = repaired(SUM, {"x": [0], "z": [0]})

    assert [port.shape for port in Interface.of(result).inputs] == [("x_dim_0", 4), ("x_dim_0", 4)]
    assert "z_dim_0 always has the same length as x_dim_0, so both axes are called x_dim_0" in [
        note.message for note in log.notes
    ]


def test_names_that_need_not_be_equal_are_kept() -> None:
    product = text("float[1,4] x, float[1,4] z", "float[1,1] y", "y = Gemm<transB=1>(x, z)")

    result, _ = repaired(product, {"x": {0: "N"}, "z": {0: "M"}})

    assert [port.shape for port in Interface.of(result).outputs] == [("N", "M")]


def test_names_of_the_user_that_must_be_equal_are_an_error() -> None:
    with pytest.raises(UsageError, match="'B' and 'A' must be equal") as caught:
        repaired(SUM, {"x": {0: "A"}, "z": {0: "B"}})
    assert caught.value.code == "two-names"


def test_axes_that_are_not_asked_for_keep_their_names() -> None:
    """tf2onnx calls what it does not know unk__7, as onnx's inference does."""
    source = model(text("float[1,unk__7] x", "float[1,unk__7] y", "y = Relu(x)"))

    result, _ = repaired(source, {"x": {0: "N"}})

    assert [dim.dim_param for dim in result.graph.input[0].type.tensor_type.shape.dim] == ["N", "unk__7"]


def test_the_report_shows_where_each_symbol_occurs() -> None:
    source = text(
        "float[1,4,6] x", "float[1,6] y, float[1,2,6] z",
        """y = ReduceMax<axes=[1], keepdims=0>(x) t = Transpose<perm=[0,2,1]>(x)
        u = MaxPool<kernel_shape=[2], strides=[2]>(t) z = Transpose<perm=[0,2,1]>(u)""",
    )  # fmt: skip

    _, log = repaired(source, {"x": {0: "N", 1: "T"}})

    notes = [note.message for note in log.notes if note.code == "flow"]
    assert notes == [
        "N: x[0] → y[0], z[0]",
        "T: x[1] → z[1] (computed from T)",
    ]
