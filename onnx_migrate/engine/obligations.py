"""How the model that a pass returns relates to the model before it, as a value that proves this relation.

Passes without an obligation keep every number: the verifier compares the models before and after them (`Segment`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from onnx import TensorProto

from onnx_migrate.errors import VerificationFailed
from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import (
    Distance,
    Kind,
    RoundedOutput,
    Statement,
    Verdict,
)

__all__ = ["AS_ASKED", "Behind", "Chain", "Link", "Obligation", "OtherNumbers", "PassResult"]

_FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}

AS_ASKED = "as you asked"
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
class OtherNumbers(Obligation):
    """The user asked for other numbers: `why` describes them, as the end of a sentence, and `by` is the pass.

    `subject` is their name in a statement of the verdict. With `new_types`, inputs and outputs have other element types too.
    `limited` are outputs that the pass measured, each with its limit; `unmeasured` says why it measured none although there is
    a limit. Without both, outputs may differ by any amount.
    """

    other_numbers = True
    by: str
    subject: str
    why: str = AS_ASKED
    new_types: bool = False
    limited: tuple[RoundedOutput, ...] = ()
    unmeasured: str = ""

    @property
    def changes_interface(self) -> bool:  # type: ignore[override]
        """Whether inputs and outputs have other element types."""
        return self.new_types

    @property
    def sentence(self) -> str:
        """Say that the numbers changed, and why."""
        return f"the model computes other numbers now, {self.why}"

    def feeds_after(self, feeds: Any, before: Model, after: Model) -> Any:
        """Return the user's inputs in the element types of the model after the pass."""
        return feeds.in_types_of(after.proto) if self.new_types else feeds

    def prove(self, prover: Any, before: Model, after: Model, behind: Behind) -> Verdict:
        """Return the verdict with a statement on how far the result is from the model before the pass.

        Beyond a limit, or if that is not known, the verdict is that the result is unverified. Raises VerificationFailed for NaN
        or infinities that the model before the pass does not compute, and for another shape.
        """
        statement, verdict = self._statement(before, behind.distance), behind.verdict
        if statement.kind is Kind.DIFFERS:
            error = VerificationFailed(str(statement), hint="--input-data compares on your own inputs")
            error.verification = replace(verdict, kind=Kind.DIFFERS, reason=error.reason)
            raise error
        if statement.kind is not Kind.VERIFIED and verdict.verified and (self.limited or self.unmeasured):
            verdict = replace(verdict, kind=Kind.UNVERIFIED, reason=str(statement))
        model = f"the model after {self.by}"
        stand_in = f"the passes behind {self.by} were compared with {model}"
        return replace(
            verdict,
            statements=(statement, *verdict.statements),
            stand_ins=(stand_in, *verdict.stand_ins),
            compared_with=verdict.compared_with or model,
            # The pass measured its own error; behind it the same model runs twice, so that its error there is 0.
            rounded=self.limited or verdict.rounded,
        )

    def _statement(self, before: Model, distance: Distance | None) -> Statement:
        if self.unmeasured:
            text = f"the numbers were not compared with the original's: {self.unmeasured}"
            return Statement(self.subject, text, Kind.UNVERIFIED)
        # Few results have other numbers, and the import takes as long as a small pass.
        from onnx_migrate.verdicts.other_numbers import statement_on, within_limits

        floats = {
            value.name for value in before.proto.graph.output if value.type.tensor_type.elem_type in _FLOATS
        }
        if not self.limited:
            return statement_on(self.subject, distance, floats)
        return within_limits(self.subject, self.limited, distance, floats)


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
