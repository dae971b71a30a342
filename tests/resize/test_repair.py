"""Resizes to constant sizes follow the skip connection, the input, or a whole ratio."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate import migrate
from onnx_migrate.errors import CannotMigrate
from tests.harness import model, run
from tests.support.paths import FIXTURES
from tests.support.repairs import check_items, repaired, text

RESIZE = 'Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">'
DOWN = "d = MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x)"


def test_whole_scales_serve_where_only_the_batch_varies() -> None:
    source = text(
        "float[1,1,4,6] x", "float[1,1,8,12] y", f"y = {RESIZE}(x, , , k)", "int64[4] k = {1,1,8,12}"
    )

    result, reasons = check_items(source, {"x": 0}, [0])

    assert reasons == ["sizes [1, 1, 8, 12] → scales [1.0, 1.0, 2.0, 2.0]"]
    assert len(result.graph.node) == 1


def test_scales_of_lengths_that_stay_are_not_edited() -> None:
    source = text("float[1,1,4,6] x", "float[1,1,8,12] y", f"y = {RESIZE}(x, , k)", "float[4] k = {1,1,2,2}")

    assert check_items(source, {"x": 0}, [0])[1] == []


def test_a_ratio_that_is_not_whole_reads_the_batch_from_the_shape() -> None:
    source = text("float[1,1,4,6] x", "float[1,1,7,9] y", f"y = {RESIZE}(x, , , k)", "int64[4] k = {1,1,7,9}")

    check_items(source, {"x": 0}, [0])


@pytest.mark.parametrize("join", ["Concat<axis=1>(s, u)", "Add(u, s)"])
@pytest.mark.parametrize("late", [False, True])
def test_sizes_are_those_of_the_skip_connection(join: str, late: bool) -> None:
    """At an odd height a whole ratio would be one too long; the skip's own nodes may come after the Resize."""
    skip, up = "s = Relu(x)", f"u = {RESIZE}(d, , , k)"
    nodes = f"{DOWN} {up} {skip} y = {join}" if late else f"{DOWN} {skip} {up} y = {join}"
    channels = 2 if "Concat" in join else 1
    source = text("float[1,1,4,6] x", f"float[1,{channels},4,6] y", nodes, "int64[4] k = {1,1,4,6}")

    result, _ = repaired(source, "x:N,1,H,W")

    x = np.random.default_rng(0).standard_normal((2, 1, 5, 7)).astype(np.float32)
    y = run(result, {"x": x})[0]
    assert y.shape == (2, channels, 5, 7)
    for item in range(2):
        small = x[item : item + 1, :, :4, :6]
        np.testing.assert_array_equal(run(result, {"x": small})[0], run(model(source), {"x": small})[0])


def test_sizes_are_those_of_the_models_input() -> None:
    source = text(
        "float[1,1,4,6] x", "float[1,1,4,6] y", f"{DOWN} y = {RESIZE}(d, , , k)", "int64[4] k = {1,1,4,6}"
    )

    result, _ = repaired(source, "x:N,1,H,W")

    assert run(result, {"x": np.zeros((2, 1, 5, 7), np.float32)})[0].shape == (2, 1, 5, 7)


def test_sizes_that_derive_from_no_length_are_refused() -> None:
    source = text("float[1,1,4,6] x", "float[1,1,7,9] y", f"y = {RESIZE}(x, , , k)", "int64[4] k = {1,1,7,9}")

    with pytest.raises(CannotMigrate, match="'k'"):
        repaired(source, "x:N,1,H,W")


@pytest.mark.parametrize("by", ["sizes", "scales"])
def test_a_pooled_map_is_resized_to_what_it_is_combined_with(by: str) -> None:
    """The picture as a whole, as DeepLab and PSPNet join it to every place."""
    constants = "int64[4] k = {1,1,4,6}" if by == "sizes" else "float[4] k = {1,1,4,6}"
    given = "(p, , , k)" if by == "sizes" else "(p, , k)"
    source = text(
        "float[1,1,4,6] x", "float[1,2,4,6] y", f"p = GlobalAveragePool(x) u = {RESIZE}{given} y = Concat<axis=1>(x, u)",
        constants,
    )  # fmt: skip

    result, log = repaired(source, "x:N,1,H,W")

    assert len(log.changes) == 1
    x = np.random.default_rng(0).standard_normal((2, 1, 7, 5)).astype(np.float32)
    y = run(result, {"x": x})[0]
    np.testing.assert_array_equal(y[:, :1], x)
    np.testing.assert_allclose(
        y[:, 1], np.broadcast_to(x.mean((2, 3)).reshape(2, 1, 1), (2, 7, 5)), rtol=1e-5
    )


def test_a_pooled_map_keeps_its_sizes_where_only_the_batch_varies() -> None:
    source = text(
        "float[1,1,4,6] x", "float[1,2,4,6] y", f"p = GlobalAveragePool(x) u = {RESIZE}(p, , , k) y = Concat<axis=1>(x, u)",
        "int64[4] k = {1,1,4,6}",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0])

    assert reasons == ["sizes [1, 1, 4, 6] → scales [1.0, 1.0, 4.0, 6.0]"]


def test_sizes_below_opset_13_keep_empty_scales() -> None:
    """Resize-11 requires scales; PyTorch writes both as soon as sizes are given."""
    source = onnx.load(FIXTURES / "resize_bilinear_opset11.onnx")
    result = migrate(source, opset=12, dynamic_batch=True, simplify=False, isolated=False)
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"
