"""Finds reasons for a difference in a region: another operator, attribute, weight, order of inputs or element type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.array_difference import array_difference
from onnx_migrate.model.graphs import node_label, producers
from onnx_migrate.verify.equivalence.unlike_nodes import Unlike
from onnx_migrate.verify.kernel.arrays import Array

from .agreement import Agreement
from .folds import Linear, linear_of
from .node_settings import kind_of, kinds_of, settings_of
from .records import Recorded
from .regions import Region

__all__ = ["Reason", "nodes_of", "reasons_of"]

_SCALES = frozenset({"Add", "BatchNormalization", "Div", "Mul", "Sub"})
"""Operators that simplifiers fold into the weight before them."""

_HANDED_ON = frozenset(
    {"Cast", "Constant", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
)
"""Operators that simplifiers add and remove, because they only pass on numbers."""


@dataclass(frozen=True)
class Reason:
    """One difference, as a sentence, and the nodes that it is about; None for a node that a model lacks."""

    text: str
    original: onnx.NodeProto | None = None
    other: onnx.NodeProto | None = None


def nodes_of(side: Recorded, values: Sequence[str]) -> list[onnx.NodeProto]:
    """Return the nodes that compute some values, in their order."""
    unique_nodes = {id(node): node for node in map(side.maker, values)}
    return list(unique_nodes.values())


def reasons_of(agreement: Agreement, region: Region) -> list[Reason]:
    """Return the differences between the nodes of a region, the most certain first; none if nothing is found."""
    sides = agreement.original, agreement.other
    ours = nodes_of(agreement.original, region.original)
    theirs = nodes_of(agreement.other, region.other)
    folded = [linear_of(nodes, side) for nodes, side in zip((ours, theirs), sides, strict=True)]
    pairs = list(_pairs(ours, theirs))
    products: tuple[Linear, Linear] | None = None
    # Two plain products are compared setting by setting.
    if folded[0] is not None and folded[1] is not None and len(folded[0].nodes) + len(folded[1].nodes) > 2:
        products = folded[0], folded[1]
    reasons = list(_operators(agreement, region, is_folded=products is not None))
    if products is not None:
        reasons += _folded_weights(*products)
    # The folded weights stand for the settings of these nodes, so those are not compared.
    inside = {id(node) for linear in products or () for node in linear.nodes}
    for our_node, their_node in pairs:
        if id(our_node) not in inside or id(their_node) not in inside:
            reasons += _settings(our_node, their_node, sides)
        reasons += _inputs(our_node, their_node, agreement)
        reasons += _bodies(our_node, their_node, agreement)
    return [*reasons, *_element_type(agreement, region)]


def _pairs(
    ours: Sequence[onnx.NodeProto], theirs: Sequence[onnx.NodeProto]
) -> Iterator[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Yield pairs of nodes of the same kind, in their order, if both models have the same number of them."""
    for kind in dict.fromkeys(map(kind_of, ours)):
        our_nodes = [node for node in ours if kind_of(node) == kind]
        their_nodes = [node for node in theirs if kind_of(node) == kind]
        if len(our_nodes) == len(their_nodes):
            yield from zip(our_nodes, their_nodes, strict=True)


def _operators(agreement: Agreement, region: Region, *, is_folded: bool) -> Iterator[Reason]:
    """Yield which operators one model has here and the other has not, fused ones counted as those they stand for.

    If scales and shifts may be folded into a weight, they do not count. Neither do Transposes between two layouts, nor nodes that
    compute shapes.
    """
    ours, theirs = (
        # Shape computations may differ without changing the numbers.
        [node for node in nodes_of(side, values) if not _computes_shape(node, side, values[-1])]
        for side, values in ((agreement.original, region.original), (agreement.other, region.other))
    )
    if not ours or not theirs:
        return
    ignored = _HANDED_ON | (_SCALES if is_folded else frozenset())
    read = (agreement.partners.get(name) for node in theirs for name in node.input)
    if any(name in agreement.original.layouts for name in read):
        ignored |= {"Transpose"}
    our_kinds, their_kinds = (
        {kind: node for node in nodes for kind in kinds_of(node) if kind not in ignored}
        for nodes in (ours, theirs)
    )
    counts = [Counter(kind for node in nodes for kind in kinds_of(node)) for nodes in (ours, theirs)]
    missing, more = (sorted((a - b).keys() - ignored) for a, b in (counts, counts[::-1]))
    # One operator on each side is probably a replacement.
    if len(missing) == len(more) == 1:
        text = f"{missing[0]} in the original, {more[0]} in the second model"
        yield Reason(text, our_kinds[missing[0]], their_kinds[more[0]])
    elif missing and not more:
        yield Reason(f"the second model has no {listed(missing)} here", our_kinds[missing[0]], theirs[-1])
    elif more and not missing:
        yield Reason(f"the original has no {listed(more)} here", ours[-1], their_kinds[more[0]])


def _computes_shape(node: onnx.NodeProto, side: Recorded, end: str) -> bool:
    """Return whether a node computes integers in a region that ends with floats."""
    sample, last = side.samples.get(node.output[0]), side.samples.get(end)
    return sample is not None and last is not None and sample.kind != "f" and last.kind == "f"


def _settings(one: onnx.NodeProto, two: onnx.NodeProto, sides: tuple[Recorded, Recorded]) -> Iterator[Reason]:
    """Yield the attributes and constants of two nodes of one kind that differ."""
    first, second = settings_of(one, sides[0]), settings_of(two, sides[1])
    for name in sorted(first.attributes.keys() & second.attributes.keys()):
        ours, theirs = first.attributes[name], second.attributes[name]
        if ours != theirs:
            yield Reason(f"{name}: {_text(ours)} → {_text(theirs)}", one, two)
    for name in (name for name in first.constants if name in second.constants):
        (label, array), (other_label, other) = first.constants[name], second.constants[name]
        text = array_difference(f"{_noun(array)} {label!r}", array, other)
        if text:
            producing_nodes = sides[0].producers.get(label), sides[1].producers.get(other_label)
            yield from _of_makers(*producing_nodes, sides) or [Reason(text, one, two)]
    # A later version of an operator has an input in place of an attribute.
    for name, (_, array) in second.constants.items():
        if name in first.attributes and _unlike(first.attributes[name], array):
            yield Reason(f"{name}: {_text(first.attributes[name])} → {_text(array.tolist())}", one, two)
    for name, (_, array) in first.constants.items():
        if name in second.attributes and _unlike(second.attributes[name], array):
            yield Reason(f"{name}: {_text(array.tolist())} → {_text(second.attributes[name])}", one, two)


def _unlike(attribute: Any, constant: Array) -> bool:
    """Return whether an attribute of numbers and a constant have other numbers."""
    numbers = np.asarray(attribute)
    if numbers.dtype.kind not in "fiub" or constant.dtype.kind not in "fiub":
        return False
    return numbers.size != constant.size or not np.allclose(numbers.reshape(-1), constant.reshape(-1))


def _of_makers(
    one: onnx.NodeProto | None, two: onnx.NodeProto | None, sides: tuple[Recorded, Recorded]
) -> list[Reason]:
    """Return the differences of the nodes that compute two constants from others; none if one constant is stored directly."""
    if one is None or two is None or kind_of(one) != kind_of(two) or one.op_type == "Constant":
        return []
    return list(_settings(one, two, sides))


def _noun(array: Array) -> str:
    return "weight" if array.dtype.kind in "fV" and array.size > 1 else "constant"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)[:80]


def _folded_weights(one: Linear, two: Linear) -> Iterator[Reason]:
    """Yield the differences of a weight and a bias after the nodes behind them are folded in."""
    names = listed(
        [f"{node.op_type} {node_label(node)!r}" for node in (one if len(one.nodes) > 1 else two).nodes[1:]]
    )
    node = one.nodes[0]
    if one.weight.shape != two.weight.shape:
        return
    label = f"weight {one.name!r} with {names} folded in"
    channels = _whole_channels(one.weight, two.weight)
    if channels is not None:
        at, factor = channels
        scaling = next((n for n in one.nodes[1:] if n.op_type not in _HANDED_ON), node)
        yield Reason(
            f"{label} is {factor:.3g} times as large in {count_of(len(at), 'channel')} of {len(one.weight)}, first in"
            f" channel {at[0]}: the scale or variance differs",
            scaling,
            two.nodes[0],
        )
    elif text := array_difference(label, one.weight, two.weight):
        yield Reason(text, node, two.nodes[0])
    if text := array_difference(f"bias with {names} folded in", one.bias, two.bias):
        yield Reason(text, one.nodes[-1], two.nodes[0])


def _whole_channels(one: Array, two: Array) -> tuple[list[int], float] | None:
    """Return the channels that differ, and the factor of the first one; None unless each is scaled as a whole."""
    scaled_channels: list[int] = []
    factor = 1.0
    for channel, (ours, theirs) in enumerate(zip(one, two, strict=True)):
        if not array_difference("", ours, theirs):
            continue
        # Least squares give the factor between two channels.
        square = float((ours * ours).sum())
        scale = float((ours * theirs).sum()) / square if square else 0.0
        if ours.size < 2 or array_difference("", ours * scale, theirs):
            return None
        factor = factor if scaled_channels else scale
        scaled_channels.append(channel)
    return (scaled_channels, factor) if scaled_channels else None


def _inputs(one: onnx.NodeProto, two: onnx.NodeProto, agreement: Agreement) -> Iterator[Reason]:
    """Yield how a node reads values of the original in another order, or others."""
    pairs = [
        (ours, theirs)
        for ours, theirs in zip(one.input, two.input, strict=False)
        if ours in agreement.original.samples and theirs in agreement.other.samples
    ]
    read = [agreement.original.value_of(agreement.partners.get(theirs, "")) for _, theirs in pairs]
    if len(one.input) != len(two.input) or "" in read:
        return
    if any(agreement.error(*pair) > agreement.limit for pair in pairs):
        ours = [ours for ours, _ in pairs]
        text = "the same values in another order" if sorted(ours) == sorted(read) else "other values"
        yield Reason(
            f"{two.op_type} reads {text}: {', '.join(read)}, and {', '.join(ours)} in the original", one, two
        )


def _bodies(one: onnx.NodeProto, two: onnx.NodeProto, agreement: Agreement) -> Iterator[Reason]:
    """Yield the differences inside two nodes that have graphs or call functions."""
    name = agreement.names.get(two.output[0], two.output[0])
    renamed = producers(agreement.renamed.model.graph).get(name, two)
    if text := Unlike(agreement.original.runnable, agreement.renamed).inside(one, renamed):
        yield Reason(text, one, two)


def _element_type(agreement: Agreement, region: Region) -> Iterator[Reason]:
    our_sample = agreement.original.samples.get(region.original[-1])
    their_sample = agreement.other.samples.get(region.other[-1])
    if our_sample is not None and their_sample is not None and our_sample.dtype != their_sample.dtype:
        yield Reason(
            f"the second model computes in {their_sample.dtype} here, and the original in {our_sample.dtype}",
            agreement.original.producers[region.original[-1]],
            agreement.other.producers[region.other[-1]],
        )
