"""Split: its lengths became an attribute (opset 2) and an input (13); num_outputs was added (18)."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Split", 11, reason="a negative axis is allowed")


@adapter("Split", to=2)
def split_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The lengths, which could be an input, become the attribute `split`, and `axis` is set if it was omitted.

    What changes: lengths that are known only at run time become the input of Split-13.

    Limits: version 1 does not specify the default of axis; 0, the default of version 2, is assumed.
    """
    if rw.attribute("axis") is None:
        rw.set("axis", 0)
        rw.note("axis was omitted; 0 is assumed, the default from opset 2 on", Exactness.ASSUMED)
    lengths = rw.input(1)
    if not lengths:
        return
    fixed = rw.constant_value(lengths)
    if fixed is not None:
        rw.set("split", [int(length) for length in fixed])
        rw.set_input(1, "")
    elif rw.target >= 13:
        rw.version = 13
        rw.drop("split")
        rw.set_input(1, rw.before("Cast", [lengths], hint="split", to=TensorProto.INT64))
    else:
        rw.refuse(
            "its lengths are known only at run time, and Split-2 takes constant ones",
            code="needs-value",
            hint="target opset 13 or newer, where they are an input",
        )


@adapter("Split", to=13)
def split_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`split` moves from an attribute to an input."""
    rw.attribute_to_input("split", 1)


@adapter("Split", to=18)
def split_18(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`num_outputs` is set if no lengths are given.

    Why equal: before, the parts had to have equal lengths, and then num_outputs yields the same parts.
    """
    if not rw.input(1):
        rw.set_input(1, "")
        rw.set("num_outputs", len(node.output))
