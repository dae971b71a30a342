"""The entries of a diff: the differences between the nodes of two bodies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import AttributeProto

from onnx_migrate.json_form import selects
from onnx_migrate.model.matching import Matching, attribute_key
from onnx_migrate.model.weights import Weights
from onnx_migrate.report.tensor_text import same_tensor, tensor_text
from onnx_migrate.rewrite.change_log import attribute_text
from onnx_migrate.rewrite.operator_counts import operator_name

__all__ = ["DIFF_KINDS", "DiffEntry", "NodeDiff", "WeightsOf", "changed_lines", "node_changes"]

WeightsOf = tuple[Weights | None, Weights | None]
"""The large weights of the two models; without them, a diff compares only types and shapes of these weights."""

DIFF_KINDS = ("model", "input", "output", "node", "weight", "shape")
"""The kinds of things that differ, in the order of a summary."""


@dataclass(frozen=True)
class DiffEntry:
    """One difference: its body, its subject, and the lines removed and added; `title` heads them, if not ""."""

    body: str
    subject: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    title: str = ""

    @property
    def differs(self) -> bool:
        """Whether more than names differ."""
        return bool(self.removed or self.added)

    @property
    def change(self) -> str:
        """Whether the subject was "changed", "removed" or "added"."""
        return "changed" if self.removed and self.added else "removed" if self.removed else "added"

    @property
    def kind(self) -> str:
        """The kind of the subject, one of `DIFF_KINDS`; "model" stands for everything else."""
        word = self.subject.split(" ")[0]
        return word if word in DIFF_KINDS else "model"

    @property
    def name(self) -> str:
        """The name of the subject, without its kind."""
        return self.subject.removeprefix(f"{self.kind} ")

    def lines(self) -> Iterator[str]:
        """Yield the lines of a diff: the title after a space, each attribute's old value before its new one."""
        if self.title:
            yield f" {self.title}"
        new = {text.split(" ")[0]: text for text in self.added} if self.title else {}
        for text in self.removed:
            yield f"-{text}" if not self.title else f"-  {text}"
            if self.title and text.split(" ")[0] in new:
                yield f"+  {new.pop(text.split(' ')[0])}"
        for text in new.values() if self.title else self.added:
            yield f"+  {text}" if self.title else f"+{text}"


selects(DiffEntry, "body subject title removed added")


@dataclass(frozen=True)
class NodeDiff:
    """The difference of a node: the node before and after, None if the other model does not have it, and its entry."""

    before: onnx.NodeProto | None
    after: onnx.NodeProto | None
    entry: DiffEntry


def changed_lines(body: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[DiffEntry]:
    """Yield an entry for each key whose text changed, was removed or was added."""
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            removed, added = ((side[key],) if key in side else () for side in (old, new))
            yield DiffEntry(body, key, removed, added)


def node_changes(
    old: list[onnx.NodeProto], new: list[onnx.NodeProto], path: str, found: Matching, weights: WeightsOf
) -> Iterator[NodeDiff]:
    """Yield the nodes that were removed, added or changed; removed nodes come before those that replace them."""
    # All others were removed.
    matched = set(found.partner.values())
    gone = [index for index in range(len(old)) if index not in matched]
    shown_count, pending = 0, []
    for index, node in enumerate(new):
        partner = found.partner.get(index)
        if partner is None:
            text = _node(node, weights[1])
            pending.append(NodeDiff(None, node, DiffEntry(path, f"node {_label(node)}", (), (text,))))
            continue
        while shown_count < len(gone) and gone[shown_count] < partner:
            yield _removed(old[gone[shown_count]], path, weights[0])
            shown_count += 1
        yield from pending
        pending = []
        for entry in _node_changes(old[partner], node, path, found, weights):
            yield NodeDiff(old[partner], node, entry)
    for rest in gone[shown_count:]:
        yield _removed(old[rest], path, weights[0])
    yield from pending


def _removed(node: onnx.NodeProto, path: str, weights: Weights | None) -> NodeDiff:
    return NodeDiff(node, None, DiffEntry(path, f"node {_label(node)}", (_node(node, weights),)))


def _node_changes(
    old: onnx.NodeProto, new: onnx.NodeProto, path: str, found: Matching, weights: WeightsOf
) -> Iterator[DiffEntry]:
    """Yield the changes of a node: the whole node if its operator changed, else its inputs and attributes."""
    subject = f"node {_label(old)}"
    if _operator(old) != _operator(new):
        yield DiffEntry(path, subject, (_node(old, weights[0]),), (_node(new, weights[1]),))
        return
    removed, added = [], []
    # Names of the second model are translated to those of the first.
    if list(old.input) != [found.old(name) for name in new.input]:
        removed.append(f"inputs ({_list(old.input)})")
        added.append(f"inputs ({_list(new.input)})")
    if len(old.output) != len(new.output):
        removed.append(f"outputs ({_list(old.output)})")
        added.append(f"outputs ({_list(new.output)})")
    before = {attribute.name: attribute for attribute in old.attribute}
    after = {attribute.name: attribute for attribute in new.attribute}
    for name in sorted({*before, *after}):
        pair = before.get(name), after.get(name)
        # Large attributes are compared without texts.
        if pair[0] is not None and pair[1] is not None and _same_attribute(pair[0], pair[1], weights):
            continue
        texts = [
            None if attribute is None else _value(attribute, side)
            for attribute, side in zip(pair, weights, strict=True)
        ]
        if texts[0] == texts[1]:  # the texts omit the difference, for example at the end of a long list
            texts = [f"{text} #{_digest(attribute)}" for text, attribute in zip(texts, pair, strict=True)]
        removed += [f"{name} = {texts[0]}"] if name in before else []
        added += [f"{name} = {texts[1]}"] if name in after else []
    if removed or added:
        name = f" {old.name!r}" if old.name else ""
        title = f"{_list(old.output)} = {_operator(old)}{name}"
        yield DiffEntry(path, subject, tuple(removed), tuple(added), title)


def _digest(attribute: AttributeProto | None) -> str:
    return "" if attribute is None else hashlib.blake2b(attribute_key(attribute), digest_size=4).hexdigest()


def _same_attribute(one: AttributeProto, other: AttributeProto, weights: WeightsOf) -> bool:
    if one.type == other.type == AttributeProto.TENSOR:
        return same_tensor(one.t, other.t, weights)
    return attribute_key(one) == attribute_key(other)


def _node(node: onnx.NodeProto, weights: Weights | None) -> str:
    attributes = ", ".join(
        f"{item.name} = {_value(item, weights)}"
        for item in sorted(node.attribute, key=lambda item: item.name)
    )
    return f"{_list(node.output)} = {_operator(node)}{f' <{attributes}>' if attributes else ''} ({_list(node.input)})"


def _value(attribute: AttributeProto, weights: Weights | None) -> str:
    is_tensor = attribute.type == AttributeProto.TENSOR and not attribute.ref_attr_name
    return tensor_text(attribute.t, weights) if is_tensor else attribute_text(attribute)


def _operator(node: onnx.NodeProto) -> str:
    return operator_name(node.domain, node.op_type)


def _label(node: onnx.NodeProto) -> str:
    return next((name for name in node.output if name), node.name)


def _list(names: Iterable[str]) -> str:
    return ", ".join(name or '""' for name in names)
