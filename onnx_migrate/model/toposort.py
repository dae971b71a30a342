"""Topological order of a body's nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import onnx

from onnx_migrate.errors import InvalidModel, Where
from onnx_migrate.model.graphs import (
    Body,
    LocatedBody,
    bodies,
    names_read,
    names_read_by_each,
    node_label,
    outputs_of_each,
)

__all__ = ["sort_body", "sort_model"]

_SHOWN = 5
"""How many nodes of a cycle a message names."""


def sort_model(proto: onnx.ModelProto) -> list[str]:
    """Sort the nodes of every body topologically, in place, and return the paths of those that were not sorted.

    A body that is sorted keeps its order, as onnx/docs/IR.md, "Graphs", requires of every model. Raises InvalidModel:
    `cycle` if there is no such order, `not-ssa` if two nodes of a body produce one value.
    """
    return [located.path for located in bodies(proto) if sort_body(located)]


def sort_body(located: LocatedBody) -> bool:
    """Sort one body in place, as `sort_model` does; return whether it had to be."""
    nodes = located.body.node
    producer: dict[str, int] = {}
    for index, output_list in enumerate(outputs_of_each(nodes)):
        for name in output_list:
            # Two nodes with one output leave open which value a reader gets.
            if name and producer.setdefault(name, index) != index:
                node = nodes[index]
                where = Where(located.path, node_label(node), node.op_type)
                raise InvalidModel(
                    f"produces {name!r}, which another node of the same graph produces too",
                    code="not-ssa",
                    where=where,
                )
    # Most models are sorted already.
    if _is_sorted(names_read_by_each(nodes, located.operators), producer):
        return False
    needs = [[producer[name] for name in names_read(node) if name in producer] for node in nodes]
    _reorder(located.body, needs, located.path)
    return True


def _is_sorted(read: Iterable[Sequence[str]], producer: Mapping[str, int]) -> bool:
    for index, names in enumerate(read):
        for name in names:
            if producer.get(name, -1) >= index:
                return False
    return True


def _reorder(body: Body, needs: list[list[int]], path: str) -> None:
    """Sort by Kahn's algorithm, with a queue: `needs` has for each node the indices of those it reads from."""
    followers: list[list[int]] = [[] for _ in needs]
    waiting = [0] * len(needs)
    for index, sources in enumerate(needs):
        for source in set(sources):
            followers[source].append(index)
            waiting[index] += 1
    # A queue keeps independent nodes in their order.
    ready = deque(index for index, count in enumerate(waiting) if not count)
    order: list[int] = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for follower in followers[index]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    if len(order) < len(needs):
        raise _cycle(body, needs, {index for index, count in enumerate(waiting) if count}, path)
    # The messages must be copied before the list is emptied.
    nodes = list(body.node)
    del body.node[:]
    body.node.extend(nodes[index] for index in order)


def _cycle(body: Body, needs: list[list[int]], stuck: set[int], path: str) -> InvalidModel:
    """Return the error for a cycle among the nodes that could not be sorted: they are on one, or read from one."""
    index, steps_on_way, way = min(stuck), dict[int, int](), list[int]()
    while index not in steps_on_way:
        steps_on_way[index] = len(way)
        way.append(index)
        # Each stuck node reads a stuck node, so this walk meets one of its own steps in the end.
        index = next(source for source in needs[index] if source in stuck)
    cycle = [node_label(body.node[index]) for index in way[steps_on_way[index] :]]
    node = body.node[index]
    # A cycle may have thousands of nodes.
    others = [repr(label) for label in cycle[1:_SHOWN]]
    if len(cycle) > _SHOWN:
        others.append(f"{len(cycle) - _SHOWN:,} more")
    through = f" through {', '.join(others)}" if others else ""
    return InvalidModel(
        f"reads its own output{through}: the nodes form a cycle",
        code="cycle",
        where=Where(path, cycle[0], node.op_type),
        hint="correct the name of an input of one of them",
    )
