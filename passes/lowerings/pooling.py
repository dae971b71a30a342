"""AveragePool, MaxPool and LpPool downwards: ceil_mode, dilations and the second output of MaxPool."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import LostTypes, impossible, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .pool_windows import (
    dilates,
    gather_windows,
    given_pads,
    has_fixed_lengths,
    is_odd_mode,
    max_of_windows,
    pad,
    pads_without_ceil,
    windows,
)

impossible(
    "MaxUnpool",
    9,
    why="no operator below opset 9 puts elements at given places",
    hint="do the unpooling after the model",
)


def _leave_windows_out(rw: LoweringRewriter) -> None:
    """Drop a ceil_mode by which no window is added: it would start in the padding, and shape inference counts it."""
    if not rw.get("ceil_mode", 0) or not has_fixed_lengths(rw):
        return
    given = windows(rw)
    if given.counts_too_many:
        rw.set("pads", given.pads)
        rw.drop("auto_pad", "ceil_mode")
        rw.note("its ceil_mode adds no window that starts in front of the padding, so it is dropped")


@lowering("AveragePool", leaves=22, types=LostTypes.ROUNDED)
def average_pool_22_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Only version 22 says that with ceil_mode, windows that start in the padding at the end are left out.

    What changes: where a window is left out, and lengths are fixed, ceil_mode is dropped.

    Why equal: runtimes always left such windows out; onnx's shape inference of older versions counts them.
    """
    _leave_windows_out(rw)


@lowering("MaxPool", leaves=22, types=LostTypes.EXACT)
def max_pool_22_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Only version 22 says that with ceil_mode, windows that start in the padding at the end are left out.

    What changes: where a window is left out, and lengths are fixed, ceil_mode is dropped.

    Why equal: runtimes always left such windows out; onnx's shape inference of older versions counts them.
    """
    _leave_windows_out(rw)


@lowering("AveragePool", leaves=19, exactness=Exactness.EQUIVALENT)
def average_pool_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`dilations` does not exist.

    What changes: dilations of 1 are dropped. Others: the elements of each window are gathered side by side, and averaged
    by an AveragePool whose stride is its kernel. Where padding does not count, the result is multiplied by the elements
    of a window and divided by those that count.

    Why equal: the windows hold the same elements. ONNX Runtime's kernel adds up in another order up to version 18, also
    without dilations: 1.2e-7 of the largest element measured, 2.4e-7 with dilations.

    Limits: dilations above 1 need fixed spatial lengths.
    """
    if not dilates(rw):
        rw.drop("dilations")
        return
    given = windows(rw)
    gather_windows(rw, given, 0.0)
    include = bool(rw.get("count_include_pad", 0))
    rw.drop("count_include_pad")
    counts = given.counts(include=include)
    full = float(np.prod(given.kernel))
    if bool((counts == full).all()):
        return
    name = rw.output(0)
    raw = rw.detach_output(0, "windows")
    factor = rw.constant((full / counts).astype(rw.numpy_type(rw.input(0))), "counts")
    rw.after("Mul", [raw, factor], [name])


@lowering("LpPool", leaves=18)
def lp_pool_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`ceil_mode` and `dilations` do not exist.

    What changes: with ceil_mode the padding at the end grows to what the last window needs. With dilations above 1 the
    elements of each window are gathered side by side, for an LpPool whose stride is its kernel.

    Why equal: padding adds |0|^p, and the windows hold the same elements in the same order. Bit for bit.

    Limits: dilations need fixed spatial lengths, and so does ceil_mode where padding at the end and stride together exceed
    the kernel.
    """
    if dilates(rw):
        gather_windows(rw, windows(rw), 0.0)
    elif is_odd_mode(rw):
        rw.set("pads", pads_without_ceil(rw))
        rw.drop("auto_pad")
    rw.drop("ceil_mode", "dilations")


@lowering("AveragePool", leaves=10)
def average_pool_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`ceil_mode` does not exist.

    What changes: with ceil_mode the padding at the end grows to what the last window needs. Padding that counts is
    written as a Pad with zeros in front, so that what was added does not count.

    Why equal: the last window is divided by its elements within the padding that was given (ONNX Runtime's pool.cc).

    Limits: ceil_mode needs fixed spatial lengths where padding at the end and stride together exceed the kernel.
    """
    if is_odd_mode(rw):
        given, pads = given_pads(rw), pads_without_ceil(rw)
        if pads != given:
            if rw.get("count_include_pad", 0) and any(given):
                half = len(given) // 2
                node.input[0] = pad(rw, node.input[0], given[:half], given[half:], 0.0)
                pads = [new - old for new, old in zip(pads, given, strict=True)]
            rw.drop("count_include_pad")
        rw.set("pads", pads)
        rw.drop("auto_pad")
    rw.drop("ceil_mode")


@lowering("MaxPool", leaves=10)
def max_pool_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`ceil_mode` and `dilations` do not exist.

    What changes: with ceil_mode the padding at the end grows to what the last window needs. With dilations above 1, the
    elements of each window are gathered, axis by axis, and Max takes the largest.

    Why equal: padding counts as the lowest number. Bit for bit; with dilations for all but NaN, which Max returns from
    everywhere, and ONNX Runtime's kernel from the first place of a window alone, and for the sign of a zero.

    Limits: dilations need fixed spatial lengths, and so does ceil_mode where padding at the end and stride together exceed
    the kernel. With dilations above 1, Indices that are read are refused.
    """
    if dilates(rw):
        _refuse_indices(rw, "dilations above 1")
        max_of_windows(rw, windows(rw))
        return
    if is_odd_mode(rw):
        rw.set("pads", pads_without_ceil(rw))
        rw.drop("auto_pad")
    rw.drop("ceil_mode", "dilations")


@lowering("MaxPool", leaves=8)
def max_pool_8_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The output Indices and `storage_order` do not exist.

    What changes: storage_order, which is about Indices alone, is dropped, and so are Indices that nothing reads.

    Why equal: the first output does not depend on them. ONNX Runtime has a kernel of its own for Indices, which returns
    NaN and the lowest number in other cases.

    Limits: Indices that are read are refused.
    """
    if rw.output(1):
        _refuse_indices(rw, "MaxPool")
        rw.note("its Indices, which nothing reads, are dropped", Exactness.EQUIVALENT)
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
