"""Indices, lengths of sequences and labels: integers that the length of another input's axis bounds."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from onnx_migrate.verify.inputs.constraints.facts import Argument
from onnx_migrate.verify.inputs.constraints.ranges import Range

__all__ = ["Rule", "fixed", "index_range"]

Rule = Callable[[Argument], Range | None]


def index_range(argument: Argument) -> Range | None:
    """Return the range of an input that is an index, or a length, in some axis; None for any other input."""
    node = argument.node
    rule = _RULES.get((node.op_type, argument.index))
    rule = rule or _BY_DOMAIN.get((node.domain, node.op_type, argument.index))
    return rule(argument) if rule is not None else None


def fixed(low: float, high: float) -> Rule:
    """Return the rule of an input that has the same range whatever the others are."""
    return lambda argument: Range(low, high)


def _below(length: int | None) -> Range:
    return Range(0, max(0, length - 1)) if length is not None else Range(0, 1, weak=True)


def _into(position: int, axis: int) -> Rule:
    """Return the rule for an index into an axis of the input at `position`."""
    return lambda argument: _below(argument.length(position, axis))


def _up_to_length(axis: str) -> Rule:
    """The length of a sequence of the first input, whose axis of time an attribute names."""
    return lambda argument: Range(1, argument.length(0, argument.attribute(axis, 0)) or 1)


def _along(axis: str) -> Rule:
    """An index into an axis of the first input, which an attribute names."""
    return lambda argument: _below(argument.length(0, argument.attribute(axis, 0)))


def _tuples(argument: Argument) -> Range:
    """The last axis of the indices of GatherND and ScatterND holds an index for each of the data's first axes."""
    first = argument.attribute("batch_dims", 0)
    depth = argument.length(1, -1) or 0
    lengths = [argument.length(0, axis) for axis in range(first, min(first + depth, argument.rank()))]
    # An index must be valid in each of the axes, so the shortest one decides.
    known_lengths = [length for length in lengths if length is not None]
    return _below(min(known_lengths) if known_lengths else argument.length(0, first))


def _one_hot(argument: Argument) -> Range:
    depth = argument.facts.value(argument.node.input[1])
    return Range(0, 7) if depth is None or depth.size != 1 else _below(int(depth.item()))


def _flat_index(argument: Argument) -> Range:
    """An index of MaxUnpool is one into the flat output, which is no smaller than the input."""
    return _below(prod(argument.shape() or (1,)))


def _position_contrib(argument: Argument) -> Range:
    """One position counts up from itself over the sequence, so that the last step must be in the table, too."""
    table, steps = argument.length(2, 0), argument.length(0, 1 if argument.rank() == 3 else 2) or 1
    return _below(None if table is None else table - steps + 1)


def _keys_without_padding(argument: Argument) -> Range:
    return Range(1, argument.length(1, 2 if argument.rank(1) == 4 else 1) or 1)


def _write_index(argument: Argument) -> Range:
    axis = argument.attribute("axis", -2)
    cache, update = argument.length(0, axis), argument.length(1, axis)
    return Range(0, max(0, cache - update)) if cache is not None and update is not None else Range(0, 0)


def _past_in_buffer(argument: Argument) -> Range:
    """Return the range of the number of past rows in a buffer, so that the rows of the query fit behind them."""
    room = argument.length(6, 2)
    return _below(None if room is None else room - (argument.length(0, 1) or 1) + 1)


def _past_and_current(less: int) -> Rule:
    """Return the number of keys in GroupQueryAttention, minus `less`."""

    def rule(argument: Argument) -> Range:
        count = (argument.length(3, 2) or 0) + (argument.length(0, 1) or 1) - less
        return Range(count, count)

    return rule


def _seen_keys(keys: int, past: int, axis: int) -> Rule:
    """The mask of an attention of ONNX Runtime: 0 and 1, or numbers of keys, or their ends and their starts."""

    def rule(argument: Argument) -> Range:
        shape = argument.shape(argument.index)
        if shape is None or len(shape) != 1:
            return Range(0, 1)
        new = argument.length(keys, 2 if argument.rank(keys) == 4 else 1) or 1
        total = new + (argument.length(past, axis) or 0)
        batch = argument.length(0, 0)
        # One vector may hold the ends and then the starts.
        if batch is not None and shape[0] == 2 * batch:
            return Range.exactly(*[total] * batch, *[0] * batch)
        return Range(1, total)

    return rule


_RULES: dict[tuple[str, int], Rule] = {
    ("Gather", 1): _along("axis"),
    ("GatherElements", 1): _along("axis"),
    ("Scatter", 1): _along("axis"),
    ("ScatterElements", 1): _along("axis"),
    ("GatherND", 1): _tuples,
    ("ScatterND", 1): _tuples,
    ("OneHot", 0): _one_hot,
    ("NegativeLogLikelihoodLoss", 1): _into(0, 1),
    ("SoftmaxCrossEntropyLoss", 1): _into(0, 1),
    ("ArrayFeatureExtractor", 1): _into(0, -1),
    ("RoiAlign", 2): _into(0, 0),
    ("ReverseSequence", 1): _up_to_length("time_axis"),
    ("RNN", 4): _up_to_length("layout"),
    ("GRU", 4): _up_to_length("layout"),
    ("LSTM", 4): _up_to_length("layout"),
    ("MaxUnpool", 1): _flat_index,
    ("SequenceAt", 1): fixed(0, 0),
    ("SequenceErase", 1): fixed(0, 0),
    ("SequenceInsert", 2): fixed(0, 0),
    ("TensorScatter", 2): _write_index,
}

_BY_DOMAIN: dict[tuple[str, str, int], Rule] = {
    ("", "Attention", 6): _keys_without_padding,
    ("", "RotaryEmbedding", 3): _into(1, 0),
    ("com.microsoft", "RotaryEmbedding", 1): _position_contrib,
    ("com.microsoft", "EmbedLayerNormalization", 0): _into(2, 0),
    ("com.microsoft", "EmbedLayerNormalization", 1): _into(4, 0),
    ("com.microsoft", "Attention", 3): _seen_keys(0, 4, 3),
    ("com.microsoft", "QAttention", 5): _seen_keys(0, 8, 3),
    ("com.microsoft", "MultiHeadAttention", 4): _seen_keys(1, 6, 2),
    ("com.microsoft", "EmbedLayerNormalization", 7): fixed(0, 1),
    ("com.microsoft", "EmbedLayerNormalization", 8): _into(3, 0),
    ("com.microsoft", "GatherBlockQuantized", 1): _along("gather_axis"),
    ("com.microsoft", "GroupQueryAttention", 5): _past_and_current(1),
    ("com.microsoft", "GroupQueryAttention", 6): _past_and_current(0),
    ("com.microsoft", "GroupQueryAttention", 9): _into(7, 0),
    ("com.microsoft", "DecoderMaskedMultiHeadAttention", 7): _into(5, 2),
    ("com.microsoft", "DecoderMaskedMultiHeadAttention", 9): _into(9, 1),
    ("com.microsoft", "MultiHeadAttention", 8): _past_in_buffer,
    ("com.microsoft", "MultiHeadAttention", 9): _into(9, 1),
    ("com.microsoft", "CropAndResize", 2): _into(0, 0),
    ("com.microsoft", "MRotaryEmbedding", 1): _into(2, 0),
}
"""Operators whose meaning depends on the domain."""
