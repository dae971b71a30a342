"""Applies the passes that rewrite Resizes, and makes models for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model

__all__ = [
    "KINDS",
    "PYTORCH_SIZE",
    "PYTORCH_WEIGHTS",
    "ROUNDINGS",
    "apply_resize_passes",
    "feed",
    "resize",
    "resizes",
    "run_time",
]

KINDS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def apply_resize_passes(
    source: str | onnx.ModelProto, to: int | None = None, *, intent: bool = False, **options: object
) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a model after migrate_opset (if `to` is given), resize_intent (if `intent`) and resize_form, and the log."""
    carried, log = Model(model(source)), ChangeLog()
    if to is not None:
        make_pass("migrate_opset", opset=to).run(carried, log)
    if intent:
        make_pass("resize_intent", dynamic=options.get("dynamic")).run(carried, log)
    make_pass("resize_form", **options).run(carried, log)
    check_legal(carried.proto)
    return carried.proto, log


def feed(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def resize(
    shape: tuple[int | str, ...] = (1, 2, 5, 7),
    *,
    opset: int = 13,
    scales: Any = None,
    sizes: Any = None,
    roi: Any = None,
    dtype: int = TensorProto.FLOAT,
    fed: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """A Resize of `x`; scales or sizes are initializers, or graph inputs if `fed`."""
    inputs, tensors, extra = ["x", "", "", ""], [], []
    for index, name, value, kind in (
        (1, "roi", roi, np.float32),
        (2, "scales", scales, np.float32),
        (3, "sizes", sizes, np.int64),
    ):
        if value is None:
            if opset < 13 and index < 3:
                inputs[index] = f"no_{name}"
                tensors.append(numpy_helper.from_array(np.zeros(0, np.float32), inputs[index]))
            continue
        inputs[index] = name
        array = np.array(value, kind)
        if fed and name != "roi":
            extra.append(
                helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            )
        else:
            tensors.append(numpy_helper.from_array(array, name))
    while not inputs[-1]:
        inputs.pop()
    graph = helper.make_graph(
        [helper.make_node("Resize", inputs, ["y"], "resize", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", dtype, shape), *extra],
        [helper.make_tensor_value_info("y", dtype, ["a", "b", "c", "d", "e", "f"][: len(shape)])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def resizes(proto: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in proto.graph.node if node.op_type == "Resize"]


PYTORCH_SIZE = """
  n = Shape(x)
  m = Slice(n, two, end, zero)
  f = Cast<to = 1>(m)
  q = Div(wanted, f)
  s = Concat<axis = 0>(ones, q)
"""

PYTORCH_WEIGHTS = (
    "int64[1] two = {2}, int64[1] end = {9223372036854775807}, int64[1] zero = {0}, float[2] ones = {1., 1.}"
)


def run_time(mode: str, shape: str, wanted: str = "10., 21.") -> onnx.ModelProto:
    source = onnx.parser.parse_model(f"""<ir_version: 5, opset_import: ["":10], producer_name: "pytorch">
g (float[{shape}] x) => (float[a,b,c,d] y) <float[2] wanted = {{{wanted}}}, {PYTORCH_WEIGHTS}> {{
  {PYTORCH_SIZE}
  y = Resize<mode="{mode}">(x, s)
}}""")
    source.producer_name = "pytorch"
    return source
