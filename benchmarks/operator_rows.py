"""From how the cases of operators ended in releases of a runtime to the rows of its table."""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from onnx.defs import has

from benchmarks.operator_cases import Case
from benchmarks.operator_limits import LACKING, PLAIN, Ended, Limits, limits

__all__ = ["UNFED", "Measured", "Row", "release_of", "rows", "text"]

UNFED = ("in function 'setInput'", "which MNN does not")
"""What errors say where data of a type cannot be fed, which says nothing of a node in a model."""

_TYPES = {
    "float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint4", "uint8", "uint16", "uint32", "uint64",
    "bool",
}  # fmt: skip
"""The element types that are measured, and can be fed."""

_FLOATS = {"float32", "float16", "float64"}

_FOLDED = {"Shape", "Size", "ConstantOfShape", "Range"}
"""Operators of shapes: a runtime without scalars and vectors has their results where others take them."""

_BODIES = {"If", "Loop", "Scan"}
"""Operators of which a few right cases say nothing: what they do hangs on their bodies."""

_ONE_OUTPUT = {"MaxPool", "Dropout", "BatchNormalization", "LayerNormalization"}
"""Operators whose other outputs models seldom use: what is said of them is said of the first."""

_NAMED = 4
"""How many cases that fail a row names of an operator."""


@dataclass(frozen=True)
class Measured:
    """How the cases ended in a release."""

    release: str
    ended: Sequence[Ended]
    write: frozenset[str] = frozenset()
    """The forms that its row of the table wants."""
    resize_axes: bool = True
    """Whether its row says that it takes the attribute `axes` of Resize; else that is never left to it."""
    computed: Mapping[str, int] = field(default_factory=dict)
    """How many of the real models that it computes right have an operator."""
    failing: tuple[frozenset[str], ...] = ()
    """The operators of each real model that it does not compute right."""
    axes: int = 0
    """How many axes data must have for a case to count, 0 for any: OpenCV and ncnn have neither scalars nor vectors, and integers
    for shapes only.
    """
    sampled: bool = False
    """Whether few of the cases were run: rows then name operators that were right, without limits, and none as lacking, for the
    cases that were not run may say otherwise. Its forms say in which an operator runs."""
    opset: int | None = None
    """The newest opset that it takes: models come to it with the versions of operators that this has."""

    def counted(self) -> Iterator[Ended]:
        """Return the cases that count, right where they are in a form that is written for the release.

        One that is loaded and cannot be fed data of its type is as right as the case in float32 that it was made of.
        """
        ends = {one.case.name: one.how for one in self.ended}
        for one in self.ended:
            if UNFED[0] in one.why:
                twin = one.case.name.removesuffix(f"-{one.case.type}")
                one = replace(one, how=ends.get(twin, one.how))
            folded = self.axes and one.case.operator in _FOLDED and not one.case.others
            lowered = one.case.others and "/form_" not in one.case.name
            more = one.case.outputs > 1 and one.case.operator in _ONE_OUTPUT
            axes = one.case.operator == "Resize" and "axes" in one.case.attributes and not self.resize_axes
            skipped = folded or lowered or more or axes or one.case.empty or one.case.type not in _TYPES
            if self.axes and _is_whole(one.case):
                continue
            if one.case.least >= self.axes and not skipped and not self._is_newer(one.case):
                yield replace(one, how="right") if one.written & self.write else one

    def _is_newer(self, case: Case) -> bool:
        """Return whether a case is of a version that the newest opset does not have, of an operator that it has."""
        return self.opset is not None and case.version > self.opset and has(case.operator, self.opset, "")


def _is_whole(case: Case) -> bool:
    """Return whether a case computes with integers or truth values, or makes some."""
    return case.type not in _FLOATS or case.attributes.get("to", 1) not in (1, 10, 11)


@dataclass(frozen=True)
class Row:
    """Operators that releases take alike."""

    names: tuple[str, ...]
    since: str
    until: str
    limits: Limits
    source: str


def rows(measured: Sequence[Measured]) -> list[Row]:
    """Return the rows of releases, oldest first; operators that all releases take alike share one."""
    by_operator: dict[str, list[tuple[str, Limits | None]]] = defaultdict(list)
    for release in measured:
        for name, state in _states(release).items():
            by_operator[name].append((release.release, state))
    alike: dict[tuple[str, str, Limits], dict[str, list[Limits]]] = defaultdict(dict)
    for name, states in sorted(by_operator.items()):
        spans = [(state, list(group)) for state, group in groupby(states, key=lambda entry: entry[1])]
        for at, (state, group) in enumerate(spans):
            if state is not None:
                until = release_of(spans[at + 1][1][0][0]) if at + 1 < len(spans) else ""
                own = [one for _, one in group if one is not None]
                alike[release_of(group[0][0]), until, state][name] = own
    ordered = sorted(alike.items(), key=lambda item: (item[0][2].lacking, _order(item[0][0]), min(item[1])))
    return [
        Row(tuple(names), since, until, state, _source(measured, since, until, names))
        for (since, until, state), names in ordered
    ]


def _states(release: Measured) -> dict[str, Limits | None]:
    """Return what a release takes of each operator that was run, None where it is not known.

    An operator is not lacking that a model has which is right.
    """
    found: dict[str, list[Ended]] = defaultdict(list)
    for one in release.counted():
        found[one.case.operator].append(one)
    there = {name for one in release.ended if one.how == "right" for name in one.case.others}
    there |= release.computed.keys()
    states = {name: limits(own) for name, own in found.items()}
    if "Constant" in there:
        states["Constant"] = Limits()
    if release.axes:
        whole = _TYPES - _FLOATS
        states = {
            name: own and replace(own, types=tuple(sorted({*own.types, *whole})) if own.types else ())
            for name, own in states.items()
        }
    states |= {name: None for name, own in states.items() if own == LACKING and name in there}
    states |= {name: None for name, own in states.items() if own != LACKING and name in _BODIES}
    for model in release.failing:
        if all(states.get(name, LACKING) not in (None, LACKING) for name in model):
            rare = model - release.computed.keys() or {min(sorted(model), key=release.computed.__getitem__)}
            states |= dict.fromkeys(rare, None)
    if release.sampled:
        return {name: own and Limits(failing=own.failing) for name, own in states.items() if own != LACKING}
    return states


def _source(
    measured: Sequence[Measured], since: str, until: str, names: Mapping[str, Sequence[Limits]]
) -> str:
    wheels = [
        f"{one.release} ({f'a sample of {len(one.ended)} models, no limits' if one.sampled else f'{len(one.ended)} models'})"
        for one in measured
        if _order(since) <= _order(release_of(one.release))
        and (not until or _order(release_of(one.release)) < _order(until))
    ]
    span = ", ".join(wheels)
    found = f"python -m benchmarks.runtime_operators, {span}"
    notes = {
        "with a constant": {
            name: [one for own in all_of for one in own.constants] for name, all_of in names.items()
        },
        "not right": {name: [one for own in all_of for one in own.failing] for name, all_of in names.items()},
    }
    for what, by_name in notes.items():
        told = [f"{name} ({_listed(own)})" for name, own in by_name.items() if own]
        found += f"; {what}: {', '.join(told)}" if told else ""
    return found


def _listed(names: Iterable[str]) -> str:
    own = list(dict.fromkeys(names))
    return ", ".join(own[:_NAMED]) + (" and more" if len(own) > _NAMED else "")


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def release_of(version: str) -> str:
    """Return the release that a wheel's version is of: 4.8 for 4.8.1.78, 20261020 for 1.0.20261020."""
    parts = version.split(".")
    return parts[2] if len(parts) == 3 and len(parts[2]) == 8 else ".".join(parts[:2])


def text(found: Iterable[Row]) -> str:
    """Return rows as the text of a table."""
    parts = [_HEAD]
    for row in found:
        lines = ["[[operator]]", _names(row.names), f"from = {json.dumps(row.since)}"]
        lines += [f"until = {json.dumps(row.until)}"] if row.until else []
        lines += ["lacking = true"] if row.limits.lacking else []
        lines += [f"newest = {row.limits.newest}"] if row.limits.newest else []
        lines += [f"oldest = {row.limits.oldest}"] if row.limits.oldest else []
        lines += [f"rank = {row.limits.rank}"] if row.limits.rank else []
        constant = row.limits.constant_inputs
        lines += [f"constant_inputs = {json.dumps(constant)}"] if constant else []
        lines += [f"types = {json.dumps(row.limits.types)}"] if row.limits.types else []
        if row.limits.attributes:
            taken = ", ".join(f"{name} = {_taken(name, values)}" for name, values in row.limits.attributes)
            lines.append(f"attributes = {{ {taken} }}")
        lines += ["measured = true", f"source = {json.dumps(row.source)}"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


_HEAD = """# Written by `python -m benchmarks.runtime_operators`; do not edit.
#
# A row holds for what was right of onnx's node tests and of the forms that exporters write, in float32 at every version of the
# operator, and in other types at one. What fails and cannot be told by a row is named in its source where it is at most three
# for ten that are right, or one for ten of the forms alone; where it is more, there is no row. Empty tensors and the second
# outputs of pools and normalizations do not count. For OpenCV and ncnn neither do scalars, vectors and integers: they compute the
# sizes of shapes when they load a model. Nor is an operator known that has
# bodies. Where a real model fails though all of its operators are known, those that no right model has, else the one that the
# fewest have, are not known either.
"""


def _taken(name: str, values: Sequence[Any]) -> str:
    if name in PLAIN:
        return f"{{ min = {PLAIN[name]}, max = {PLAIN[name]} }}"
    return json.dumps(values)


def _names(names: Sequence[str]) -> str:
    one = f"names = {json.dumps(names)}"
    if len(one) <= 120:
        return one
    wrapped = textwrap.wrap(", ".join(map(json.dumps, names)), 116, break_long_words=False)
    return "\n".join(["names = [", *(f"    {line}" for line in wrapped), "]"]).replace('"\n]', '",\n]')
