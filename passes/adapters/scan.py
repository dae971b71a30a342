"""Scan: from opset 9 on it has no batch axis."""

from __future__ import annotations

import onnx
from onnx import TensorProto, TypeProto, helper

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Scan", 11, reason="negative axes are allowed")
compatible("Scan", 16, 19, 21, 23, 24, 25, reason="more types are allowed")


@adapter("Scan", to=9)
def scan_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The batch axis was removed: an outer Scan iterates over the batch, and an inner one over the sequence.

    What changes: the inner Scan has the old body and states, and `directions` as `scan_input_directions`. The outer one
    has no states; it scans axis 0 of all inputs and stacks the outputs of the inner one.

    Why equal: the pseudo-code of Scan-8 is a loop over the batch around a loop over the sequence.

    Limits: refused are sequence_lens by which sequences of one batch may differ in length.
    """
    if rw.input(0) and not _full_length(rw):
        rw.refuse(
            "has sequence_lens, which are not known to equal the length of the sequence axis",
            code="sequence-lens",
            hint="use sequences of one length and omit sequence_lens",
        )
    scanned = int(rw.get("num_scan_inputs"))
    directions = rw.pop("directions")
    given = list(node.input[1:])
    inner = onnx.NodeProto(op_type="Scan", name=rw.fresh("sequence"))
    inner.attribute.add().CopyFrom(_attribute(rw, "body"))
    inner.attribute.append(helper.make_attribute("num_scan_inputs", scanned))
    if directions:
        inner.attribute.append(helper.make_attribute("scan_input_directions", directions))
    inner.input.extend(rw.fresh(f"{name}_of_batch") for name in given)
    inner.output.extend(rw.fresh(f"{name or 'unused'}_of_batch") for name in node.output)
    batch = onnx.GraphProto(name=rw.fresh("batch"), node=[inner])
    for name, outer in zip(inner.input, given, strict=True):
        batch.input.append(onnx.ValueInfoProto(name=name, type=_element_type(rw, outer)))
    for name, outer in zip(inner.output, node.output, strict=True):
        batch.output.append(onnx.ValueInfoProto(name=name, type=_element_type(rw, outer)))
    rw.set("body", batch)
    rw.set("num_scan_inputs", len(given))
    del node.input[0]


def _full_length(rw: Rewriter) -> bool:
    lengths, shape = rw.constant_value(rw.input(0)), rw.shape(rw.node.input[-1])
    return lengths is not None and shape is not None and len(shape) > 1 and bool((lengths == shape[1]).all())


def _attribute(rw: Rewriter, name: str) -> onnx.AttributeProto:
    attribute = rw.attribute(name)
    assert attribute is not None  # The schema of version 8 requires it.
    return attribute


def _element_type(rw: Rewriter, value: str) -> TypeProto:
    """Return a value's type without its shape; the element type is UNDEFINED if it is unknown."""
    type_ = TypeProto()
    type_.tensor_type.elem_type = (rw.dtype(value) if value else None) or TensorProto.UNDEFINED
    return type_
