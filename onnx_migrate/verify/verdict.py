"""What a verification found, as values that pickle and turn into JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

__all__ = ["Blocker", "Comparison", "DynamicProof", "FeedNote", "Kind", "Trial", "Verdict"]


class Kind(str, Enum):
    """The three ways a verification ends."""

    VERIFIED = "verified"
    DIFFERS = "differs"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Comparison:
    """One output over all feeds and optimisation levels; figures are the largest seen.

    `largest_relative` is the largest absolute difference over the largest finite magnitude that the output
    has in the original on any feed (in the result, where that is zero). `allowed` is the absolute difference
    that was let pass. `differing` of `elements` are those that are not bit-identical. `problem` is empty when
    the output agrees. Shapes are those of the feed shown.
    """

    output: str
    shape_before: tuple[int, ...] | None
    shape_after: tuple[int, ...] | None
    dtype_before: str
    dtype_after: str
    largest_absolute: float = 0.0
    largest_relative: float = 0.0
    allowed: float = 0.0
    elements: int = 0
    differing: int = 0
    problem: str = ""

    @property
    def identical(self) -> bool:
        """Whether every element had the same bits."""
        return not self.problem and self.differing == 0

    @property
    def agrees(self) -> bool:
        """Whether the output is the same within what is allowed."""
        return not self.problem


@dataclass(frozen=True)
class FeedNote:
    """One set of inputs that was run: what it was, its seed (None: the user's), and its shapes."""

    name: str
    seed: int | None
    shapes: tuple[tuple[str, tuple[int, ...] | None], ...]


@dataclass(frozen=True)
class Verdict:
    """Whether original and result compute the same, by what, on what; `reason` says why where they do not.

    `exact` says whether the model for which bit-identity was claimed is bit for bit the original; None where
    nothing was claimed or it could not be run. `notes` are weaknesses of the proof and things worth knowing.
    `node` is the node that a runtime blamed, if any.
    """

    kind: Kind
    reason: str = ""
    evaluator: str = ""
    feeds: tuple[FeedNote, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    node: str = ""
    exact: bool | None = None

    @property
    def summary(self) -> str:
        """The verdict in a line."""
        if self.kind is not Kind.VERIFIED:
            return f"{self.kind.value}: {self.reason}"
        same = all(comparison.identical for comparison in self.comparisons)
        return (
            f"verified with {self.evaluator}, {'bit for bit the same' if same else 'the same up to rounding'}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; floats that JSON cannot hold become text."""
        plain: dict[str, Any] = _plain(asdict(self))
        for comparison, entry in zip(self.comparisons, plain["comparisons"], strict=True):
            entry["identical"] = comparison.identical
        return plain


@dataclass(frozen=True)
class Trial:
    """One run: the size of each symbol, and what was wrong ("" if nothing)."""

    sizes: tuple[tuple[str, int], ...]
    problem: str = ""


@dataclass(frozen=True)
class Blocker:
    """The node that holds a size fast, and the constant it does it with, as far as that is known."""

    node: str
    operator: str
    output: str = ""
    constant: str = ""
    holds: str = ""

    def __str__(self) -> str:
        name = f"{self.operator} {self.node or self.output!r}" if self.operator else repr(self.node)
        return name + (f" with constant {self.constant!r} = {self.holds}" if self.constant else "")


@dataclass(frozen=True)
class DynamicProof:
    """Whether the symbols are free; if not, `reason` and, where it could be found, the `blocker`."""

    holds: bool
    reason: str = ""
    blocker: Blocker | None = None
    trials: tuple[Trial, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value
