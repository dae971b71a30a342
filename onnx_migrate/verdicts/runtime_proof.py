"""The outcomes of a result and of its original in another runtime, with those that count as success and as failure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx_migrate.messages import share_text
from onnx_migrate.verdicts.comparison import Comparison

__all__ = ["PASSING", "RuntimeProof", "Side", "outcome_of", "proofs_text"]

PASSING = {
    "right": "the result is right, as the original is",
    "gained": "the result is right, and the original does not run there",
    "mended": "the result is right, and the original is not",
    "alike": "the result differs as much as the original does, because this runtime computes other numbers",
}
"""Meanings of the outcomes that allow onnx-migrate to write a result."""

_FAILING = {
    "worse": "the result is wrong, and the original is right",
    "otherwise": "the result is wrong, in another way than the original",
    "wrong": "the result is wrong, and the original does not run there",
    "lost": "the result does not run, and the original does",
    "refused": "neither the result nor the original runs",
    "unknown": "there is nothing to compare with",
}

_WORDS = PASSING | _FAILING


@dataclass(frozen=True)
class Side:
    """One of the two models in the runtime. `failed` is "", or "load" or "run", with the runtime's words in `reason`.

    `comparisons` are those with the original in ONNX Runtime, of each output the one that differs most.
    """

    failed: str = ""
    reason: str = ""
    comparisons: tuple[Comparison, ...] = ()

    @property
    def right(self) -> bool:
        """Whether it ran, and every output agrees."""
        return not self.failed and all(comparison.agrees for comparison in self.comparisons)

    @property
    def worst(self) -> Comparison | None:
        """The output that differs most, relative to its limit."""
        return max(self.comparisons, key=_badness, default=None)

    @property
    def text(self) -> str:
        """The outcome in words, for example "differs by up to 1e-07 of the largest value in 'y' (limit 9e-07)"."""
        if self.failed:
            return f"does not {self.failed}: {self.reason}"
        worst = self.worst
        if worst is None:
            return "runs"
        if worst.identical:
            return "is bit-identical"
        if worst.problem and not worst.largest_absolute:
            return f"is wrong in {worst.output!r}: {worst.problem}"
        if not worst.largest_relative:
            return f"differs by up to {worst.largest_absolute:.3g} in {worst.output!r} (limit {worst.allowed:.3g})"
        limit = share_text(worst.allowed * worst.largest_relative / worst.largest_absolute)
        share = share_text(worst.largest_relative)
        return f"differs by up to {share} of the largest value in {worst.output!r} (limit {limit})"


@dataclass(frozen=True)
class RuntimeProof:
    """The proof in one runtime: `asked` is the request, `runtime` the installed name and version.

    `outcome` is a key of the table of docs/proving.md. `original` is None if it was not run.
    """

    asked: str
    runtime: str
    outcome: str
    result: Side
    original: Side | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the result may be written."""
        return self.outcome in PASSING

    @property
    def text(self) -> str:
        """The proof on one line, without the name of the runtime."""
        beside = f"; the original {self.original.text}" if self.original is not None else ""
        return f"{_WORDS[self.outcome]}: the result {self.result.text}{beside}"


def outcome_of(result: Side, original: Side, *, alike: bool) -> str:
    """Return the outcome; `alike` is whether both compute the same in the runtime, within rounding."""
    if result.right:
        return "gained" if original.failed else "right" if original.right else "mended"
    if result.failed:
        return "refused" if original.failed else "lost"
    if original.failed:
        return "wrong"
    return "worse" if original.right else "alike" if alike else "otherwise"


def _badness(item: Comparison) -> tuple[bool, float, float]:
    share = item.largest_absolute / item.allowed if item.allowed else item.largest_absolute
    return bool(item.problem), share, item.largest_relative


def proofs_text(proofs: Iterable[RuntimeProof]) -> str:
    """Return the outcome of each proof, in one line."""
    return "; ".join(f"in {proof.runtime}, {proof.text}" for proof in proofs)
