"""What a release takes of an operator, by how the cases of it ended there.

An operator is measured in a release where every case of it is right, or what fails can be told by what a row can say: its element
types, its versions, ranks, constant inputs, and values of attributes of which there are few. If nothing of it is right, it is
lacking. If more than a little fails that a row cannot tell apart, it is not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.operator_cases import Case

__all__ = ["LACKING", "PLAIN", "Ended", "Limits", "limits"]

_CLOSED = {
    "align_corners", "allowzero", "antialias", "ceil_mode", "center_point_box", "count_include_pad", "exclude_outside",
    "exclusive", "fmod", "input_forget", "inverse", "is_causal", "keepdims", "largest", "layout", "linear_before_reset",
    "noop_with_empty_axes", "onesided", "p", "reverse", "saturate", "select_last_index", "sorted", "storage_order", "to",
    "training_mode", "transA", "transB", "upper", "interleaved", "stash_type", "output_dtype", "softmax_precision", "dtype",
}  # fmt: skip
"""The attributes of numbers that have few values. Those of texts always have."""

PLAIN = {"dilations": 1, "output_padding": 0, "alpha": 1, "beta": 1}
"""Attributes of any numbers, by the number that means nothing; all others are alike."""

_SCALARS = {"min", "max"}
"""Inputs that do not follow from shapes: where they are constants in all that is right, they must be."""

_OWN = {"version", "rank", "given"}
"""What is no attribute."""

_FEW, _FEW_FORMS = 0.3, 0.1
"""How many cases for each that is right may fail without a sign, of all or of the forms; the row names some of them."""

_ENOUGH = 3
"""How many cases of the newest version must fail for it to be ruled out, for that keeps a whole model at an older opset."""

_MOSTLY, _SELDOM = 3, 0.3
"""How many times as often as it is right something fails that is ruled out."""


@dataclass(frozen=True)
class Ended:
    """How a case ended: "right", "wrong", "fails", "crashes" or "times out", and why."""

    case: Case
    how: str
    why: str = ""
    written: frozenset[str] = frozenset()
    """The forms each of which makes it right (`write` of a release)."""


@dataclass(frozen=True)
class Limits:
    """What a release takes of an operator; of types, () is all."""

    lacking: bool = False
    newest: int | None = None
    oldest: int | None = None
    rank: int | None = None
    types: tuple[str, ...] = ()
    attributes: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    constant_inputs: tuple[str, ...] = ()
    constants: tuple[str, ...] = field(default=(), compare=False)
    """Inputs that are constants in all that is right. It is not said that they must be, for some follow from constants."""
    failing: tuple[str, ...] = field(default=(), compare=False)
    """Cases that fail all the same."""


LACKING = Limits(lacking=True)

Fact = tuple[str, Any]
"""What a row can say of a case: ("version", 18), ("rank", 5), ("given", "shape"), ("mode", "cubic")."""


_Told = tuple[str, frozenset[Fact], bool]
"""A case as a row sees it: its type, its facts, and whether it is right."""


def limits(ended: Iterable[Ended]) -> Limits | None:
    """Return what a release takes of one operator; None if that cannot be told in a row.

    Of the cases in float32, what is among the failing and seldom among the right is ruled out until nothing that fails is
    left. A type that fails mostly then is ruled out too.
    """
    ended = list(ended)
    cases = [(one.case.type, _facts(one.case), one.how == "right") for one in ended]
    if not any(right for _, _, right in cases):
        return LACKING if cases else None
    main = "float32" if any(kind == "float32" for kind, _, _ in cases) else ""
    right = [facts for kind, facts, good in cases if good and main in ("", kind)]
    failing = [facts for kind, facts, good in cases if not good and main in ("", kind)]
    ruled_out: set[Fact] = set()
    while failing and right:
        holds = Counter(fact for facts in right for fact in facts)
        fails = Counter(fact for facts in failing for fact in facts)
        shares = {
            fact: count / (holds[fact] + 0.5)
            for fact, count in fails.items()
            if _sayable(fact, fails, holds) and count >= _needed(fact, holds) * holds[fact]
        }
        worst = max(shares, key=lambda fact: (shares[fact], fails[fact], str(fact)), default=("", 0))
        if not shares or holds[worst] == len(right):
            break
        ruled_out.add(worst)
        right = [facts for facts in right if worst not in facts]
        failing = [facts for facts in failing if worst not in facts]
    left = [
        one
        for one, (kind, facts, _) in zip(ended, cases, strict=True)
        if main in ("", kind) and not facts & ruled_out
    ]
    forms = [one for one in left if "/form_" in one.case.name]
    if not _few_fail(left, _FEW) and not _few_fail(forms, _FEW_FORMS):
        return None
    found = _limits(ruled_out, right, cases, _types(cases, ruled_out))
    failing_still = {one.case.name.partition("/")[2] for one in left if one.how != "right"}
    return replace(found, failing=tuple(sorted(failing_still)))


def _few_fail(ended: Iterable[Ended], share: float) -> bool:
    right = Counter(one.how == "right" for one in ended)
    return right[True] > 0 and right[False] <= share * right[True]


def _sayable(fact: Fact, fails: Mapping[Fact, int], holds: Mapping[Fact, int]) -> bool:
    """Return whether a row can say it: of versions all newer or all older ones, of ranks all higher ones.

    Older versions are not at fault for what fails at the newest as well.
    """
    name, value = fact
    if name == "given":
        return True
    if name not in ("version", "rank"):  # an attribute, of which another value must be right
        return any(kind == name and own != value and holds[kind, own] for kind, own in holds)
    known = {own for kind, own in (*fails, *holds) if kind == name and holds[kind, own]}
    if name == "rank" or not known or value >= max(known):
        return bool(value >= max(known, default=0)) and (name == "rank" or fails[fact] >= _ENOUGH)
    newest = (name, max(known))
    worse = fails[fact] * (holds[newest] + fails[newest]) > 2 * fails[newest] * (holds[fact] + fails[fact])
    return bool(value <= min(known) and worse)


def _needed(fact: Fact, holds: Mapping[Fact, int]) -> float:
    """Return how many times as often as it is right a fact must fail to be ruled out.

    Less for an old version, for a model that has it is lifted.
    """
    name, value = fact
    if name == "version" and any(kind == name and own > value and holds[kind, own] for kind, own in holds):
        return _SELDOM
    return _MOSTLY


def _types(cases: Sequence[_Told], ruled_out: set[Fact]) -> tuple[str, ...]:
    """Return the types that do not mostly fail, of the cases that are not ruled out."""
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    for kind, facts, right in cases:
        if not facts & ruled_out:
            found[kind][right] += 1
    return tuple(
        sorted(kind for kind, own in found.items() if own[True] and own[False] < _MOSTLY * own[True])
    )


def _values(right: Iterable[frozenset[Fact]]) -> Mapping[str, set[Any]]:
    taken: dict[str, set[Any]] = defaultdict(set)
    for name, value in (fact for facts in right for fact in facts):
        taken[name].add(value)
    return taken


def _limits(
    ruled_out: set[Fact], right: Sequence[frozenset[Fact]], cases: Sequence[_Told], types: tuple[str, ...]
) -> Limits:
    taken, known = _values(right), _values(facts for _, facts, _ in cases)
    versions, given = known["version"], known["given"]
    newest, oldest = max(taken["version"]), min(taken["version"])
    limited = {name for name, _ in ruled_out}
    constants = given - taken["given"] if "given" in limited else set()
    return Limits(
        newest=newest if newest < max(versions) else None,
        oldest=oldest if oldest > min(versions) else None,
        rank=max(taken["rank"]) if "rank" in limited else None,
        types=types,
        constant_inputs=tuple(sorted(constants & _SCALARS)),
        constants=tuple(sorted(constants - _SCALARS)),
        attributes=tuple(
            (name, tuple(sorted(taken[name]))) for name in sorted(limited - _OWN) if taken[name]
        ),
    )


def _facts(case: Case) -> frozenset[Fact]:
    found: set[Fact] = {("version", case.version), ("rank", case.rank)}
    found |= {("given", name) for name in case.given}
    for name, value in case.attributes.items():
        if isinstance(value, str) or (isinstance(value, int) and name in _CLOSED):
            found.add((name, value))
        elif name in PLAIN and not isinstance(value, str):
            numbers = value if isinstance(value, list) else [value]
            found.add((name, all(number == PLAIN[name] for number in numbers)))
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            found.add((name, tuple(value)))
    return frozenset(found)
