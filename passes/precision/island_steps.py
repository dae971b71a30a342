"""Islands: nodes that keep their type because their numbers would leave the original; and the nodes around and inside them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from onnx_migrate.facts.typed_graph import Step
from onnx_migrate.model.graphs import BodyKey

from .plan import moves

__all__ = ["Islands", "islands_of", "neighbours_of", "readers_of", "steps_inside"]

Islands = frozenset[tuple[BodyKey, str]]
"""Nodes by their bodies and first outputs."""


def islands_of(steps: Iterable[Step]) -> Islands:
    """Return nodes as islands name them; one without outputs has no name."""
    return frozenset(
        (step.frame.key, value.name) for step in steps for value in step.outputs[:1] if value is not None
    )


def steps_inside(*steps: Step, but: Collection[str] = ()) -> Iterator[Step]:
    """Yield nodes that have no sub-graphs, of these and all inside them, without some operators and what moves numbers."""
    for step in steps:
        if step.inner:
            for _, frame in step.inner:
                yield from steps_inside(*frame.steps, but=but)
        elif not but or not (step.is_a(*but) or moves(step)):
            yield step


def neighbours_of(step: Step) -> Iterable[Step]:
    """Yield the nodes of its body that make what a node reads, or read what it makes."""
    for value in step.read:
        if value.maker is not None and value.maker.frame is step.frame and value.tensor is None:
            yield value.maker
    yield from readers_of(step)


def readers_of(step: Step) -> Iterable[Step]:
    """Yield the nodes of its body that read what a node makes."""
    return (reader for value in step.made for reader, _ in value.readers if reader.frame is step.frame)
