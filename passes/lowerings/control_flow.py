"""Loop: below opset 11 it carries at least one value."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Loop", leaves=11, types=LostTypes.OWN)
def loop_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """At least one value is carried from round to round.

    What changes: a Loop that carries none gets an idle one, which its body hands on and nothing reads.

    Why equal: the changelog of version 11 allows a Loop without carried values and changes nothing else.
    """
    if len(node.input) > 2:
        return
    body = rw.get("body")
    if len(body.input) != 2:
        rw.refuse(
            f"its body has {len(body.input)} inputs, and the node carries no values", code="invalid-node"
        )
    given, handed_on = rw.fresh("idle_in"), rw.fresh("idle_out")
    inner = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    inner.input.append(helper.make_tensor_value_info(given, TensorProto.FLOAT, [1]))
    inner.node.append(helper.make_node("Identity", [given], [handed_on], name=rw.fresh("idle")))
    outputs = list(inner.output)
    del inner.output[:]
    inner.output.extend(
        [outputs[0], helper.make_tensor_value_info(handed_on, TensorProto.FLOAT, [1]), *outputs[1:]]
    )
    while len(node.input) < 2:
        node.input.append("")
    node.input.append(rw.constant(np.zeros(1, np.float32), "idle"))
    node.output.insert(0, rw.fresh("idle_result"))
