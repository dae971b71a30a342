"""AveragePool, MaxPool, LpPool, their global forms, MaxUnpool and MaxRoiPool."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

# ONNX Runtime computes the output shape in the same way at every version; only the descriptions were corrected.
_DESCRIPTION = "the output shape with auto_pad and the default of strides are specified"
_CEIL = "with ceil_mode, windows that would start in the right padding are ignored, as runtimes did; more types are allowed"

compatible("AveragePool", 10, reason="ceil_mode was added, with default 0")
compatible("AveragePool", 11, reason=_DESCRIPTION)
compatible(
    "AveragePool",
    19,
    reason="dilations was added, with default 1; from this version on ONNX Runtime's kernel sums in another order",
    exactness=Exactness.EQUIVALENT,
)
compatible("AveragePool", 22, reason=_CEIL)
compatible("MaxPool", 10, reason="ceil_mode and dilations were added, with defaults 0 and 1")
compatible("MaxPool", 11, reason=_DESCRIPTION)
compatible("MaxPool", 12, reason="more types are allowed")
compatible("MaxPool", 22, reason=_CEIL)
compatible("LpPool", 11, reason=_DESCRIPTION)
compatible("LpPool", 18, reason="ceil_mode and dilations were added, with defaults 0 and 1")
compatible("MaxUnpool", 11, reason="the default of strides is specified")
for _name in ("LpPool", "GlobalLpPool", "GlobalAveragePool", "GlobalMaxPool", "MaxUnpool", "MaxRoiPool"):
    compatible(_name, 22, reason="more types are allowed")


@adapter("LpPool", "GlobalLpPool", to=2)
def lp_pool_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`p` becomes an integer.

    Limits: refused are a p that is not an integer, and an LpPool without kernel_shape.
    """
    p = float(rw.pop("p", 2.0))
    if not p.is_integer():
        rw.refuse(f"attribute p is {p:g}, but from version 2 on it must be an integer", code="no-equal")
    rw.set("p", int(p))
    if node.op_type == "LpPool" and rw.attribute("kernel_shape") is None:
        rw.refuse(
            "has no kernel_shape",
            code="invalid-node",
            hint="version 1 does not specify a default for it; set kernel_shape in the model",
        )


@adapter("AveragePool", to=7)
def average_pool_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`count_include_pad` was added, with the old behaviour, 0, as its default; `pads` are completed.

    What changes: `pads` with one number per axis get that number for both ends of the axis.

    Why equal: the first exporters (PyTorch's, and the test cases of onnx 1.0.1) wrote them so, with that meaning. The
    standard has two numbers per axis, and no runtime accepts one.
    """
    _both_ends(rw)


@adapter("MaxPool", to=8)
def max_pool_8(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`storage_order` and the optional output Indices were added; `pads` are completed.

    What changes: `pads` with one number per axis get that number for both ends of the axis, as for AveragePool.
    """
    _both_ends(rw)


def _both_ends(rw: Rewriter) -> None:
    given, window = rw.attribute("pads"), rw.attribute("kernel_shape")
    if given is None or window is None or given.ref_attr_name or window.ref_attr_name:
        return
    pads = rw.get("pads")
    if len(pads) == len(rw.get("kernel_shape")):
        rw.set("pads", [*pads, *pads])
