"""Inputs of a model that are the mask of an attention beside the keys of the past, so that their lengths hang together."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.model.graphs import fed_inputs, nested_nodes, producers
from onnx_migrate.standard.schema import is_onnx

__all__ = ["attention_masks"]

_PLACES = {
    ("", "Attention"): (3, 4, 2),
    ("com.microsoft", "Attention"): (5, 4, 3),
    ("com.microsoft", "GroupQueryAttention"): (10, 3, 2),
    ("com.microsoft", "MultiHeadAttention"): (5, 6, 2),
}
"""For each operator, its inputs with the mask and with the keys of the past, and the axis of these keys."""

_PASSING = ("Cast", "Identity", "Unsqueeze")
"""Operators that keep the last two axes of a mask."""


def attention_masks(model: onnx.ModelProto) -> Iterator[tuple[str, str, int]]:
    """Yield the input with the mask of an attention, the one with the keys of the past, and the axis of these, each once."""
    fed = {value.name for value in fed_inputs(model.graph)}
    makers = producers(model.graph)
    seen: set[tuple[str, str, int]] = set()
    for node in nested_nodes(model.graph.node):
        mask, past, axis = _PLACES.get(("" if is_onnx(node.domain) else node.domain, node.op_type), (0, 0, 0))
        if not axis or len(node.input) <= max(mask, past):
            continue
        names = [_source(node.input[input_index], makers) for input_index in (mask, past)]
        mask_inputs = (names[0], names[1], axis)
        if fed.issuperset(names) and mask_inputs not in seen:
            seen.add(mask_inputs)
            yield mask_inputs


def _source(name: str, makers: dict[str, onnx.NodeProto]) -> str:
    """Return the value that a mask is, before its type or its leading axes were changed."""
    seen: set[str] = set()
    # An invalid model may have a cycle, which `seen` ends.
    while name in makers and makers[name].op_type in _PASSING and name not in seen:
        seen.add(name)
        name = makers[name].input[0]
    return name
