"""Clip: its bounds became inputs."""

from __future__ import annotations

import onnx
from onnx import helper

from onnx_migrate.engine.registry import adapter
from onnx_migrate.model.rewriter import Rewriter


@adapter("Clip", to=11)
def clip_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`min` and `max` move from attributes to inputs of the data's type."""
    bounds = [name for name in ("min", "max") if rw.attribute(name) is not None]
    if not bounds:
        return
    dtype = helper.tensor_dtype_to_np_dtype(rw.need_dtype(node.input[0])).type
    for index, name in enumerate(("min", "max"), start=1):
        rw.attribute_to_input(name, index, dtype)
