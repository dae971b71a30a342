"""Islands: nodes that keep their type because their numbers would leave the original; and the nodes around and between them."""

from __future__ import annotations

from collections.abc import Iterable

from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.model.graphs import BodyKey

from .plan import moves

__all__ = ["Islands", "islands_of", "movers_between", "neighbours_of", "readers_of"]

Islands = frozenset[tuple[BodyKey, str]]
"""Nodes by their bodies and first outputs."""


def islands_of(steps: Iterable[Step]) -> Islands:
    """Return nodes as islands name them; one without outputs has no name."""
    return frozenset(
        (step.frame.key, value.name) for step in steps for value in step.outputs[:1] if value is not None
    )


def movers_between(frames: Iterable[Frame], kept: Islands) -> Islands:
    """Return the nodes that only move numbers from a kept node to a kept node: in the narrow type they would round these."""
    movers: set[Step] = set()
    for frame in frames:
        behind: set[Step] = set()
        for step in frame.steps:
            if moves(step) and any(
                _is_kept(value.maker, kept) or value.maker in behind for value in step.read
            ):
                behind.add(step)
        before: set[Step] = set()
        for step in reversed(frame.steps):
            readers = list(readers_of(step)) if step in behind else []
            if any(_is_kept(reader, kept) or reader in before for reader in readers):
                before.add(step)
        movers |= before
    return islands_of(movers)


def _is_kept(step: Step | None, kept: Islands) -> bool:
    return step is not None and not islands_of([step]).isdisjoint(kept)


def neighbours_of(step: Step) -> Iterable[Step]:
    """Yield the nodes of the same body that make an input of a node, or read an output of it."""
    for value in step.read:
        if value.maker is not None and value.maker.frame is step.frame and value.tensor is None:
            yield value.maker
    yield from readers_of(step)


def readers_of(step: Step) -> Iterable[Step]:
    """Yield the nodes of the same body that read an output of a node."""
    return (reader for value in step.made for reader, _ in value.readers if reader.frame is step.frame)
