"""What is known of a Resize that is lowered decides its form: scales, sizes or Gathers."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from tests.lowering import lower
from tests.passes.lowerings.test_resize import operators, resize


def test_axes_are_spread_over_all() -> None:
    result, _ = lower(resize(opset=18, mode="linear", axes=[3, 2], scales=[2.0, 3.0]), 17)
    scales = numpy_helper.to_array(
        next(tensor for tensor in result.graph.initializer if tensor.name == result.graph.node[0].input[2])
    )
    np.testing.assert_array_equal(scales, np.array([1, 1, 3, 2], np.float32))


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
