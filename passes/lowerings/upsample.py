"""Upsample: below opset 9 the scales are an attribute."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Upsample", leaves=9)
def upsample_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`scales` move from an input to an attribute.

    Why equal: the changelog of version 9 moves them and changes nothing else.

    Limits: they must be constants.
    """
    scales = rw.need_constant(1, "scales")
    if not scales.size:
        rw.refuse("its scales are empty", code="bad-scales", hint="one is required for every axis")
    rw.set_input(1, "")
    rw.set("scales", [float(scale) for scale in scales.reshape(-1)])
