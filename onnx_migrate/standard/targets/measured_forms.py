"""The forms of nodes that releases computed right when we measured them; only for these, onnx-migrate says that a node runs.

`python -m benchmarks.runtime_operators` writes them to NAME.forms.jsonl, beside the table of the runtime. The first
line lists the releases. Each other line is a box: an operator, the numbers of its releases, and the allowed values of
each fact of a form (`facts.node_form`). A box holds forms that were right, and no form that failed.

A line may have a list in place of a box. It names inputs by their places, each with an operator before it that was
right. A runtime that fuses nodes needs these pairs: each pair in a model must have been right.

From a release without boxes on, nearly all forms run, and the files keep only the forms that failed. NAME.failing.jsonl
has boxes of failed forms; no form in them was right. The other releases have such boxes too, for forms that fail behind
some nodes only.
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
"""Names of facts: the operators before a node, and those before each of its data inputs, by the input's place.

The other two say whether the model returns the node's result, and the size of the node's first input.
"""

SELDOM = frozenset((AFTER, BEHIND, LAST, SIZE))
"""The facts that a box has only if they separate right from wrong forms; it has `BEHIND` only if pairs were measured."""

ENDING = ".forms.jsonl"
"""The end of the name of a file of boxes."""

FAILING = ".failing.jsonl"
"""The end of the name of a file whose boxes hold failed forms."""

Box = Mapping[str, Set[str]]
"""The values that each fact may have, none for all; "" stands for a fact that a form does not have."""


@dataclass(frozen=True)
class NodeForm:
    """A node as the measurements describe it: its operator, and its facts by name; each fact is a short text."""

    domain: str
    operator: str
    facts: Mapping[str, str]


@dataclass(frozen=True)
class MeasuredForms:
    """The boxes of the releases of a runtime that were measured, oldest first, by operator."""

    releases: tuple[str, ...]
    boxes: Sequence[Mapping[str, Sequence[Box]]]
    pairs: Sequence[Mapping[str, Set[str]]]
    """The values of `BEHIND` that were right, each in its own entry; {} if pairs do not count."""

    def of(self, release: str) -> Mapping[str, Sequence[Box]] | None:
        """Return the boxes of the last release up to this one; None if it has none, and {} for a release older than all."""
        at = self._last(release)
        return {} if at is None else self.boxes[at] or None

    def pairs_of(self, release: str) -> Mapping[str, Set[str]]:
        """Return the pairs of the last release up to this one."""
        at = self._last(release)
        return {} if at is None else self.pairs[at]

    def _last(self, release: str) -> int | None:
        earlier_indices = [at for at, own in enumerate(self.releases) if key(own) <= key(release)]
        return earlier_indices[-1] if earlier_indices else None


def holds(box: Box, facts: Mapping[str, str], *, failing: bool = False) -> bool:
    """Return whether a form with these facts is in a box.

    With `failing`, the box holds failed forms, and facts that it does not name have no influence. A constant then fails
    in whatever way the model stores it: in a node, behind an Identity, or in an initializer.
    """
    if failing:
        return _in(box, facts) or _in(box, _with_initializers(facts))
    return all(name in box or name in SELDOM for name in facts) and _in(box, facts)


def pairs_in(facts: Mapping[str, str]) -> Set[str]:
    """Return the places of the inputs of a node with the operators before them."""
    return frozenset(filter(None, facts.get(BEHIND, "").split(",")))


def _in(box: Box, facts: Mapping[str, str]) -> bool:
    return all(
        not allowed_values or facts.get(name, "") in allowed_values for name, allowed_values in box.items()
    )


def _with_initializers(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a form whose constants are initializers."""
    before = [name for name in facts.get(AFTER, "").split(",") if name not in ("Constant", "Identity")]
    return {**facts, "inputs": facts.get("inputs", "").replace("i", "c"), AFTER: ",".join(before)}


def parse_forms(text: str) -> MeasuredForms:
    """Return the content of a file of boxes."""
    lines = map(json.loads, text.splitlines())
    releases = tuple(next(lines))
    boxes_by_release: list[dict[str, list[Box]]] = [defaultdict(list) for _ in releases]
    pairs: list[dict[str, Set[str]]] = [{} for _ in releases]
    for operator, own, box in lines:
        for at in own:
            # A list names pairs of an input's place and the operator before it; everything else is a box.
            if isinstance(box, list):
                pairs[at][operator] = pairs[at].get(operator, frozenset()) | frozenset(box)
            else:
                boxes_by_release[at][operator].append(
                    {name: frozenset(values) for name, values in box.items()}
                )
    return MeasuredForms(releases, boxes_by_release, pairs)


@cache
def shipped_forms(name: str, ending: str = ENDING) -> MeasuredForms | None:
    """Return the measured forms of a runtime's table; None if there are none."""
    path = files("onnx_migrate.standard.targets").joinpath("tables", f"{name}{ending}")
    return parse_forms(path.read_text(encoding="utf-8")) if path.is_file() else None
