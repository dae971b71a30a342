"""Verifies a migrated model against the one it came from, proves dims that were made dynamic, and finds the faulty pass."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx_migrate import files, process
from onnx_migrate.advice import Advice, Hint
from onnx_migrate.errors import (
    CannotMigrate,
    MigrateError,
    VerificationFailed,
    Where,
    require_onnxruntime,
)
from onnx_migrate.messages import listed
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model, Segment
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.verdicts import DynamicProof, FirstDifference, Kind, LoadFailure, Verdict
from onnx_migrate.verify.equivalence.task import first_value, verify
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.evaluators.external_data import can_read_in_place
from onnx_migrate.verify.load_check import check_loads
from onnx_migrate.verify.precision.rounded_runs import compare_rounded
from onnx_migrate.verify.settings import Settings
from onnx_migrate.verify.weight_data import other_folded_weights, other_weights

__all__ = ["Proof", "Prover", "differing", "first_difference", "requires_unchanged"]

_PATIENCE = 120.0
"""Seconds after which no further model is compared; the message then names all remaining passes."""


@dataclass(frozen=True)
class Proof:
    """The verdict at the original's sizes, and the proof at other sizes if a pass made dims dynamic."""

    verdict: Verdict
    dynamic: DynamicProof | None = None


@dataclass
class Prover:
    """Verifies segments; as a context manager, deletes temporary copies of weights when it ends."""

    settings: Settings = field(default_factory=Settings)
    _temporary: ExitStack = field(default_factory=ExitStack, repr=False)
    _original: tuple[Model, Runnable] | None = field(default=None, repr=False)
    """The original that was last run, which is written to a file once."""

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *error: object) -> None:
        self._temporary.close()

    def prove(
        self, segment: Segment[Model], plan: DimPlan | None = None, unproved: DynamicProof | None = None
    ) -> Proof:
        """Verify a result and, if inputs have symbols in place of numbers, prove that these are free.

        `plan` has the dims that a pass made dynamic, and the symbols that are a batch. If time or memory runs out at other sizes,
        the result is unverified. `unproved` is such a proof of a similar result, and is not tried again. Raises
        VerificationFailed if the models differ or the result does not load, CannotMigrate if a dim is not free.
        """
        verdict = self.verify(segment)
        if verdict.load is not None:
            # A model that does not load has no dims to prove.
            raise _does_not_load(verdict, verdict.load)
        if verdict.kind is Kind.DIFFERS:
            raise differing(verdict)
        interfaces = Interface.of(segment.original.proto), Interface.of(segment.result.proto)
        # User passes may make dims dynamic that the plan does not know.
        new_dims = (plan or DimPlan()).made_between(*interfaces)
        symbols = new_dims.frozen_sizes
        if not symbols:
            return Proof(verdict)
        if unproved is not None and not unproved.determined:
            # A proof that ran out of time would do so again.
            return Proof(_not_proved(verdict, unproved), unproved)
        from onnx_migrate.verify.dynamic.proof import prove_dynamic  # few migrations make dims dynamic

        with requires_unchanged(segment.original, segment.result):
            proof = prove_dynamic(
                self.runnable(segment.result),
                symbols,
                new_dims.batch,
                self.settings,
                keeps_cells=new_dims.keeps_cells,
                bounds=new_dims.bounds,
            )
        if not proof.determined:
            return Proof(_not_proved(verdict, proof), proof)
        if not proof.holds:
            if not verdict.comparable:
                return Proof(verdict)  # the original does not run either: that says nothing of its dims
            blocker = proof.blocker
            where = (
                Where(node=blocker.node, operator=blocker.operator) if blocker and blocker.operator else None
            )
            raise CannotMigrate(
                proof.reason,
                code="frozen-dim",
                where=where,
                hint=f"do not make the axis that fails dynamic, or export the model with {listed(symbols)} dynamic",
            )
        return Proof(verdict, proof)

    def verify(self, segment: Segment[Model], *, strict: bool = False, by_value: bool = False) -> Verdict:
        """Compare a result with the original, at the original's sizes, and return any verdict.

        `strict` and `by_value` are those of `verify.verify`. If bit-identity is claimed, weights are first compared with the
        original's, as data, unless `strict` asks only for the same outputs. Weights of a simplified result are compared with
        those of the model before simplification.
        """
        unsimplified = segment.unsimplified
        if segment.exact and unsimplified is not None and not strict:
            for _, difference in other_weights(segment.original, unsimplified):
                reason = f"bit-identity is required, but a weight has other data: {difference}"
                return Verdict(Kind.DIFFERS, reason, exact=False)
        # Without simplification, there is nothing to compare.
        if unsimplified is not None and unsimplified is not segment.result:
            for difference in other_folded_weights(unsimplified, segment.result):
                return Verdict(Kind.DIFFERS, f"simplification changed a weight: {difference}")
        self._keep_original(segment.original)
        runnable = segment.map(self.runnable)
        with requires_unchanged(*segment.models()):
            verdict = verify(runnable, self.settings, strict=strict, by_value=by_value)
            return compare_rounded(verdict, runnable, self.settings) if verdict.verified else verdict

    def first_value(self, original: Model, result: Model) -> FirstDifference:
        """Return the first value that two models compute differently; it may be unknown."""
        return first_value(self.runnable(original), self.runnable(result), self.settings)

    def require_loadable(self, original: Model, result: Model, verdict: Verdict) -> Verdict:
        """Return `verdict`, which belongs to a similar result, for a result that cannot be compared.

        Raises VerificationFailed if the result does not load although the original does.
        """
        self._keep_original(original)
        with requires_unchanged(original, result):
            failure, doubt = check_loads(self.runnable(original), self.runnable(result), self.settings)
        if failure is not None:
            raise _does_not_load(replace(verdict, load=failure), failure)
        return replace(verdict, notes=tuple(dict.fromkeys((*verdict.notes, *filter(None, [doubt])))))

    def loads(self, result: Model, original: Model | None = None) -> bool:
        """Return whether ONNX Runtime loads a result, without and with optimisation, if it loads the `original` so."""
        from onnx_migrate.verify.loading import NOT_OPTIMISED

        with requires_unchanged(result):
            base = None if original is None else self.runnable(original)
            failure, doubt = check_loads(base, self.runnable(result), self.settings)
            return failure is None and doubt in ("", NOT_OPTIMISED)

    def _keep_original(self, original: Model) -> None:
        if self._original is None or self._original[0] is not original:
            self._original = original, self.runnable(original)

    def runnable(self, model: Model) -> Runnable:
        """Return a model in a form that runtimes load; weights in memory are written to a temporary file first.

        Raises UsageError if ONNX Runtime is not installed.
        """
        require_onnxruntime("a run of the model", "nothing else runs the original")
        if self._original is not None and self._original[0] is model:
            # The original is used in many comparisons, and is written once.
            return self._original[1]
        given_proto = model.as_given
        if model.weights.memory and (
            given_proto is not None or not can_read_in_place(model.proto, model.weights)
        ):
            folder = self._temporary.enter_context(TemporaryFolder())
            path = Path(folder, "model.onnx")
            if given_proto is not None:
                files.save(replace(model, proto=given_proto, as_given=None), path.with_name("given.onnx"))
                given_proto = files.load(path.with_name("given.onnx")).proto
            files.save(model, path)
            model = files.load(path)
        # Equal models must give equal bytes.
        structure = model.proto.SerializeToString(deterministic=True)
        return Runnable(
            structure=structure,
            weights=model.weights,
            libraries=self.settings.libraries,
            given=None if given_proto is None else given_proto.SerializeToString(deterministic=True),
        )


@contextmanager
def requires_unchanged(*models: Model) -> Iterator[None]:
    """Raise LoadError if a file of the models changed before the block ended, because the block's finding is then worthless.

    For example, native code crashes with a signal if it reads a file that another process truncates.
    """
    try:
        yield
    finally:
        for model in models:
            model.weights.require_unchanged()


def _not_proved(verdict: Verdict, proof: DynamicProof) -> Verdict:
    """Return the verdict on a result without runs at other sizes."""
    if verdict.kind is not Kind.VERIFIED:
        return verdict
    reason = f"the numbers agree at the original's sizes, but the dynamic dims are not proved: {proof.reason}"
    return replace(verdict, kind=Kind.UNVERIFIED, reason=reason)


def _does_not_load(verdict: Verdict, failure: LoadFailure) -> VerificationFailed:
    error = VerificationFailed(
        f"ONNX Runtime loads the original, but not the result: {failure.reason}",
        code="does-not-load",
        where=Where(node=failure.node, operator=failure.operator) if failure.node else None,
        hint=Advice("with optimisations off it loads", tried=True) if failure.unoptimised else "",
    )
    error.verification = verdict
    return error


def differing(verdict: Verdict) -> VerificationFailed:
    """Return the error for a verdict on numbers that differ."""
    where = Where(node=verdict.node) if verdict.node else None
    spread = next((entry.histogram for entry in verdict.comparisons if not entry.agrees), None)
    reason = f"{verdict.reason}; elements: {spread}" if spread else verdict.reason
    error = VerificationFailed(reason, where=where, hint=_hint(verdict))
    error.verification = verdict
    return error


def _hint(verdict: Verdict) -> Hint:
    """Return advice for users about a result that differs."""
    if verdict.exact is False and not verdict.own_rounding:
        return Advice(
            "a change that claims to keep every bit does not: please report this as a bug of onnx-migrate, or of your pass",
            tried=True,
        )
    if verdict.comparisons:
        return "--rtol and --atol allow larger differences, --input-data compares on other inputs"
    return ""


def first_difference(
    prover: Prover, start: Model, stages: Sequence[tuple[str, Model]], *, claimed: bool
) -> FirstDifference | None:
    """Return the first of `stages` whose model computes other numbers than `start`; None if there are none.

    `stages` are the names of passes that changed the model, in order, with the model after each; the last one differs. `claimed`
    says that bit-identity is required. The search skips a model that cannot be compared, for example one between two passes that
    does not load. Then several passes may be to blame.
    """
    if not stages:
        return None
    begin = time.perf_counter()
    good, bad = -1, len(stages) - 1
    # The last stage is known to differ.
    untried = list(range(bad))
    # A binary search: one proof takes long, and there may be dozens of passes.
    while untried and time.perf_counter() - begin < _PATIENCE and process.seconds_left():
        middle = untried[len(untried) // 2]
        model = stages[middle][1]
        same = _same(prover, Segment(start, model, model if claimed else None, claimed))
        if same is None:
            untried.remove(middle)
            continue
        good, bad = (middle, bad) if same else (good, middle)
        untried = [other for other in untried if good < other < bad]
    passes = tuple(name for name, _ in stages[good + 1 : bad + 1])
    before = start if good < 0 else stages[good][1]
    return replace(prover.first_value(before, stages[bad][1]), passes=passes)


def _same(prover: Prover, segment: Segment[Model]) -> bool | None:
    """Return whether the result computes the same as the original; None if that is unknown."""
    try:
        verdict = prover.verify(segment)
    except MigrateError:
        return None
    if verdict.load is not None or verdict.kind is Kind.UNVERIFIED:
        return None
    return verdict.verified
