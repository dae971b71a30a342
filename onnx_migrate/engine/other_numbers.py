"""The obligation of a pass after which the model computes other numbers, because the user asked for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onnx import TensorProto

from onnx_migrate.engine.obligations import Behind, Obligation
from onnx_migrate.errors import VerificationFailed
from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import Distance, Kind, RoundedOutput, Statement, Verdict
from onnx_migrate.verdicts.other_numbers import statement_on, within_limits

__all__ = ["AS_ASKED", "OtherNumbers"]

_FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}

AS_ASKED = "as you asked"
"""Why most passes change numbers, as the end of a sentence."""


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
        floats = {
            value.name for value in before.proto.graph.output if value.type.tensor_type.elem_type in _FLOATS
        }
        if not self.limited:
            return statement_on(self.subject, distance, floats)
        return within_limits(self.subject, self.limited, distance, floats)
