"""Indices, lengths of sequences and labels: integers that the length of another input's axis bounds."""

from __future__ import annotations

from collections.abc import Callable

from onnx import NodeProto

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.ranges import Range

__all__ = ["index_range"]


def index_range(node: NodeProto, index: int, facts: Facts) -> Range | None:
    """Return the range of an input that is an index, or a length, in some axis; None for any other input."""
    rule = _RULES.get((node.op_type, index)) or _CONTRIB.get((node.domain, node.op_type, index))
    return rule(node, facts) if rule is not None else None


def _below(length: int | None) -> Range:
    return Range(0, max(0, length - 1)) if length is not None else Range(0, 1, weak=True)


def _attribute(node: NodeProto, name: str, default: int = 0) -> int:
    return next((a.i for a in node.attribute if a.name == name), default)


def _along_axis(node: NodeProto, facts: Facts) -> Range:
    return _below(facts.length(node.input[0], _attribute(node, "axis")))


def _tuples(node: NodeProto, facts: Facts) -> Range:
    """The last axis of the indices of GatherND and ScatterND holds an index for each of the data's first axes."""
    first = _attribute(node, "batch_dims")
    indices, data = facts.shape(node.input[1]), facts.shape(node.input[0])
    depth = indices[-1] if indices else None
    lengths = data[first : first + depth] if data is not None and depth is not None else ()
    known = [length for length in lengths if length is not None]
    return _below(min(known) if known else facts.length(node.input[0], first))


def _one_hot(node: NodeProto, facts: Facts) -> Range:
    depth = facts.value(node.input[1])
    return Range(0, 7) if depth is None or depth.size != 1 else _below(int(depth.item()))


def _class(node: NodeProto, facts: Facts) -> Range:
    return _below(facts.length(node.input[0], 1))


def _last_axis(node: NodeProto, facts: Facts) -> Range:
    return _below(facts.length(node.input[0], -1))


def _batch(node: NodeProto, facts: Facts) -> Range:
    return _below(facts.length(node.input[0], 0))


def _length_of_sequence(node: NodeProto, facts: Facts) -> Range:
    return Range(1, facts.length(node.input[0], _attribute(node, "time_axis")) or 1)


def _steps(node: NodeProto, facts: Facts) -> Range:
    """Lengths of the sequences of a recurrent operator, whose axis of time is 1 with layout 1."""
    return Range(1, facts.length(node.input[0], _attribute(node, "layout")) or 1)


def _flat_index(node: NodeProto, facts: Facts) -> Range:
    """An index of MaxUnpool is one into the flat output, which is no smaller than the input."""
    shape = facts.static_shape(node.input[0])
    size = 1
    for length in shape or ():
        size *= length
    return _below(size if shape else 1)


def _position(node: NodeProto, facts: Facts) -> Range:
    return _below(facts.length(node.input[1], 0))


def _position_contrib(node: NodeProto, facts: Facts) -> Range:
    """One position counts up from itself over the sequence, so that the last step must be in the table, too."""
    table = facts.length(node.input[2], 0)
    rank = len(facts.shape(node.input[0]) or ())
    steps = facts.length(node.input[0], 1 if rank == 3 else 2) or 1
    return _below(None if table is None else table - steps + 1)


def _keys_without_padding(node: NodeProto, facts: Facts) -> Range:
    rank = len(facts.shape(node.input[1]) or ())
    return Range(1, facts.length(node.input[1], 2 if rank == 4 else 1) or 1)


def _write_index(node: NodeProto, facts: Facts) -> Range:
    axis = _attribute(node, "axis", -2)
    cache, update = facts.length(node.input[0], axis), facts.length(node.input[1], axis)
    return Range(0, max(0, cache - update)) if cache is not None and update is not None else Range(0, 0)


def _first(node: NodeProto, facts: Facts) -> Range:
    return Range(0, 0)


def _in_table(position: int) -> Callable[[NodeProto, Facts], Range]:
    def rule(node: NodeProto, facts: Facts) -> Range:
        return _below(facts.length(node.input[position], 0) if len(node.input) > position else None)

    return rule


def _past_and_current(node: NodeProto, facts: Facts) -> int:
    past = facts.length(node.input[3], 2) if len(node.input) > 3 and node.input[3] else 0
    return (past or 0) + (facts.length(node.input[0], 1) or 1)


def _last_key(node: NodeProto, facts: Facts) -> Range:
    last = _past_and_current(node, facts) - 1
    return Range(last, last)


def _all_keys(node: NodeProto, facts: Facts) -> Range:
    count = _past_and_current(node, facts)
    return Range(count, count)


_Rule = Callable[[NodeProto, Facts], Range]

_RULES: dict[tuple[str, int], _Rule] = {
    ("Gather", 1): _along_axis,
    ("GatherElements", 1): _along_axis,
    ("Scatter", 1): _along_axis,
    ("ScatterElements", 1): _along_axis,
    ("GatherND", 1): _tuples,
    ("ScatterND", 1): _tuples,
    ("OneHot", 0): _one_hot,
    ("NegativeLogLikelihoodLoss", 1): _class,
    ("SoftmaxCrossEntropyLoss", 1): _class,
    ("ArrayFeatureExtractor", 1): _last_axis,
    ("RoiAlign", 2): _batch,
    ("ReverseSequence", 1): _length_of_sequence,
    ("RNN", 4): _steps,
    ("GRU", 4): _steps,
    ("LSTM", 4): _steps,
    ("MaxUnpool", 1): _flat_index,
    ("SequenceAt", 1): _first,
    ("SequenceErase", 1): _first,
    ("SequenceInsert", 2): _first,
    ("TensorScatter", 2): _write_index,
}

_CONTRIB: dict[tuple[str, str, int], _Rule] = {
    ("", "Attention", 6): _keys_without_padding,
    ("", "RotaryEmbedding", 3): _position,
    ("com.microsoft", "RotaryEmbedding", 1): _position_contrib,
    ("com.microsoft", "EmbedLayerNormalization", 0): _in_table(2),
    ("com.microsoft", "EmbedLayerNormalization", 1): _in_table(4),
    ("com.microsoft", "GroupQueryAttention", 5): _last_key,
    ("com.microsoft", "GroupQueryAttention", 6): _all_keys,
}
"""Operators whose meaning depends on the domain."""
