"""AveragePool, MaxPool, LpPool, their global forms, MaxUnpool and MaxRoiPool: ceil_mode, dilations, padding and Indices."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Value, formula
from onnx_migrate.plugins import LoweringRewriter, Rewriter, adapter, compatible, impossible, lowering

from .pool_windows import (
    dilates,
    gathered,
    given_pads,
    has_fixed_lengths,
    is_odd_mode,
    largest,
    padded,
    pads_without_ceil,
    windows,
)

# ONNX Runtime computes the output shape in the same way at every version; only the descriptions were corrected.
_DESCRIPTION = "the output shape with auto_pad and the default of strides are specified"
_CEIL = "with ceil_mode, windows that would start in the right padding are ignored, as runtimes did; more types are allowed"

compatible("AveragePool", 10, reason="ceil_mode was added, with default 0")
compatible("AveragePool", 11, reason=_DESCRIPTION)
compatible(
    "AveragePool",
    19,
    reason="dilations was added, with default 1; from this version on ONNX Runtime's kernel sums in another order",
    exactness=EQUIVALENT,
)
compatible("AveragePool", 22, reason=_CEIL)
compatible("MaxPool", 10, reason="ceil_mode and dilations were added, with defaults 0 and 1")
compatible("MaxPool", 11, reason=_DESCRIPTION)
compatible("MaxPool", 22, reason=_CEIL)
compatible("LpPool", 11, reason=_DESCRIPTION)
compatible("LpPool", 18, reason="ceil_mode and dilations were added, with defaults 0 and 1")
compatible("MaxUnpool", 11, reason="the default of strides is specified")

impossible(
    "MaxUnpool",
    9,
    why="no operator below opset 9 puts elements at given places",
    hint="do the unpooling after the model",
)


@adapter("LpPool", "GlobalLpPool", to=2)
def lp_pool_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`p` becomes an integer.

    Limits: onnx-migrate refuses a p that is not an integer, and an LpPool without kernel_shape.
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

    Why equal: the first exporters (PyTorch's, and the test cases of onnx 1.0.1) wrote them in this way, with that meaning. The
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
    fixed_pads, window = rw.attribute("pads"), rw.attribute("kernel_shape")
    if fixed_pads is None or window is None or fixed_pads.ref_attr_name or window.ref_attr_name:
        return
    pads = rw.get("pads")
    if len(pads) == len(rw.get("kernel_shape")):
        rw.set("pads", [*pads, *pads])


@lowering("AveragePool", leaves=22, types=LostTypes.ROUNDED)
@lowering("MaxPool", leaves=22, types=LostTypes.EXACT)
def pool_22_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Only version 22 says that with ceil_mode, a pool skips windows that start in the padding at the end.

    What changes: if a pool skips a window, and lengths are fixed, ceil_mode is dropped.

    Why equal: runtimes always skipped such windows; onnx's shape inference of older versions counts them.
    """
    if not rw.get("ceil_mode", 0) or not has_fixed_lengths(rw):
        return
    window = windows(rw)
    if window.counts_too_many:
        rw.set("pads", window.pads)
        rw.drop("auto_pad", "ceil_mode")
        rw.note("its ceil_mode adds no window that starts in front of the padding, so it is dropped")


@formula("AveragePool", since=19, exactness=EQUIVALENT)
def average_pool_19_down(op: Op, x: Value, *, count_include_pad: int) -> Value:
    """`dilations` does not exist.

    What changes: dilations of 1 are dropped. For others, Gathers put the elements of each window side by side, and an
    AveragePool whose stride is its kernel averages them. If padding does not count, the result is multiplied by the elements of
    a window and divided by those that count.

    Why equal: the windows hold the same elements. ONNX Runtime's kernel adds up in another order up to version 18, also without
    dilations. The largest difference measured is 1.2e-7 of the largest element, and 2.4e-7 with dilations.

    Limits: dilations above 1 need fixed spatial lengths.
    """
    if not dilates(op.rw):
        return op.itself(x, dilations=None)
    window = windows(op.rw)
    values = gathered(op, x, window)
    result = op.itself(values, strides=window.kernel, count_include_pad=None, **_GATHERED)
    counts = window.counts(include=bool(count_include_pad))
    full = float(np.prod(window.kernel))
    return result if bool((counts == full).all()) else result * (full / counts).astype(x.numpy_type)


_GATHERED = dict.fromkeys(("dilations", "pads", "auto_pad", "ceil_mode"))
"""The attributes that go away if the elements of the windows are gathered side by side."""


@formula("LpPool", since=18)
def lp_pool_18_down(op: Op, x: Value) -> Value:
    """`ceil_mode` and `dilations` do not exist.

    What changes: with ceil_mode the padding at the end grows until the last window fits. With dilations above 1 the elements of
    each window are gathered side by side, for an LpPool whose stride is its kernel.

    Why equal: padding adds |0|^p, and the windows hold the same elements in the same order. Bit for bit.

    Limits: dilations need fixed spatial lengths. ceil_mode needs them if padding at the end and stride together exceed the
    kernel.
    """
    if dilates(op.rw):
        window = windows(op.rw)
        return op.itself(gathered(op, x, window), strides=window.kernel, **_GATHERED)
    if is_odd_mode(op.rw):
        pads = pads_without_ceil(op.rw)
        return op.itself(x, pads=pads, auto_pad=None, ceil_mode=None, dilations=None)
    return op.itself(x, ceil_mode=None, dilations=None)


@formula("AveragePool", since=10)
def average_pool_10_down(op: Op, x: Value, *, count_include_pad: int) -> Value:
    """`ceil_mode` does not exist.

    What changes: with ceil_mode the padding at the end grows until the last window fits. Padding that counts becomes a Pad with
    zeros before the node, so that the added padding does not count.

    Why equal: the last window is divided by its elements within the given padding (ONNX Runtime's pool.cc).

    Limits: ceil_mode needs fixed spatial lengths if padding at the end and stride together exceed the kernel.
    """
    if not is_odd_mode(op.rw):
        return op.itself(x, ceil_mode=None)
    old_pads, pads = given_pads(op.rw), pads_without_ceil(op.rw)
    if pads == old_pads:
        return op.itself(x, pads=pads, auto_pad=None, ceil_mode=None)
    if count_include_pad and any(old_pads):
        x = padded(op, x, old_pads, 0.0)
        pads = [new - old for new, old in zip(pads, old_pads, strict=True)]
    return op.itself(x, pads=pads, count_include_pad=None, auto_pad=None, ceil_mode=None)


@lowering("MaxPool", leaves=10)
def max_pool_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`ceil_mode` and `dilations` do not exist.

    What changes: with ceil_mode the padding at the end grows until the last window fits. With dilations above 1, the elements
    of each window are gathered, axis by axis, and Max returns the largest.

    Why equal: padding counts as the lowest number. Results are equal bit for bit, except for NaN and the sign of a zero with
    dilations. Max returns a NaN from any place of a window, ONNX Runtime's kernel only from the first.

    Limits: dilations need fixed spatial lengths. ceil_mode needs them if padding at the end and stride together exceed the
    kernel. With dilations above 1, onnx-migrate refuses a node whose output Indices is read.
    """
    if dilates(rw):
        _refuse_indices(rw, "dilations above 1")
        op = Op(rw)
        op.end(largest(op, windows(rw)))
        return
    if is_odd_mode(rw):
        rw.set("pads", pads_without_ceil(rw))
        rw.drop("auto_pad")
    rw.drop("ceil_mode", "dilations")


@lowering("MaxPool", leaves=8)
def max_pool_8_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The output Indices and `storage_order` do not exist.

    What changes: storage_order, which is about Indices alone, is dropped. Indices that nothing reads are dropped too.

    Why equal: the first output does not depend on them. ONNX Runtime has a kernel of its own for Indices, which returns NaN and
    the lowest number in other cases.

    Limits: onnx-migrate refuses a node whose output Indices is read.
    """
    if rw.output(1):
        _refuse_indices(rw, "MaxPool")
        rw.note("its Indices, which nothing reads, are dropped", EQUIVALENT)
    rw.drop("storage_order")


def _refuse_indices(rw: LoweringRewriter, what: str) -> None:
    if rw.output(1) and rw.is_read(rw.output(1)):
        rw.refuse(
            f"{what} with the output Indices ({rw.output(1)!r}), which is read, does not exist below opset"
            f" {rw.version + 1}",
            code="no-equal",
            hint="compute what needs the indices after the model",
        )
    del rw.node.output[1:]
