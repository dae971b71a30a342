"""Folds a graph into few boxes: runs of consecutive nodes of one scope become one, which has a drawing of its own.

Nodes of a body stand in an order in which each reads those before it. A box is a run of consecutive nodes, so that the boxes
have such an order too: no two boxes read each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from onnx_migrate.messages import first_of
from onnx_migrate.report.body_view import ViewedNode

__all__ = ["Fold", "folded", "scope_of"]

_KEPT = 40
"""Up to so many changed nodes, each has a box of its own. Further ones are counted in the boxes of their scopes."""

_FEW = 6
"""Minimum number of boxes: if scopes fold a large graph into fewer boxes, it is folded into runs of equal length."""

_SHORTEST = 6
"""Minimum number of nodes in a run without scopes: shorter runs would give as many boxes with less content."""

_DEEPEST = 12
"""Maximum number of a scope's parts that are compared."""

_SEPARATOR = re.compile(r"[/:]+")


@dataclass(frozen=True)
class Fold:
    """A box of a drawing: the positions of the nodes that it stands for, and a label; a single node needs none."""

    members: tuple[int, ...]
    label: str = ""


def scope_of(name: str) -> tuple[str, ...]:
    """Return the scope in a node's name, as exporters write it: ("model", "conv1") of "/model/conv1/Conv"."""
    return tuple(filter(None, _SEPARATOR.split(name)))[:-1][:_DEEPEST]


def folded(nodes: Sequence[ViewedNode], members: Sequence[int], most: int) -> list[Fold]:
    """Return at most about `most` boxes for these nodes, in order: by scopes, or runs of equal length where there are none."""
    if len(members) <= most:
        return [Fold((index,)) for index in members]
    kept_nodes = _apart(nodes, members, most)
    scopes = dict(_scopes(nodes, members))
    for depth in range(_DEEPEST, 0, -1):
        runs = [list(run) for run in _runs(members, scopes, kept_nodes, depth)]
        if len(runs) <= most and len(runs) - len(kept_nodes) >= _FEW:
            break
    else:
        runs, depth = [list(run) for run in _runs(members, {}, kept_nodes, 0)], 0
    long = [run for run in runs if len(run) > 1 and not scopes[run[0]][:depth]]
    room = max(_FEW, most - len(runs))
    length = max(_SHORTEST, -(-sum(map(len, long)) // room))
    folds = list[Fold]()
    for run in runs:
        size = length if run in long else len(run)
        pieces = (run[start : start + size] for start in range(0, len(run), size))
        folds += [Fold(tuple(piece), _label(nodes, piece, scopes, depth)) for piece in pieces]
    return folds


def _scopes(nodes: Sequence[ViewedNode], members: Iterable[int]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the scope of each node: the layer that its exporter recorded, or else the scope in its name.

    If the exporter recorded layers, a node without any belongs to the layer of the node before it: a pass has added it.
    """
    layer: tuple[str, ...] = ()
    for index in members:
        layer = nodes[index].layer[:_DEEPEST] or layer
        yield index, nodes[index].layer[:_DEEPEST] or scope_of(nodes[index].name) or layer


def _apart(nodes: Sequence[ViewedNode], members: Sequence[int], most: int) -> set[int]:
    """Return the nodes that have a box of their own: inputs, outputs and changed nodes, where these are few."""
    ports = {index for index in members if nodes[index].operator in ("input", "output")}
    changed = {index for index in members if nodes[index].change is not None}
    both = ports | changed if len(changed) <= _KEPT else ports
    return both if len(both) <= most // 2 else set()


def _runs(
    members: Iterable[int], scopes: Mapping[int, tuple[str, ...]], kept: set[int], depth: int
) -> Iterator[Iterator[int]]:
    """Yield runs of consecutive nodes whose scopes are equal up to a depth; each node that is kept is a run."""

    def key(place: int) -> object:
        return place if place in kept else scopes.get(place, ())[:depth]

    for _, run in groupby(members, key):
        yield run


def _label(
    nodes: Sequence[ViewedNode], run: Sequence[int], scopes: Mapping[int, tuple[str, ...]], depth: int
) -> str:
    """Return the scope of a run, its first and last one where there are several, or else its operators."""
    if len(run) == 1:
        return ""
    if depth:
        return "/".join(scopes[run[0]][:depth][-2:]) or _operators(nodes, run)
    first, last = scopes[run[0]], scopes[run[-1]]
    differing = next((pair for pair in zip(first, last, strict=False) if pair[0] != pair[1]), None)
    if differing is None:
        return "/".join(first[-2:]) or _operators(nodes, run)
    return " … ".join(differing)


def _operators(nodes: Sequence[ViewedNode], run: Iterable[int]) -> str:
    """Return the most frequent operators of a run."""
    counts = Counter(nodes[index].operator for index in run)
    return first_of([operator for operator, _ in counts.most_common()], 2)
