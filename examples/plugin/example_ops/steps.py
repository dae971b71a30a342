"""The steps from opset 1 to 2 and back. Each docstring is what reports and `onnx-migrate explain com.example.swish-2` say."""

import onnx

from example_ops import DOMAIN, schemas
from onnx_migrate.plugins import LoweringRewriter, Rewriter, adapter, impossible, lowering

assert schemas  # registered before the steps


@adapter("Swish", to=2, domain=DOMAIN)
def swish_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`beta` is an input, no longer an attribute.

    What changes: the attribute becomes a constant of the type of x at input 1.
    Why equal: the kernels read the same number, from another place.
    """
    rw.attribute_to_input("beta", 1, like=rw.input(0))


@lowering("Swish", leaves=2, domain=DOMAIN)
def swish_2_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`beta` is an attribute, no longer an input.

    What changes: a constant input becomes the attribute.
    Limits: refused where beta is computed at run time, or is not one number.
    """
    if rw.input(1):
        beta = rw.need_constant(1, "beta")
        if beta.size != 1:
            rw.refuse(f"its beta has {beta.size} elements, and an attribute has one", code="no-equal")
        rw.set("beta", float(beta.reshape(())))
        rw.set_input(1, "")


@adapter("Clamp", to=2, domain=DOMAIN)
def clamp_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Clamp ended with opset 2, and is Clip of ai.onnx now.

    What changes: a Clip with both bounds as inputs, the form since opset 11.
    Why equal: both are min(max(x, low), high).
    """
    for index, (name, default) in enumerate((("low", 0.0), ("high", 1.0)), start=1):
        rw.set(name, rw.get(name, default))
        rw.attribute_to_input(name, index, like=rw.input(0))
    rw.rename("Clip", domain="")


impossible("Clamp", 2, why="Clamp-2 has no meaning", hint="use Clip", domain=DOMAIN)
