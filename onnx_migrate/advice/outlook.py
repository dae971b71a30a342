"""How a model stands with every known release of runtimes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from onnx_migrate.advice.advice import Advice, Standing
from onnx_migrate.advice.advisor import Advisor
from onnx_migrate.spec.targets import Table, Target, milestones
from onnx_migrate.spec.targets.releases import key

__all__ = ["Outlook", "outlooks", "with_nearest_release"]


@dataclass(frozen=True)
class Outlook:
    """Advice for the newest known release of a runtime, and how the model stands with all of them.

    `releases` are those at which the runtime's table changes, oldest first; what is said of one holds until the next.
    """

    advice: Advice
    releases: tuple[tuple[str, Standing], ...]

    def since(self, least: Standing) -> str:
        """Return the releases with which the model stands at least so well, as in "8.4 to 9.0, 10.0 and on"; "" for none."""
        spans = []
        for good, group in groupby(self.releases, lambda entry: entry[1].rank >= least.rank):
            names = [name for name, _ in group]
            if good:
                last = names[-1] == self.releases[-1][0]
                spans.append((names[0], names[-1], last))
        if spans and len(self.releases) == 1:
            return "yes"
        return ", ".join(
            f"{first} and on" if last else first if first == final else f"{first} to {final}"
            for first, final, last in spans
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **self.advice.as_dict(),
            "releases": [{"from": name, "standing": standing.value} for name, standing in self.releases],
        }


def outlooks(advisor: Advisor, tables: Iterable[Table]) -> tuple[Outlook, ...]:
    """Return the outlook for each of these runtimes."""
    return tuple(_outlook(advisor, milestones(table)) for table in tables)


def with_nearest_release(advisor: Advisor, advice: Advice) -> Advice:
    """Return advice that names the first later release with which the model stands better, where the answer is no."""
    target = advice.target
    if advice.standing.rank >= Standing.AFTER.rank:
        return advice
    later = [item for item in milestones(target.table) if key(item.number) > key(target.number)]
    for item in later:
        found = advisor.advise(item)
        if found.standing.rank >= Standing.AFTER.rank:
            return replace(advice, helps=(*advice.helps, f"{item} takes it {found.standing.value}"))
    return advice


def _outlook(advisor: Advisor, targets: tuple[Target, ...]) -> Outlook:
    found = [advisor.advise(target) for target in targets]
    return Outlook(found[-1], tuple((advice.target.release, advice.standing) for advice in found))
