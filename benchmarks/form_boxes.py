"""What forms of nodes a release computes right, from the forms that were run: boxes that hold right ones only.

A box gives for each fact of a form the values that it may have. The first box of an operator has what all right forms have.
Where a form that failed is in it, it is split by the fact that tells right from wrong best, until none is; what cannot be told
apart is in no box. So a form is known if each of its facts was right in a box, and no form that failed is like it there.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from onnx_migrate.standard.targets import AFTER, LAST, SELDOM, SIZE, Box, holds

__all__ = ["Sample", "boxes", "failing_boxes", "narrowed", "of_kernels", "widened"]

ABSENT = ""
"""The value of a fact that a form does not have."""

_ALWAYS = frozenset({"version", "types", "inputs", "rank"})
"""Facts that count even where many values are right."""

_VARIED = (4, 12)
"""From how many right values on a fact that tells nothing apart does not count: of an operator that never fails, of another."""

_COST = 0.02
"""How much a split must gain for each value of its fact, for one of few values is likelier the reason."""


@dataclass(frozen=True)
class Sample:
    """The facts of a form that was run, and whether what it computed was right."""

    facts: Mapping[str, str]
    right: bool
    missing: bool = False
    """Whether the release said that it has nothing for these types, whatever else the form is."""


@dataclass(frozen=True)
class _Group:
    samples: Sequence[Sample]
    after: bool = False
    """Whether the nodes before count."""


def boxes(samples: Iterable[Sample], *, inverse: bool = False) -> list[Box]:
    """Return the boxes of one operator; with `inverse`, "right" of a sample says that it failed."""
    alike: dict[frozenset[tuple[str, str]], set[bool]] = defaultdict(set)
    for one in samples:
        alike[frozenset(one.facts.items())].add(one.right)
    told = [Sample(dict(facts), all(found)) for facts, found in alike.items()]
    used: set[str] = set()
    groups = _split(told, used, inverse=inverse)
    free, seldom = _varied(told) - used, SELDOM - (used & {LAST, SIZE})
    return [_box(group.samples, seldom - ({AFTER} if group.after else set()), free) for group in groups]


def failing_boxes(samples: Iterable[Sample]) -> list[Box]:
    """Return the boxes of one operator that hold forms that failed, and none that was right."""
    samples = list(samples)
    names = {name for one in samples for name in one.facts} - SELDOM
    lacking: list[Box] = []
    for version, types in sorted(
        {(one.facts["version"], one.facts["types"]) for one in samples if one.missing}
    ):
        box = {
            **dict.fromkeys(names, frozenset[str]()),
            "version": frozenset({version}),
            "types": frozenset({types}),
        }
        if not any(one.right and holds(box, one.facts) for one in samples):
            lacking.append(box)
    left = [one for one in samples if not any(holds(box, one.facts) for box in lacking)]
    return lacking + boxes((replace(one, right=not one.right) for one in left), inverse=True)


def widened(given: Sequence[Box], samples: Sequence[Sample], alike: Mapping[str, Set[str]]) -> list[Box]:
    """Return boxes with the versions too that differ in types alone from theirs, if none that failed is in them then.

    `alike` gives for a version of the operator those like it.
    """
    found = []
    for box in given:
        versions = set(box["version"])
        for version in sorted({other for own in versions for other in alike.get(own, ())} - versions):
            more = {**box, "version": frozenset({version})}
            if not any(holds(more, one.facts) for one in samples if not one.right):
                versions.add(version)
        found.append({**box, "version": frozenset(versions)})
    return found


def of_kernels(given: Sequence[Box], *, failed: bool) -> list[Box]:
    """Return the boxes of an operator for a runtime that gives each node to a kernel, with the schema's defaults filled in.

    A default may be stated, and an input that may be computed and constant may come from shapes or stand behind an Identity.
    Unless something of the operator `failed`, two kinds of lengths that were right stand for all.
    """
    found = []
    for box in given:
        more = {
            name: taken | {value[1:] for value in taken if value.startswith("~")}
            for name, taken in box.items()
        }
        more["inputs"] = _with_sources(box["inputs"])
        if not failed and len(box.get("dims", ())) > 1:
            more["dims"] = frozenset()
        found.append(more)
    return found


def _with_sources(taken: Set[str]) -> Set[str]:
    """Return kinds of inputs, with "s" and "i" where both "x" and "c" are."""
    found, left = set(taken), list(taken)
    while left:
        kinds = left.pop().split(",")
        for at, kind in enumerate(kinds):
            own = {other: ",".join((*kinds[:at], other, *kinds[at + 1 :])) for other in "xcsi"}
            if kind in own and {own["x"], own["c"]} <= found:
                left += {own["s"], own["i"]} - found
                found |= {own["s"], own["i"]}
    return frozenset(found)


def narrowed(given: Sequence[Box], samples: Sequence[Sample]) -> list[Box]:
    """Return boxes that were learned before, without what failed since.

    From a box with a form that failed that value of one fact goes by which most of what was right stays.
    """
    right = [one.facts for one in samples if one.right]
    left = list(given)
    for failed in (one.facts for one in samples if not one.right):
        left = [part for box in left for part in _without(box, failed, right)]
    return left


def _without(box: Box, facts: Mapping[str, str], right: Sequence[Mapping[str, str]]) -> list[Box]:
    if not holds(box, facts):
        return [box]
    kept = [own for own in right if holds(box, own)]
    names = [name for name, taken in sorted(box.items()) if len(taken) > 1]
    if not names:
        return []
    name = min(names, key=lambda name: sum(own.get(name, ABSENT) == facts.get(name, ABSENT) for own in kept))
    return [{**box, name: box[name] - {facts.get(name, ABSENT)}}]


def _varied(samples: Sequence[Sample]) -> Set[str]:
    """Return the facts of which so many values are right that another one is likely to be."""
    values: dict[str, set[str]] = defaultdict(set)
    for one in samples:
        if one.right:
            for name, value in one.facts.items():
                values[name].add(value)
    needed = _VARIED[not all(one.right for one in samples)]
    return {name for name, own in values.items() if len(own) >= needed and name not in _ALWAYS}


def _split(samples: Sequence[Sample], used: set[str], *, inverse: bool, after: bool = False) -> list[_Group]:
    """Return groups of right samples whose boxes hold no failing ones, and add the facts that tell them apart to `used`."""
    right = [one for one in samples if one.right]
    if not right:
        return []
    box = _box(right, SELDOM)
    samples = [one for one in samples if one.right or holds(box, one.facts)]
    if len(right) == len(samples):
        return [_Group(right, after)]
    name, groups = _best(samples, SELDOM) or _seldom(samples, inverse=inverse)
    used.add(name)
    after = after or name == AFTER
    pure = [one for group in groups for one in group if all(other.right for other in group)]
    mixed = [
        group for group in groups if any(one.right for one in group) and not all(one.right for one in group)
    ]
    own = [_Group(pure, after)] if pure else []
    return [*own, *(part for group in mixed for part in _split(group, used, inverse=inverse, after=after))]


def _seldom(samples: Sequence[Sample], *, inverse: bool) -> tuple[str, list[list[Sample]]]:
    """Return the fact of size or place that tells samples apart which are alike otherwise, and those by its values.

    The last place does where all that fails is there, a size where all that fails is larger than all that is right, the nodes
    before where they are the same in none of both.
    """
    right, failing = ([one for one in samples if one.right is good] for good in (True, False))
    failed, others = (right, failing) if inverse else (failing, right)
    if all(LAST in one.facts for one in failed) and not all(LAST in one.facts for one in others):
        return LAST, [[one for one in right if (LAST in one.facts) is inverse]]
    if max(map(_size, right)) < min(map(_size, failing)):
        return SIZE, [right]
    places = {one.facts.get(AFTER, ABSENT) for one in failing}
    apart = [one for one in right if one.facts.get(AFTER, ABSENT) not in places]
    return (AFTER, [apart]) if len({one.facts.get(SIZE) for one in samples}) == 1 else (SIZE, [])


def _best(samples: Sequence[Sample], without: Set[str]) -> tuple[str, list[list[Sample]]] | None:
    """Return the fact that tells right from wrong best, and the samples by its values; None if none does."""
    best: tuple[str, list[list[Sample]]] | None = None
    most = -math.inf
    for name in sorted({name for one in samples for name in one.facts} - without):
        groups: dict[str, list[Sample]] = defaultdict(list)
        for one in samples:
            groups[one.facts.get(name, ABSENT)].append(one)
        left = sum(_impurity(group) for group in groups.values()) / len(samples)
        gain = _impurity(samples) / len(samples) - left - _COST * (len(groups) - 2)
        if len(groups) > 1 and gain > most:
            best, most = (name, list(groups.values())), gain
    return best


def _size(one: Sample) -> int:
    """Return the magnitude of a sample, that of an unknown one as the largest."""
    text = one.facts.get(SIZE, "")
    return int(text) if text.isdigit() else 99


def _impurity(samples: Sequence[Sample]) -> float:
    """Return the entropy of right and wrong, in bits of all samples."""
    counts = Counter(one.right for one in samples)
    return -sum(count * math.log2(count / len(samples)) for count in counts.values())


def _box(samples: Sequence[Sample], without: Set[str], free: Set[str] = frozenset()) -> Box:
    """Return the values of each fact in samples, but of those that may have any."""
    names = {LAST, *(name for one in samples for name in one.facts)} - without
    return {
        name: frozenset() if name in free else frozenset(one.facts.get(name, ABSENT) for one in samples)
        for name in names
    }
