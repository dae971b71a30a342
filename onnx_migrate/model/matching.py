"""Which node of one body is which node of another: by the values they compute, not by their places."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto

__all__ = ["Matching", "attribute_key", "match_changed", "match_nodes"]

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@dataclass
class Matching:
    """The nodes of two bodies that are the same, by position, and the values that are, by name.

    `renamed` holds the name before of each value that has another name after.
    """

    partner: dict[int, int] = field(default_factory=dict)
    """The position before of a node by its position after."""
    renamed: dict[str, str] = field(default_factory=dict)

    def old(self, name: str) -> str:
        """Return the name that a value of the body after has before."""
        return self.renamed.get(name, name)


def match_nodes(
    before: Sequence[onnx.NodeProto], after: Sequence[onnx.NodeProto], renamed: Mapping[str, str]
) -> Matching:
    """Match the nodes of two bodies, at a cost that is linear in the nodes.

    `renamed` has the new names of values from outside.
    A node of the body after matches the first free node of the body before that fits one of these rules, in this order:

    - It computes a value of the same name with the same operator.
    - It has the same operator and attributes, and reads the same values.
    - It has the same name and operator.
    - It computes a value of the same name.
    """
    matching = Matching(renamed=dict(renamed))
    # A dict keeps the order, and removes a node in constant time.
    free = dict.fromkeys(range(len(before)))
    by_output = {name: index for index, node in enumerate(before) for name in node.output if name}
    for index, node in enumerate(after):
        partner = by_output.get(_first(node), -1)
        if (
            partner in free
            and _kind(before[partner]) == _kind(node)
            and _first(before[partner]) == _first(node)
        ):
            _pair(matching, free, before, node, index, partner)
    # Nodes without a name are found by what they compute.
    by_structure: dict[Hashable, list[int]] = defaultdict(list)
    # Reversed, so that `pop` returns the first free node.
    for index in reversed(free):
        by_structure[_structure(before[index], matching, old=True)].append(index)
    for index, node in enumerate(after):
        if index not in matching.partner:
            same = by_structure.get(_structure(node, matching, old=False))
            if same:
                _pair(matching, free, before, node, index, same.pop())
    # A changed node often keeps its name.
    by_name: dict[Hashable, list[int]] = defaultdict(list)
    for index in reversed(free):
        if before[index].name:
            by_name[(before[index].name, *_kind(before[index]))].append(index)
    for index, node in enumerate(after):
        if index not in matching.partner and node.name:
            named = by_name.get((node.name, *_kind(node)))
            if named:
                _pair(matching, free, before, node, index, named.pop())
    for index, node in enumerate(after):
        if index not in matching.partner:
            partner = by_output.get(_first(node), -1)
            if partner in free:
                _pair(matching, free, before, node, index, partner)
    return matching


def match_changed(
    before: Sequence[onnx.NodeProto],
    after: Sequence[onnx.NodeProto],
    known: Mapping[str, str],
    constants: tuple[Set[str], Set[str]],
) -> Matching:
    """Match the nodes of two sorted bodies with some changed nodes, at a cost that is linear in the nodes.

    The names of the values inside may differ.
    `known` has the names before of values from outside, by their names after. `constants` are the constant values of
    the body before and of the body after. A node matches a node before by one of these rules, in this order:

    - It reads the same values, with the same operator, attributes and constants.
    - It reads the same values with the same operator.
    - It reads the same values, and the operator of the node before is missing after.
    - It has the same operator and name.
    - It has the same operator and one equal value, and the body after has at most as many such nodes as the body before.

    Of several nodes before, the one of the same name matches, or else the first.
    """
    matching = Matching(renamed=dict(known))
    free = dict.fromkeys(range(len(before)))
    by_key: dict[Hashable, list[int]] = defaultdict(list)
    for index, node in enumerate(before):
        # A node may fit by several keys, and the strongest key comes first.
        for key in _keys(node, {}, constants[0], old=True):
            by_key[key].append(index)
    missing = Counter(map(_kind, before))
    # An operator that is missing after was replaced, so its node may match another operator.
    missing.subtract(map(_kind, after))
    by_output = {name: index for index, node in enumerate(before) for name in node.output if name}
    for index, node in enumerate(after):
        # Of several equal candidates, the one of the same name is the likeliest.
        named, kind = by_output.get(_first(node), -1), _kind(node)
        for rank, key in enumerate(_keys(node, matching.renamed, constants[1], old=False)):
            candidates = by_key.get(key, [])
            # Nodes that an earlier rule matched leave the lists as they come to the front.
            while candidates and candidates[0] not in free:
                candidates.pop(0)
            same = [
                at
                for at in candidates[:_TRIED]
                # Few candidates are tried, so that the cost stays linear.
                if at in free
                and (rank != 2 or missing[_kind(before[at])] > 0)
                and (rank < 4 or missing[kind] >= 0)
            ]
            if same:
                _pair(matching, free, before, node, index, named if named in same else same[0])
                # Outputs of the same name stand for the same value too.
                matching.renamed.update(
                    (name, name) for name in node.output if name and name not in matching.renamed
                )
                break
    return matching


_TRIED = 16
"""The most nodes with the same inputs to search for one of the same name."""


def _keys(
    node: onnx.NodeProto, renamed: Mapping[str, str], constants: Set[str], *, old: bool
) -> Iterator[Hashable]:
    """Yield the keys of a node, strongest first: the whole node, its operator and inputs, its inputs, its name, one input."""
    read = tuple(
        "" if not name else _CONSTANT if name in constants else name if old else renamed.get(name, f"{name}?")
        for name in node.input
    )
    # The strongest key has the names of constants as well.
    whole = tuple(name if old else renamed.get(name, name) for name in node.input)
    attributes = b"".join(sorted(map(attribute_key, node.attribute)))
    kind = _kind(node)
    yield "all", kind, whole, hashlib.blake2b(attributes, digest_size=16).digest(), len(node.output)
    if set(read) - {"", _CONSTANT}:
        yield "operator", kind, read, len(node.output)
        yield "values", tuple(name for name in read if name not in ("", _CONSTANT)), len(node.output)
    else:  # all that it reads is constant, and says nothing of its place
        yield from ((), ())
    yield "name", kind, len(node.input), _first(node)
    yield from (
        # The weakest key lets a node match by one of the values that it reads.
        ("one value", kind, len(node.input), input_index, name)
        for input_index, name in enumerate(read)
        if name not in ("", _CONSTANT)
    )


_CONSTANT = "\0"


def attribute_key(attribute: AttributeProto) -> bytes:
    """Return bytes that are equal for equal values of an attribute; names of tensors, and graphs, do not count."""
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.ClearField("doc_string")
    if attribute.type == AttributeProto.TENSOR:
        copy.t.ClearField("name")
    if attribute.type in _GRAPHS:
        copy.ClearField("g")
        copy.ClearField("graphs")
    return bytes(copy.SerializeToString(deterministic=True))


def _pair(
    found: Matching,
    free: dict[int, None],
    before: Sequence[onnx.NodeProto],
    node: onnx.NodeProto,
    place: int,
    partner: int,
) -> None:
    found.partner[place] = partner
    # Each node has one partner.
    del free[partner]
    for old, new in zip(before[partner].output, node.output, strict=False):
        # The name of the value changed, and readers must follow.
        if old and new and old != new:
            found.renamed[new] = old


def _structure(node: onnx.NodeProto, found: Matching, *, old: bool) -> Hashable:
    """Return a node's operator, attributes, and the values it reads by their names before."""
    inputs = tuple(node.input) if old else tuple(map(found.old, node.input))
    attributes = b"".join(sorted(map(attribute_key, node.attribute)))
    digest = hashlib.blake2b(attributes, digest_size=16).digest() if len(attributes) > 64 else attributes
    return *_kind(node), inputs, digest, len(node.output)


def _kind(node: onnx.NodeProto) -> tuple[str, str]:
    return "" if node.domain == "ai.onnx" else node.domain, node.op_type


def _first(node: onnx.NodeProto) -> str:
    return next((name for name in node.output if name), "")
