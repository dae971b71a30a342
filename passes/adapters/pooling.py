"""AveragePool, MaxPool, LpPool, their global forms, MaxUnpool and MaxRoiPool."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

# ONNX Runtime gives one shape for ceil_mode and auto_pad at every version; only the words were mended.
_WORDS = "the output shape under auto_pad, and what unset strides are, is spelt out"
_CEIL = (
    "windows that would start in the right padding are ignored under ceil_mode, as runtimes did; more types"
)

compatible("AveragePool", 10, reason="ceil_mode was added, 0 by default")
compatible("AveragePool", 11, reason=_WORDS)
compatible(
    "AveragePool",
    19,
    reason="dilations was added, 1 by default; ONNX Runtime's kernel adds up in another order from here on",
    exactness=Exactness.EQUIVALENT,
)
compatible("AveragePool", 22, reason=_CEIL)
compatible("MaxPool", 10, reason="ceil_mode and dilations were added, 0 and 1 by default")
compatible("MaxPool", 11, reason=_WORDS)
compatible("MaxPool", 12, reason="more types are allowed")
compatible("MaxPool", 22, reason=_CEIL)
compatible("LpPool", 11, reason=_WORDS)
compatible("LpPool", 18, reason="ceil_mode and dilations were added, 0 and 1 by default")
compatible("MaxUnpool", 11, reason="what unset strides are is spelt out")
for _name in ("LpPool", "GlobalLpPool", "GlobalAveragePool", "GlobalMaxPool", "MaxUnpool", "MaxRoiPool"):
    compatible(_name, 22, reason="more types are allowed")


@adapter("LpPool", "GlobalLpPool", to=2)
def lp_pool_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`p` becomes a whole number.

    Limits: a p that is not whole has no equal, nor has an LpPool without kernel_shape.
    """
    p = float(rw.pop("p", 2.0))
    if not p.is_integer():
        rw.refuse(f"p is {p:g}, and from version 2 on it is a whole number", code="no-equal")
    rw.set("p", int(p))
    if node.op_type == "LpPool" and rw.attribute("kernel_shape") is None:
        rw.refuse("has no kernel_shape", code="invalid-node", hint="version 1 does not say what that means")


@adapter("AveragePool", to=7)
def average_pool_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """count_include_pad was added; 0, the default, is how it was.

    What changes: `pads` of one number per axis are written out for both its ends.

    Why equal: the first exporters (PyTorch's, and the cases of onnx 1.0.1) wrote them so, with that meaning; by the text
    there are two numbers per axis, and no runtime takes fewer.
    """
    _both_ends(rw)


@adapter("MaxPool", to=8)
def max_pool_8(node: onnx.NodeProto, rw: Rewriter) -> None:
    """storage_order and the output Indices were added; 0, the default, is how it was.

    What changes: `pads` of one number per axis are written out for both its ends, as for AveragePool.
    """
    _both_ends(rw)


def _both_ends(rw: Rewriter) -> None:
    given, window = rw.attribute("pads"), rw.attribute("kernel_shape")
    if given is None or window is None or given.ref_attr_name or window.ref_attr_name:
        return
    pads = rw.get("pads")
    if len(pads) == len(rw.get("kernel_shape")):
        rw.set("pads", [*pads, *pads])
