"""How the model that a pass returns relates to the model before it, as a value that proves this relation.

Passes without an obligation keep every number: the verifier compares the models before and after them (`Segment`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from onnx_migrate.model.model import Model

if TYPE_CHECKING:
    from onnx_migrate.verdicts import Distance, Verdict

__all__ = ["Behind", "Chain", "Link", "Obligation", "PassResult"]


@dataclass(frozen=True)
class Behind:
    """The proof of the links behind an obligation.

    `result` is the last model of the chain, and `verdict` compares it with the model that the pass returned. `distance` is how
    far `result` is from the model before the pass; None if nobody measured it.
    """

    result: Model
    verdict: Verdict
    distance: Distance | None = None


class Obligation(ABC):
    """How the model after a pass relates to the model before it. Subclasses are frozen dataclasses.

    The verifier proves the links of a chain from the last to the first. Each obligation gets the verdict that compares the
    result with the model after its pass. It returns the verdict that compares the result with the model before its pass.
    """

    changes_interface: bool = False
    """Whether inputs or outputs get other names or types, or fewer of them stay."""
    other_numbers: ClassVar[bool] = False
    """Whether the model computes other numbers, because the user asked for them."""

    @property
    def sentence(self) -> str:
        """A warning for the report; "" if the notes of the pass say all."""
        return ""

    def baseline(self, earlier: Model, after: Model) -> Model:
        """Return the model that other runtimes run as the original: `earlier`, or `after` if the pass returned a part of it."""
        return earlier

    def feeds_after(self, feeds: Any, before: Model, after: Model) -> Any:
        """Return the user's `Feeds` for the model after the pass."""
        return feeds

    @abstractmethod
    def prove(self, prover: Any, before: Model, after: Model, behind: Behind) -> Verdict:
        """Return the verdict on the result as compared with `before`. Raises VerificationFailed.

        `prover` is a `verify.prover.Prover`, whose settings have the user's inputs for `before`. The annotation is Any, so
        that a conversion without a proof imports no verifier.
        """


@dataclass(frozen=True)
class Link:
    """A pass that has an obligation, with the models before and after it.

    `leads_to` is the place of the segment that begins with the model after it.
    """

    name: str
    before: Model
    after: Model
    obligation: Obligation
    leads_to: int


@dataclass(frozen=True)
class PassResult:
    """The model that a pass returns, and the obligation; None if the model computes simply the same numbers."""

    model: Model
    obligation: Obligation | None = None


@dataclass(frozen=True)
class Chain:
    """A fact of the model as a whole: the links up to now, in order."""

    links: tuple[Link, ...] = ()

    def baseline(self, original: Model) -> Model:
        """Return the model that other runtimes run as the original, since passes may have cut it or fixed values."""
        for link in self.links:
            if link.obligation.other_numbers:
                break
            original = link.obligation.baseline(original, link.after)
        return original

    def feeds_at(self, feeds: Any) -> Iterator[Any]:
        """Yield the user's `Feeds` for the model before each link, and for the model after the last; None if there are none."""
        yield feeds
        for link in self.links:
            if feeds is not None:
                feeds = link.obligation.feeds_after(feeds, link.before, link.after)
            yield feeds
