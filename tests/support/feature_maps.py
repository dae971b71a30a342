"""Small detectors for tests: feature maps are pooled from an image, flattened, joined, and combined with a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import run

Array = np.ndarray[Any, Any]
Size = tuple[int, int]

OTHER_SIZES = ((64, 96), (96, 64), (32, 160))
"""Sizes of images, square and not, that strides of 8, 16 and 32 divide."""


def cells(size: Size, strides: Sequence[int]) -> list[tuple[int, Array, Array]]:
    """Return for each stride the rows and the columns of all cells, row by row, in float64."""
    found = []
    for stride in strides:
        rows, columns = np.mgrid[0 : -(-size[0] // stride), 0 : -(-size[1] // stride)]
        found.append((stride, rows.reshape(-1).astype(float), columns.reshape(-1).astype(float)))
    return found


def detector(
    size: Size,
    table: Array,
    strides: Sequence[int] = (8, 16),
    *,
    cells_last: bool = False,
    operator: str = "Add",
    behind: Sequence[onnx.NodeProto] = (),
    constants: Sequence[onnx.TensorProto] = (),
    output: str = "y",
    opset: int = 17,
) -> onnx.ModelProto:
    """Return a model y = features (+) table, with features [1, cells, 1], or [1, 1, cells] with `cells_last`.

    The pools round up, so a size need not be a multiple of a stride. `behind` are nodes that read y.
    """
    height, width = size
    nodes, parts = [], []
    shape = [1, 1, -1] if cells_last else [1, -1, 1]
    for stride in strides:
        nodes.append(
            helper.make_node(
                "MaxPool", ["x"], [f"f{stride}"], kernel_shape=[stride] * 2, strides=[stride] * 2, ceil_mode=1
            )
        )
        nodes.append(helper.make_node("Reshape", [f"f{stride}", "shape"], [f"r{stride}"]))
        parts.append(f"r{stride}")
    nodes.append(helper.make_node("Concat", parts, ["joined"], axis=2 if cells_last else 1))
    if table.dtype not in (np.float32, np.bool_):
        kind = helper.np_dtype_to_tensor_dtype(table.dtype)
        nodes.append(helper.make_node("Cast", ["joined"], ["features"], to=kind))
    else:
        nodes.append(helper.make_node("Identity", ["joined"], ["features"]))
    inputs = ["table", "features", "zero"] if operator == "Where" else ["features", "table"]
    nodes += [helper.make_node(operator, inputs, ["y"], name="decode"), *behind]
    initializers = [
        numpy_helper.from_array(np.array(shape, np.int64), "shape"),
        numpy_helper.from_array(np.zeros(1, np.float32), "zero"),
        numpy_helper.from_array(table, "table"),
        *constants,
    ]
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, height, width])],
        [helper.make_empty_tensor_value_info(output)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def opened(source: onnx.ModelProto) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a model with height and width made dynamic, and the changes."""
    log = ChangeLog()
    result = make_pass("dynamic_dims", dynamic="x:1,1,H,W").run(
        Model(onnx.ModelProto.FromString(source.SerializeToString())), log
    )
    onnx.checker.check_model(result.proto, full_check=True)
    return result.proto, log


def output_at(model: onnx.ModelProto, size: Size, value: float = 0.0) -> Array:
    """Return the output for an image of one number."""
    return np.asarray(run(model, {"x": np.full((1, 1, *size), value, np.float32)})[0])


def check_table(
    formula: Callable[[Size], Array],
    size: Size,
    *,
    others: Sequence[Size] = OTHER_SIZES,
    exact: bool = True,
    **arguments: Any,
) -> ChangeLog:
    """Make a detector dynamic whose table is a formula of the size, and compare its table at other sizes."""
    model, log = opened(detector(size, formula(size), **arguments))
    np.testing.assert_array_equal(output_at(model, size), formula(size)) if exact else None
    for other in others:
        expected = formula(other)
        tolerance = 2e-3 if expected.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(output_at(model, other), expected, rtol=tolerance, atol=tolerance)
    return log
