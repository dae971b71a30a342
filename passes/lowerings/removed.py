"""Operators that end where they began: nothing below computes what they do, but for constant inputs."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import impossible, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import integers

for _operator, _version, _task in (
    ("RegexFullMatch", 20, "matches strings"),
    ("StringConcat", 20, "joins strings"),
    ("StringSplit", 20, "splits strings"),
    ("StringNormalizer", 10, "changes strings"),
    ("TfIdfVectorizer", 9, "counts n-grams"),
):
    impossible(
        _operator,
        _version,
        why=f"no operator below opset {_version} {_task}",
        hint="do it in front of the model",
    )
impossible(
    "Unique",
    11,
    why="no operator below opset 11 finds the values that differ, whose number only the data say",
    hint="do it in front of the model",
)


@lowering("NonZero", leaves=9)
def non_zero_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no NonZero: the places of a constant become a constant.

    Limits: no operator below opset 9 has an output whose size only the data say, so the input must be a constant.
    """
    array = rw.need_constant(0, "input")
    places = np.array(np.nonzero(array), np.int64).reshape(array.ndim, -1)
    rw.rename("Identity")
    node.input[0] = rw.constant(places, "places")


@lowering("Compress", leaves=9)
def compress_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no Compress: Gather takes the elements that a constant condition selects.

    Why equal: elements are selected in their order, and those behind the end of the condition are not.

    Limits: no operator below opset 9 has an output whose size only the data say, so the condition must be a constant.
    """
    selected = np.flatnonzero(rw.need_constant(1, "condition"))
    source = rw.input(0)
    if rw.get("axis") is None:
        node.input[0] = rw.before("Reshape", [source, integers(rw, -1)], hint="flat")
        rw.set("axis", 0)
    rw.rename("Gather")
    rw.set_input(1, rw.constant(selected.astype(np.int64), "selected"))
