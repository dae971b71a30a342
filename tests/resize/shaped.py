"""Applies the passes that rewrite Resizes, and makes models for them."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model

__all__ = ["PYTORCH_SIZE", "PYTORCH_WEIGHTS", "apply_resize_passes", "feed", "resizes", "run_time"]


def apply_resize_passes(
    source: str | onnx.ModelProto, to: int | None = None, *, intent: bool = False, **options: object
) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a model after migrate_opset (if `to` is given), resize_intent (if `intent`) and resize_form, and the log."""
    carried, log = Model(model(source)), ChangeLog()
    if to is not None:
        builtin_passes()["migrate_opset"](opset=to).run(carried, log)  # type: ignore[call-arg]
    if intent:
        builtin_passes()["resize_intent"](dynamic=options.get("dynamic")).run(carried, log)  # type: ignore[call-arg]
    builtin_passes()["resize_form"](**options).run(carried, log)  # type: ignore[arg-type]
    check_legal(carried.proto)
    return carried.proto, log


def feed(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


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
