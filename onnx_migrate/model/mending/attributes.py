"""Repairs the attributes of nodes: values that ONNX Runtime reads in its own way, and attributes that a node has twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.model.graphs import Body, node_label
from onnx_migrate.model.mending.tensors import Mending
from onnx_migrate.model.validity.tensors import Array
from onnx_migrate.standard.allowed_values import UNCHECKED, runtime_reading
from onnx_migrate.standard.schema import is_onnx

__all__ = ["mend_attributes"]


def mend_attributes(body: Body, opset: int, array: Array, *, repeated: bool) -> Iterator[Mending]:
    """Correct the values of attributes, in place; with `repeated`, of attributes of one name and type keep the last.

    `opset` is that of ai.onnx in the body, and `array` reads a tensor.
    """
    constants: dict[str, TensorProto] | None = None
    for node in body.node:
        # Repeated attributes of Constants are repaired elsewhere.
        if repeated and node.op_type != "Constant":
            yield from _repeated(node)
        if not is_onnx(node.domain):
            continue
        # ONNX Runtime does not read unknown attributes of these operators.
        if node.op_type in UNCHECKED:
            yield from _unknown(node)
        for attribute in node.attribute:
            if attribute.type != AttributeProto.STRING or attribute.ref_attr_name:
                continue
            text = attribute.s.decode(errors="replace")
            read = runtime_reading(node.op_type, attribute.name, text)
            if read is not None and node.op_type in ("ConvTranspose", "Resize"):
                # Few nodes need the constants, so they are collected at the first one.
                constants = _constants(body) if constants is None else constants
                if node.op_type == "Resize":
                    read = _nearest_mode(node, constants, array)
                elif _contradicts(node, opset, constants):
                    read = None
            if read:
                attribute.s = read.encode()
                yield _mending(node, f"has {attribute.name}={text!r}: read as {read!r}")


def _mending(node: onnx.NodeProto, reason: str) -> Mending:
    return Mending(node_label(node), f"{node_label(node)!r} ({node.op_type}) {reason}")


def _unknown(node: onnx.NodeProto) -> Iterator[Mending]:
    known_attributes = UNCHECKED[node.op_type]
    # A list of its own, because the loop removes attributes from the node.
    for attribute in [
        attribute_entry for attribute_entry in node.attribute if attribute_entry.name not in known_attributes
    ]:
        node.attribute.remove(attribute)
        yield _mending(
            node,
            f"has an attribute {attribute.name!r}, which its operator does not have: left out, as ONNX Runtime does not read it",
        )


def _repeated(node: onnx.NodeProto) -> Iterator[Mending]:
    last = {attribute.name: index for index, attribute in enumerate(node.attribute)}
    # Attributes of one name and of different types are an error that is not repaired.
    if len(last) < len(node.attribute) and len({(a.name, a.type) for a in node.attribute}) == len(last):
        last_attributes = [node.attribute[index] for index in sorted(last.values())]
        yield _mending(node, "has an attribute twice: the last holds")
        del node.attribute[:]
        node.attribute.extend(last_attributes)


def _constants(body: Body) -> dict[str, TensorProto]:
    constants = (
        {tensor.name: tensor for tensor in body.initializer} if isinstance(body, onnx.GraphProto) else {}
    )
    for node in body.node:
        if node.op_type == "Constant" and is_onnx(node.domain):
            constants.update(
                (node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value"
            )
    return constants


def _contradicts(node: onnx.NodeProto, opset: int, constants: Mapping[str, TensorProto]) -> bool:
    """Return whether ONNX Runtime refuses pads beside this auto_pad: onnx's inference does from version 11 on.

    The inference gets to this check only if it knows the lengths of the kernel.
    """
    has_pads = any(attribute.name == "pads" for attribute in node.attribute)
    return opset >= 11 and has_pads and len(node.input) > 1 and node.input[1] in constants


def _nearest_mode(node: onnx.NodeProto, constants: Mapping[str, TensorProto], array: Array) -> str | None:
    """Return the nearest_mode that equals the empty one of a Resize; None if that depends on unknown scales.

    With an empty mode ONNX Runtime uses floor on an axis that grows, and ceil on one that shrinks
    (ResizeNearestMode::SIMPLE in its upsamplebase.h). Other modes than nearest do not read the attribute.
    """
    mode = next((attribute.s for attribute in node.attribute if attribute.name == "mode"), b"nearest")
    if mode != b"nearest":
        return "round_prefer_floor"
    stored = constants.get(node.input[2]) if len(node.input) > 2 else None
    scales = None if stored is None else array(stored)
    if scales is None or not scales.size:
        return None
    return "floor" if scales.min() >= 1 else "ceil" if scales.max() <= 1 else None
