"""Finds the nodes between the last values that agree in two models and the next values that agree again.

A value without an equal one need not be a fault: a fused or split node has inner values that the other model lacks. So a run
decides. It puts the original's value in place of the other model's. If that model then computes the original's outputs, all nodes
behind the value agree, and the fault is before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import names_read
from onnx_migrate.process import mark
from onnx_migrate.verify.equivalence.inner_values import CutModel
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.kernel.arrays import Array
from onnx_migrate.verify.model_traits import FIXED

from .agreement import Agreement
from .records import Recorded
from .samples import Sample, sample_of

__all__ = ["Region", "first_pair", "region_of", "with_idle_nodes"]

_VALUES = 48
"""Values of the other model that are tried as the end of the region, the first ones behind the agreeing values."""

_PARTNERS = 4
"""Values of the original that are tried for each of these, beside the one of the same name or structure."""

_ELEMENTS = 1 << 25
"""Most elements of the original's values that the search keeps, to put them into the other model."""

_NEXT = 16
"""Most values behind the replaced one that the search compares, beside the outputs."""

_ENOUGH = 0.5
"""The region ends if at least this share of these values agrees: the others are inside fused or split nodes."""

_IDLE = 1e-6
"""Error up to which a node has changed no number."""

_REPAIRED = 0.02
"""Share of an output's error that may remain with the original's value in place."""


@dataclass(frozen=True)
class Region:
    """The part of two models in which they part. `agreed` are the original's values before it."""

    original: tuple[str, ...]
    """Values that the original computes in the region, in the order of its nodes; the last one is its end."""
    other: tuple[str, ...]
    """Values that the other model computes in the region; the last one is its end."""
    agreed: tuple[str, ...]
    is_confirmed: bool
    """Whether a run showed that both models agree again behind the region. Otherwise it reaches up to an output."""


def region_of(agreement: Agreement) -> Region | None:
    """Return the region in which two models part first; None if their outputs agree. Raises EvaluationError."""
    differing = agreement.differing
    if not differing:
        return None
    ours = _suspects(agreement.original, agreement.agreeing, differing)
    theirs = _suspects(agreement.other, agreement.partners.keys(), differing)
    search = _Search(agreement, ours, theirs)
    doubtful: tuple[str, str] | None = None
    for other in islice(theirs, _VALUES):
        value, share = search.same_as(other)
        # The nodes behind agree if the value is exchanged.
        if share >= _ENOUGH:
            return search.region(value, other, is_confirmed=True)
        doubtful = doubtful or ((value, other) if share > 0 else None)
    if doubtful is not None:
        return search.region(*doubtful, is_confirmed=True)
    first = next((name for name in differing if name in ours and name in theirs), "")
    return search.region(first, first, is_confirmed=False) if first else None


def first_pair(agreement: Agreement, region: Region) -> Region | None:
    """Return the first nodes of a region alone, if each node there has a counterpart of its own, of the same name or structure.

    No node is fused then. The first nodes read values that agree, and compute others, so the difference begins there. The region
    is longer because nodes behind them differ too. None if the region has one value, or if the first nodes have two operators:
    a simplifier may have changed the order of computation.
    """
    pairs = [(value, agreement.named.get(value, "")) for value in region.original]
    others = {other for _, other in pairs if other}
    if len(pairs) < 2 or len(others) < len(pairs) or not others >= {*region.other}:
        return None
    value, other = pairs[0]
    if agreement.original.maker(value).op_type != agreement.other.maker(other).op_type:
        return None
    agreed = _values_before(agreement.original, [value])
    return replace(region, original=(value,), other=(other,), agreed=agreed)


def with_idle_nodes(agreement: Agreement, region: Region) -> Region:
    """Return a region with the nodes behind it that change no number, for example an Add of zeros: one may be the fault."""
    side, end = agreement.original, region.original[-1]
    behind = {end: None}
    for node in side.model.graph.node:
        if not behind.keys().isdisjoint(names_read(node)):
            same = (
                name
                for name in node.output
                if any(
                    _is_idle(side.samples.get(end), side.samples.get(turned))
                    for turned in (name, *side.turned.get(name, ()))
                )
            )
            behind.update(dict.fromkeys(same))
    return replace(region, original=(*region.original, *(name for name in behind if name != end)))


def _is_idle(before: Sample | None, after: Sample | None) -> bool:
    """Return whether nodes between two values changed no number."""
    return before is not None and after is not None and before.error(after) <= _IDLE


def _suspects(side: Recorded, agreeing: Collection[str], differing: Iterable[str]) -> dict[str, None]:
    """Return the values that lead to a differing output without passing a value that agrees, in the order of the nodes."""
    ends = [name for name in differing if name in side.producers]
    return _upstream(side, ends, {name for name in side.varying if name not in agreeing})


def _upstream(side: Recorded, ends: Iterable[str], within: Collection[str]) -> dict[str, None]:
    """Return some values and those of a set that they are computed from inside it, in the order of the nodes."""
    pending = list(ends)
    reached = set(pending)
    while pending:
        for name in names_read(side.producers[pending.pop()]):
            if name in within and name not in reached:
                reached.add(name)
                pending.append(name)
    return {name: None for name in side.varying if name in reached}


@dataclass
class _Search:
    """Looks for the end of the region among the values of both models that do not agree."""

    agreement: Agreement
    ours: dict[str, None]
    theirs: dict[str, None]

    def same_as(self, other: str) -> tuple[str, float]:
        """Return the original's value that makes most values behind `other` agree in its stead, and their share; -1 for none.

        The share matters, as outputs may be saturated.
        """
        best, most = "", -1.0
        for value in self._partners(other):
            share = self._share_behind(value, other)
            if share > most:
                best, most = value, share
            if most >= _ENOUGH:
                break
        return best, most

    def _partners(self, other: str) -> list[str]:
        """Return the original's values that `other` would equal without the fault: that of the same name, then the nearest."""
        sample = self.agreement.other.samples.get(other)
        if sample is None:
            return []
        named = self.agreement.names.get(other, "")
        samples = self.agreement.original.samples
        alike = (name for name in self._ours if name != named and _alike(samples.get(name), sample))
        near = [name for name, _ in zip(alike, range(_PARTNERS), strict=False)]
        return [*([named] if named in self.agreement.original.producers and named in samples else []), *near]

    @cached_property
    def _ours(self) -> list[str]:
        """The original's values that do not agree, those of other layouts behind each."""
        turned = self.agreement.original.turned
        return [part for name in self.ours for part in (name, *turned.get(name, ()))]

    def _share_behind(self, value: str, other: str) -> float:
        """Return the share of values behind `other` that agree if `value` replaces it; -1 if the outputs do not agree."""
        array = self._whole.get(value)
        sample = self.agreement.other.samples.get(other)
        if array is None or sample is None or array.size != sample.size:
            return -1.0
        behind = list(self._behind(other))
        outputs = [name for name in self.agreement.differing if name in behind and name != other]
        following = [name for name in behind[1:] if name in self.theirs and name not in outputs][:_NEXT]
        if not outputs and not following:
            return 1.0 if other == value else -1.0
        try:
            mark("result: running, with a value of the original")
            put = array.reshape(sample.shape).astype(sample.dtype)
            model = CutModel(self.agreement.other.runnable, {other: put}, [*outputs, *following])
            run = model.run({**self.agreement.other.feed, other: put})
        except EvaluationError:
            return -1.0
        samples = {name: sample_of(array) for name, array in run.items()}
        own = sample_of(put)
        agreeing = [
            self.agreement.has(samples[name]) for name in following if not _is_idle(own, samples[name])
        ]
        repaired = bool(outputs) and all(self._is_repaired(name, samples[name]) for name in outputs)
        # Behind a second fault the outputs differ all the same, and the values before it agree.
        if not repaired and not (agreeing and agreeing[0]):
            return -1.0
        return sum(agreeing) / len(agreeing) if agreeing else 1.0

    def _is_repaired(self, output: str, sample: Sample | None) -> bool:
        ours, before = self.agreement.original.samples[output], self.agreement.error(output, output)
        return sample is not None and ours.error(sample) <= max(self.agreement.limit, _REPAIRED * before)

    def _behind(self, other: str) -> Iterator[str]:
        """Yield a value of the other model and all that depend on it, in the order of the nodes."""
        reached = {other}
        yield other
        for node in self.agreement.other.model.graph.node:
            if not reached.isdisjoint(names_read(node)):
                new = [name for name in node.output if name and name not in reached]
                reached.update(new)
                yield from new

    @cached_property
    def _whole(self) -> dict[str, Array]:
        """The original's values that are tried, as many as memory allows."""
        wanted: list[str] = []
        elements_left = _ELEMENTS
        tried = (value for other in islice(self.theirs, _VALUES) for value in self._partners(other))
        for value in dict.fromkeys(tried):
            size = self.agreement.original.samples[value].size
            if size <= elements_left:
                wanted.append(value)
                elements_left -= size
        return self.agreement.original.values(wanted) if wanted else {}

    def region(self, value: str, other: str, *, is_confirmed: bool) -> Region:
        """Return the region that ends at these values."""
        ours = _ending(self.agreement.original, self.agreement.original.value_of(value), self.ours)
        theirs = _ending(self.agreement.other, other, self.theirs)
        agreed = _values_before(self.agreement.original, ours)
        return Region(tuple(ours), tuple(theirs), agreed, is_confirmed)


def _values_before(side: Recorded, values: Sequence[str]) -> tuple[str, ...]:
    """Return the recorded values that some values are computed from, without these themselves, in the order of the nodes."""
    inside = set(values)
    read = (name for part in values for name in names_read(side.producers[part]))
    own_names = {name for name in side.samples if FIXED not in name}
    return tuple(dict.fromkeys(name for name in read if name in own_names and name not in inside))


def _alike(one: Sample | None, other: Sample) -> bool:
    return one is not None and (one.kind, one.shape) == (other.kind, other.shape)


def _ending(side: Recorded, end: str, within: Collection[str]) -> Sequence[str]:
    """Return a value and those it is computed from within a set, in the order of the nodes; it is the last one."""
    return [*(name for name in _upstream(side, [end], within) if name != end), end]
