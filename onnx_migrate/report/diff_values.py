"""The differences between the weights, inputs, outputs and declared shapes of two bodies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from onnx_migrate.errors import LoadError
from onnx_migrate.model.array_difference import array_difference
from onnx_migrate.model.graphs import Body
from onnx_migrate.model.interface import Port
from onnx_migrate.model.matching import Matching
from onnx_migrate.model.weights import Weights
from onnx_migrate.report.diff_nodes import DiffEntry, WeightsOf, changed_lines
from onnx_migrate.report.tensor_text import same_tensor, tensor_text, type_text
from onnx_migrate.standard.schema import is_onnx

__all__ = ["constant_tensor", "interface_changes", "name_of", "shape_changes", "weight_changes"]


_SHOWN, _COMPARED = 8, 1 << 24
"""Maximum number of elements of a tensor whose values are shown, and of tensors compared element by element."""


def constant_tensor(node: onnx.NodeProto) -> TensorProto | None:
    """Return the tensor of a Constant, which is a weight like an initializer."""
    if node.op_type == "Constant" and is_onnx(node.domain) and len(node.attribute) == 1:
        attribute = node.attribute[0]
        if attribute.type == AttributeProto.TENSOR and not attribute.ref_attr_name:
            return attribute.t
    return None


def _tensors(body: Body) -> dict[str, TensorProto]:
    tensors_by_name = (
        {tensor.name: tensor for tensor in body.initializer} if isinstance(body, onnx.GraphProto) else {}
    )
    constants = ((node, constant_tensor(node)) for node in body.node)
    tensors_by_name.update(
        {node.output[0]: tensor for node, tensor in constants if tensor is not None and node.output}
    )
    return tensors_by_name


def weight_changes(
    before: Body, after: Body, path: str, renamed: dict[str, str], weights: WeightsOf
) -> Iterator[DiffEntry]:
    """Yield the weights that differ, and add weights that only have another name to `renamed`."""
    old, new = _tensors(before), _tensors(after)
    for name in old.keys() & new.keys():
        # A weight under its own name is not renamed.
        renamed.pop(name, None)
    gone = {name: tensor_text(old[name], weights[0]) for name in old if name not in new}
    come = {name: tensor_text(new[name], weights[1]) for name in new if name not in old}
    by_text: dict[str, list[str]] = {}
    for name, text in gone.items():
        by_text.setdefault(text, []).append(name)
    for name, text in come.items():
        # A weight with the same data under another name is no difference.
        same = next(
            (other for other in by_text.get(text, ()) if same_tensor(old[other], new[name], weights)), None
        )
        if same is not None:
            by_text[text].remove(same)
            renamed[name] = same
    matched_names = set(renamed.values())
    for name, tensor in old.items():
        if name in new and not same_tensor(tensor, new[name], weights):
            texts = tensor_text(tensor, weights[0]), tensor_text(new[name], weights[1])
            removed, added = (f"weight {name}: {text}" for text in texts)
            yield DiffEntry(
                path, f"weight {name}", (removed,), (added,), _elements(tensor, new[name], weights)
            )
        elif name in gone and name not in matched_names:
            yield DiffEntry(path, f"weight {name}", (f"weight {name}: {gone[name]}",))
    for name, text in come.items():
        if name not in renamed:
            yield DiffEntry(path, f"weight {name}", (), (f"weight {name}: {text}",))
    yield from changed_lines(path, _sparse(before, weights[0]), _sparse(after, weights[1]))


def _elements(one: TensorProto, other: TensorProto, weights: WeightsOf) -> str:
    """Return the elements in which two tensors of one shape differ; "" for small tensors, which are shown, and very large."""
    size = math.prod(one.dims)
    if list(one.dims) != list(other.dims) or not _SHOWN < size <= _COMPARED:
        return ""
    try:
        arrays = [
            numpy_helper.to_array(
                side.inlined(tensor)
                if side is not None and tensor.data_location == TensorProto.EXTERNAL
                else tensor
            )
            for tensor, side in zip((one, other), weights, strict=True)
        ]
    except (LoadError, ValueError):
        return ""  # of data that is missing, which the digests say
    label = f"weight {one.name}"
    return array_difference(label, *arrays) or f"{label} differs by rounding alone"


def _sparse(body: Body, weights: Weights | None) -> dict[str, str]:
    lines = {}
    for sparse in body.sparse_initializer if isinstance(body, onnx.GraphProto) else ():
        parts = (
            f"values {tensor_text(sparse.values, weights)}, indices {tensor_text(sparse.indices, weights)}"
        )
        kind = f"{type_text(sparse.values.data_type, sparse.dims)} sparse"
        lines[f"weight {sparse.values.name}"] = f"weight {sparse.values.name}: {kind}, {parts}"
    return lines


def interface_changes(before: Body, after: Body, path: str, found: Matching) -> Iterator[DiffEntry]:
    """Yield the inputs and outputs that differ, and whether only their order does.

    Inputs and outputs of a main graph are matched by name, those of other bodies by position, as callers do.
    """
    for side in ("input", "output"):
        old, new = (list(getattr(body, side)) for body in (before, after))
        if path != "graph":
            yield from _by_place(old, new, path, side, found)
            continue
        texts = (
            {f"{side} {value.name}": f"{side} {Port.of(value)}" for value in values} for values in (old, new)
        )
        yield from changed_lines(path, *texts)
        orders = [[value.name for value in values] for values in (old, new)]
        if orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]):
            removed, added = (f"order of {side}s: {', '.join(names)}" for names in orders)
            yield DiffEntry(path, f"order of {side}s", (removed,), (added,))


def _by_place(old: list[Any], new: list[Any], path: str, side: str, found: Matching) -> Iterator[DiffEntry]:
    # Inputs and outputs are compared by position.
    for before, after in zip_longest(old, new):
        same = before is not None and after is not None and found.old(name_of(after)) == name_of(before)
        if same and (isinstance(before, str) or Port.of(before).kind == Port.of(after).kind):
            continue
        removed, added = (
            () if value is None else (f"{side} {value if isinstance(value, str) else Port.of(value)}",)
            for value in (before, after)
        )
        yield DiffEntry(path, f"{side} {name_of(after if before is None else before)}", removed, added)


def name_of(value: Any) -> str:
    """Return the name of an input or output; a function declares only its name."""
    return value if isinstance(value, str) else str(value.name)


def shape_changes(before: Body, after: Body, path: str, found: Matching) -> Iterator[DiffEntry]:
    """Yield the different declared shapes of inner values that both bodies have."""
    declared = {value.name: value for value in getattr(before, "value_info", ())}
    if not declared:
        return
    there = {found.old(name) for node in after.node for name in node.output if name}
    shapes = {found.old(value.name): value for value in getattr(after, "value_info", ())}
    for name, value in declared.items():
        if name not in there:
            continue
        old = f"shape {Port.of(value)}"
        new = shapes.get(name)
        text = None if new is None else f"shape {name}{str(Port.of(new)).removeprefix(new.name)}"
        if text != old:
            yield DiffEntry(path, f"shape {name}", (old,), () if text is None else (text,))
