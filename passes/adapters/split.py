"""Split: from an attribute (and once an input) to an input, and the number of outputs said aloud."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Split", 11, reason="a negative axis is allowed")


@adapter("Split", to=2)
def split_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The lengths, which could be an input, become the attribute `split`, and `axis` is written out.

    What changes: lengths known only at run time go to the input of Split-13.

    Limits: version 1 does not say which axis is split when none is named; 0 is taken, version 2's default.
    """
    if rw.attribute("axis") is None:
        rw.set("axis", 0)
        rw.note("no axis was named; 0 is taken, which became the default", Exactness.ASSUMED)
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
            "its lengths are known only at run time", code="needs-value", hint="opset 13 and above can say so"
        )


@adapter("Split", to=13)
def split_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`split` moves from an attribute to an input."""
    rw.attribute_to_input("split", 1)


@adapter("Split", to=18)
def split_18(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Without lengths, `num_outputs` says how many equal parts there are.

    Why equal: equal parts had to be exactly equal before, and then they are the same now.
    """
    if not rw.input(1):
        rw.set_input(1, "")
        rw.set("num_outputs", len(node.output))
