"""What a Resize samples, and how little is written as Gathers of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx_migrate.passes.resize.spec import Sampling
from onnx_migrate.passes.steps.resize_sampling import AxisValues, antialiased

from onnx_migrate.engine.steps.formula import Op
from tests.resize.shaped import resize
from tests.steps import lower, operators


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
