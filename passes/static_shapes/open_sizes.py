"""The nodes whose output sizes depend on data: they have an open output and no open input. Each has a bound for the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

import onnx

from onnx_migrate.advice import untried
from onnx_migrate.errors import Where
from onnx_migrate.facts.node_inference import inference_refusal
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.model.graphs import names_read, node_label, subgraphs
from onnx_migrate.standard.schema import is_onnx

__all__ = ["OpenSize", "is_open", "open_sizes"]

_SIZED_BY = {
    "ConstantOfShape": 0, "Expand": 1, "MaxUnpool": 2, "OneHot": 1, "Pad": 1, "Reshape": 1, "Resize": 3, "Slice": 1,
    "Split": 1, "Tile": 1, "TopK": 1, "Upsample": 1, "AffineGrid": 1, "CenterCropPad": 1,
}  # fmt: skip
"""Operators with the first input that holds the size of their output; later inputs may hold it too."""


@dataclass(frozen=True)
class OpenSize:
    """A node whose output has no fixed shape although its inputs have, and the value that would bound it."""

    where: Where
    bound: str

    @property
    def text(self) -> str:
        """Return the node and its bound, as a part of a sentence."""
        return f"{self.where.operator} {self.where.node!r} ({self.bound})"


def is_open(known: ValueType) -> bool:
    """Return whether a tensor has a dim that is not known; sequences and optionals have none."""
    return not known.container and (known.shape is None or None in known.shape)


def open_sizes(scope: Scope, opset: int) -> Iterator[OpenSize]:
    """Yield the nodes of a body and of the branches in it at which sizes become open; `opset` is that of ai.onnx."""
    for index, node in enumerate(scope.body.node):
        # A node that reads open sizes is no origin of them.
        if any(name and is_open(scope.value_type(name)) for name in names_read(node)):
            continue
        inner = [scope.inner(node, index, *subgraph) for subgraph in subgraphs(node)]
        inside = (
            [open_size for each in inner for open_size in open_sizes(each, opset)]
            if node.op_type == "If"
            else []
        )
        yield from inside
        if not inside and any(name and is_open(scope.value_type(name)) for name in node.output):
            yield OpenSize(Where(scope.path, node_label(node), node.op_type), _bound(node, scope, opset))


def _bound(node: onnx.NodeProto, scope: Scope, opset: int) -> str:
    """Return the bound on the size of a node's output, if it follows from the inputs."""
    if not is_onnx(node.domain):
        return f"onnx infers nothing for the domain {node.domain}; {_STANDARD}"
    shape = scope.value_type(node.input[0]).shape if node.input and node.input[0] else None
    elements = prod(size or 0 for size in shape) if shape is not None else None
    # For these operators the bound is known.
    rule = _BOUNDS.get(node.op_type)
    if rule is not None:
        return rule(node, scope, shape, elements)
    at = _SIZED_BY.get(node.op_type)
    if at is not None:
        # A constant size would not be open.
        computed = [name for name in node.input[at:] if name and scope.constant_source(name) is None]
        if computed:
            return f"its size is {computed[0]!r}, which is computed; a constant there bounds it"
    refused = inference_refusal(scope, node, opset)
    if refused is not None:
        return f"at these sizes the node {refused}"
    return "onnx infers no shape for it; a declaration in value_info does"


def _non_zero(_: onnx.NodeProto, __: Scope, ___: object, elements: int | None) -> str:
    return f"at most {elements:,} columns; a TopK of a fixed count, or Where in place of indices, bounds it"


def _entries(node: onnx.NodeProto, _: Scope, shape: tuple[int, ...], elements: int) -> str:
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), None)
    most = elements if axis is None else shape[axis]
    ways = "a Pad to that many, or sorting by TopK"
    if node.op_type == "Compress":
        ways = "Where, or a TopK of the condition with a fixed count"
    return f"at most {most:,} entries; {ways}, bounds it"


def _suppression(node: onnx.NodeProto, scope: Scope, shape: tuple[int, ...], _: object) -> str:
    scores = scope.value_type(node.input[1]).shape or (0, 0, 0)
    limit = scope.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    each = min(int(limit.item()), shape[1]) if limit is not None and limit.size == 1 else shape[1]
    rows = prod(size or 0 for size in scores[:2]) * each
    return (
        f"at most {rows:,} rows, {each:,} for each class and image. To limit it, put a TopK of a fixed count in front, and"
        " do the suppression outside the model"
    )


def _range(node: onnx.NodeProto, scope: Scope, *_: object) -> str:
    names = [name for name in node.input if scope.constant(name) is None]
    return f"{' and '.join(map(repr, names))} {'is' if len(names) == 1 else 'are'} computed; a constant bounds it"


def _loop(node: onnx.NodeProto, scope: Scope, *_: object) -> str:
    count = scope.constant(node.input[0]) if node.input and node.input[0] else None
    if count is not None and count.size == 1:
        return f"it stops by its condition, after at most {int(count.item()):,} turns, or its states change their shapes"
    return "its number of turns depends on data; a constant count, and a condition that stays true, bounds it"


_STANDARD = untried("--to-onnx-ops writes what is known of it with ai.onnx")

_BOUNDS: dict[str, Callable[..., str]] = {
    "Compress": _entries,
    "Loop": _loop,
    "NonMaxSuppression": _suppression,
    "NonZero": _non_zero,
    "Range": _range,
    "Unique": _entries,
}
