"""How the model that a pass returns relates to the model before it, as a value that proves this relation.

Passes without an obligation keep every number: the verifier compares the models before and after them (`Segment`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import Distance, Verdict

__all__ = ["AS_ASKED", "Baseline", "Behind", "Link", "Obligation", "OtherNumbers", "PassResult"]

AS_ASKED = "as it was asked to"
"""Why most passes change numbers, as the end of a sentence."""


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

    The verifier proves the links of a chain from the last to the first. Each obligation gets the verdict on the result as
    compared with the model after its pass, and returns the verdict as compared with the model before its pass.
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

        `prover` is a `verify.prover.Prover`, whose settings have the user's inputs for `before`. Its type is not named here, so
        that a conversion without a proof imports no verifier.
        """


@dataclass(frozen=True)
class OtherNumbers(Obligation):
    """The user asked for other numbers: `why` says for which, as the end of a sentence, and `by` is the pass.

    With `new_types`, inputs and outputs have other element types too.
    """

    other_numbers = True
    by: str
    why: str
    new_types: bool = False

    @property
    def changes_interface(self) -> bool:  # type: ignore[override]
        """Whether inputs and outputs have other element types."""
        return self.new_types

    @property
    def sentence(self) -> str:
        """Say that numbers changed, and which models the verifier compares."""
        return (
            f"{self.by} changed what the model computes, {self.why}. The verification therefore compares"
            f" the result with the model after {self.by}, not with the original"
        )

    def feeds_after(self, feeds: Any, before: Model, after: Model) -> Any:
        """Return the user's inputs in the element types of the model after the pass."""
        return feeds.in_types_of(after.proto) if self.new_types else feeds

    def prove(self, prover: Any, before: Model, after: Model, behind: Behind) -> Verdict:
        """Return the verdict, which says with which model the result was compared."""
        against = behind.verdict.compared_with or f"the model after {self.by}"
        return replace(behind.verdict, compared_with=against)


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
class Baseline:
    """A fact of the model as a whole: other runtimes run this model as the original, because a pass cut it or fixed values."""

    model: Model
