"""The forms of nodes that releases were measured with, and computed right: what "runs as it is" may be said of.

They lie beside the table of a runtime in NAME.forms.jsonl, which `python -m benchmarks.runtime_operators` writes: first the list
of the releases, then a line for each box: its operator, the numbers of its releases, and the values that each fact of a form may
have in it (`facts.node_form`). A box holds forms that were right, and none that failed. A list in place of a box names the places
of inputs with the operators before them that were right: of a runtime that fuses nodes, each pair must have been.
A release without boxes is one from which on nearly all forms run, so that only those that failed are kept. NAME.failing.jsonl
has boxes of these, in which none was right: for such releases, and beside the others for what fails behind some nodes only.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from onnx_migrate.standard.targets.releases import key

__all__ = [
    "AFTER",
    "BEHIND",
    "ENDING",
    "FAILING",
    "LAST",
    "SELDOM",
    "SIZE",
    "Box",
    "MeasuredForms",
    "NodeForm",
    "holds",
    "pairs_in",
    "parse_forms",
    "shipped_forms",
]

AFTER, BEHIND, LAST, SIZE = "after", "behind", "last", "size"
"""The operators before a node, those before its inputs of data by their places, whether the model returns what it computes, and
the size of its first input."""

SELDOM = frozenset((AFTER, BEHIND, LAST, SIZE))
"""The facts that count only where they tell right from wrong; the second, where pairs were measured."""

ENDING = ".forms.jsonl"
"""How the name of a file of boxes ends."""

FAILING = ".failing.jsonl"
"""How that of a file ends whose boxes hold what failed."""

Box = Mapping[str, Set[str]]
"""The values that each fact may have, none for all; "" stands for a fact that a form does not have."""


@dataclass(frozen=True)
class NodeForm:
    """A node as measurements know it: its operator, and facts of it by name, of which each is a short text."""

    domain: str
    operator: str
    facts: Mapping[str, str]


@dataclass(frozen=True)
class MeasuredForms:
    """The boxes of the releases of a runtime that were measured, oldest first, by operator."""

    releases: tuple[str, ...]
    boxes: Sequence[Mapping[str, Sequence[Box]]]
    pairs: Sequence[Mapping[str, Set[str]]]
    """The values of `BEHIND` that were right, each by itself; {} where pairs do not count."""

    def of(self, release: str) -> Mapping[str, Sequence[Box]] | None:
        """Return the boxes of the last release up to this one, None where it has none; {} for one that is older than all."""
        at = self._last(release)
        return {} if at is None else self.boxes[at] or None

    def pairs_of(self, release: str) -> Mapping[str, Set[str]]:
        """Return the pairs of the last release up to this one."""
        at = self._last(release)
        return {} if at is None else self.pairs[at]

    def _last(self, release: str) -> int | None:
        known = [at for at, own in enumerate(self.releases) if key(own) <= key(release)]
        return known[-1] if known else None


def holds(box: Box, facts: Mapping[str, str], *, failing: bool = False) -> bool:
    """Return whether a form with these facts is in a box.

    Facts that a box does not name say nothing in one of what failed, and a constant fails there wherever it stands: in a node,
    behind an Identity, or in an initializer.
    """
    if failing:
        return _in(box, facts) or _in(box, _with_initializers(facts))
    return all(name in box or name in SELDOM for name in facts) and _in(box, facts)


def pairs_in(facts: Mapping[str, str]) -> Set[str]:
    """Return the places of the inputs of a node with the operators before them."""
    return frozenset(filter(None, facts.get(BEHIND, "").split(",")))


def _in(box: Box, facts: Mapping[str, str]) -> bool:
    return all(not taken or facts.get(name, "") in taken for name, taken in box.items())


def _with_initializers(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a form whose constants are initializers."""
    before = [name for name in facts.get(AFTER, "").split(",") if name not in ("Constant", "Identity")]
    return {**facts, "inputs": facts.get("inputs", "").replace("i", "c"), AFTER: ",".join(before)}


def parse_forms(text: str) -> MeasuredForms:
    """Return what a file of boxes says."""
    lines = map(json.loads, text.splitlines())
    releases = tuple(next(lines))
    found: list[dict[str, list[Box]]] = [defaultdict(list) for _ in releases]
    pairs: list[dict[str, Set[str]]] = [{} for _ in releases]
    for operator, own, box in lines:
        for at in own:
            if isinstance(box, list):
                pairs[at][operator] = pairs[at].get(operator, frozenset()) | frozenset(box)
            else:
                found[at][operator].append({name: frozenset(values) for name, values in box.items()})
    return MeasuredForms(releases, found, pairs)


@cache
def shipped_forms(name: str, ending: str = ENDING) -> MeasuredForms | None:
    """Return the measured forms of a runtime's table, None where there are none."""
    path = files("onnx_migrate.standard.targets").joinpath("tables", f"{name}{ending}")
    return parse_forms(path.read_text(encoding="utf-8")) if path.is_file() else None
