"""Verifies a migrated model against the one it came from, and proves dims that were made dynamic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from onnx_migrate import files, isolate
from onnx_migrate.errors import CannotMigrate, VerificationFailed, Where
from onnx_migrate.isolate import Limits, Listener, Worker
from onnx_migrate.isolate.temporary import TemporaryFolder
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.plural import listed
from onnx_migrate.verify import (
    DynamicProof,
    Feeds,
    InputData,
    Kind,
    LoadFailure,
    Runnable,
    Tolerance,
    Verdict,
    prove_dynamic,
    verify,
)
from onnx_migrate.verify.first_value import NOTHING
from onnx_migrate.verify.folded_weights import other_folded_weights
from onnx_migrate.verify.load_check import check_loads
from onnx_migrate.verify.weight_data import other_weights

__all__ = ["Proof", "Prover"]


@dataclass(frozen=True)
class Proof:
    """The verdict at the original's sizes, and the proof at other sizes where dims were made dynamic."""

    verdict: Verdict
    dynamic: DynamicProof | None = None


@dataclass
class Prover:
    """Verifies results against one original; as a context manager, deletes temporary copies of weights when it ends."""

    original: Model
    input_data: InputData | None
    rtol: float | None
    atol: float | None
    seed: int
    limits: Limits
    isolated: bool
    listen: Listener | None = None
    """What gets how far a verification has come."""
    worker: Worker | None = None
    """A child process that is ready for the verification."""
    libraries: tuple[str, ...] = ()
    """Libraries with kernels of custom operators, for ONNX Runtime."""
    _temporary: ExitStack = field(default_factory=ExitStack, repr=False)

    def __enter__(self) -> Prover:
        return self

    def __exit__(self, *error: object) -> None:
        self._temporary.close()

    def prove(
        self,
        result: Model,
        exact: Model | None = None,
        plan: DimPlan | None = None,
        lifted: Model | None = None,
        unproved: DynamicProof | None = None,
        other: Model | None = None,
    ) -> Proof:
        """Verify a result and, where inputs have symbols in place of numbers, prove that these are free.

        `exact` is the model after all changes that claim bit-identity; without it the numbers may differ by rounding.
        `lifted` is the result before simplification, by which the runtime's own rounding is told from a fault.
        `plan` is what a pass made dynamic; it says which symbols are a batch.
        Raises VerificationFailed where they differ or the result does not load, CannotMigrate where a dim is not free.
        Where time or memory runs out at other sizes, the verdict is that the result is unverified; `unproved` is such
        a proof of a result like this one, which is not tried again. `other` is a model whose distance from the original
        is measured.
        """
        verdict = self.verify(result, exact, lifted, other=other)
        if verdict.load is not None:
            raise _does_not_load(verdict, verdict.load)
        if verdict.kind is Kind.DIFFERS:
            raise _differs(verdict)
        before, after = Interface.of(self.original.proto), Interface.of(result.proto)
        made = (plan or DimPlan()).made_between(before, after)
        symbols = made.frozen_sizes
        if not symbols:
            return Proof(verdict)
        if unproved is not None and not unproved.determined:
            return Proof(_not_proved(verdict, unproved), unproved)
        with self._requires_unchanged(result):
            proof = prove_dynamic(
                self._runnable(result),
                symbols,
                made.batch,
                seed=self.seed,
                limits=self.limits,
                isolated=self.isolated,
                listen=self.listen,
                worker=self.worker,
            )
        if not proof.determined:
            return Proof(_not_proved(verdict, proof), proof)
        if not proof.holds:
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

    @contextmanager
    def _requires_unchanged(self, *models: Model | None) -> Iterator[None]:
        """Raise LoadError if a file of the models was changed before the block ends: then what it found says nothing.

        Native code that reads a file which is cut ends by a signal, for example.
        """
        try:
            yield
        finally:
            for model in (self.original, *models):
                if model is not None:
                    model.weights.require_unchanged()

    def verify(
        self,
        result: Model,
        exact: Model | None = None,
        lifted: Model | None = None,
        *,
        strict: bool = False,
        by_value: bool = False,
        other: Model | None = None,
    ) -> Verdict:
        """Compare a result with the original, at the original's sizes, and return the verdict, whatever it is.

        `exact` and what follows are those of `verify.verify`. Where a model claims bit-identity, its weights are compared
        with the original's first, as data; unless `strict`, which asks for the same outputs. So are those of a simplified
        result, with those of the model that it was made from.
        """
        claimed = exact or lifted
        if exact is not None and not strict:
            for _, difference in other_weights(self.original, exact):
                reason = f"bit-identity is required, but a weight has other data: {difference}"
                return Verdict(Kind.DIFFERS, reason, exact=False)
        if claimed is not None and claimed is not result:
            for _, difference in other_folded_weights(claimed, result):
                return Verdict(Kind.DIFFERS, f"simplification changed a weight: {difference}")
        runnable = self._runnable(result)
        claim = runnable if claimed is result else None if claimed is None else self._runnable(claimed)
        with self._requires_unchanged(result, exact, lifted, other):
            return verify(
                self._before,
                runnable,
                exact=None if exact is None else claim,
                lifted=claim if exact is None else None,
                strict=strict,
                by_value=by_value,
                other=None if other is None else self._runnable(other),
                feeds=None if self.input_data is None else Feeds.of(self.input_data),
                tolerance=Tolerance(rtol=self.rtol, atol=self.atol),
                seed=self.seed,
                limits=self.limits,
                isolated=self.isolated,
                listen=self.listen,
                worker=self.worker,
            )

    def first_value(self, before: Model, after: Model) -> tuple[str, str, str, str]:
        """Return node, operator, name and problem of the first value that two models compute differently; "" if none is found."""
        given = None if self.input_data is None else Feeds.of(self.input_data)
        ending = isolate.run(
            "onnx_migrate.verify.first_value:first_value",
            self._runnable(before),
            self._runnable(after),
            given,
            self.seed,
            limits=self.limits,
            isolated=self.isolated,
        )
        found: tuple[str, str, str, str] = ending.value if isinstance(ending, isolate.Returned) else NOTHING
        return found

    def require_loadable(self, result: Model, verdict: Verdict) -> Verdict:
        """Return the verdict on a result that cannot be compared: `verdict`, on a result like it.

        Raises VerificationFailed if it does not load where the original does.
        """
        with self._requires_unchanged(result):
            failure, doubt = check_loads(
                self._before, self._runnable(result), limits=self.limits, isolated=self.isolated
            )
        if failure is not None:
            raise _does_not_load(replace(verdict, load=failure), failure)
        return replace(verdict, notes=tuple(dict.fromkeys((*verdict.notes, *filter(None, [doubt])))))

    def loads(self, result: Model) -> bool:
        """Return whether ONNX Runtime loads a result, without and with optimisation."""
        with self._requires_unchanged(result):
            found = check_loads(None, self._runnable(result), limits=self.limits, isolated=self.isolated)
        return found == (None, "")

    @cached_property
    def _before(self) -> Runnable:
        return self._runnable(self.original)

    def _runnable(self, model: Model) -> Runnable:
        """Return a model in a form that runtimes load; weights in memory are written to a temporary file first."""
        if model.weights.memory:
            folder = self._temporary.enter_context(TemporaryFolder())
            path = Path(folder, "model.onnx")
            files.save(model, path)
            model = files.load(path)
        structure = model.proto.SerializeToString(deterministic=True)
        return Runnable(structure=structure, weights=model.weights, libraries=self.libraries)


def _not_proved(verdict: Verdict, proof: DynamicProof) -> Verdict:
    """Return the verdict where the runs at other sizes were not done."""
    if verdict.kind is not Kind.VERIFIED:
        return verdict
    reason = f"the numbers agree at the original's sizes, but the dynamic dims are not proved: {proof.reason}"
    return replace(verdict, kind=Kind.UNVERIFIED, reason=reason)


def _does_not_load(verdict: Verdict, failure: LoadFailure) -> VerificationFailed:
    error = VerificationFailed(
        f"ONNX Runtime loads the original, but not the result: {failure.reason}",
        code="does-not-load",
        where=Where(node=failure.node, operator=failure.operator) if failure.node else None,
        hint="with optimisations off it loads as it is" if failure.unoptimised else "",
    )
    error.verification = verdict
    return error


def _differs(verdict: Verdict) -> VerificationFailed:
    where = Where(node=verdict.node) if verdict.node else None
    spread = next((entry.histogram for entry in verdict.comparisons if not entry.agrees), None)
    reason = f"{verdict.reason}; elements: {spread}" if spread else verdict.reason
    error = VerificationFailed(reason, where=where, hint=_hint(verdict))
    error.verification = verdict
    return error


def _hint(verdict: Verdict) -> str:
    """Return what a user can do about a result that differs."""
    if verdict.exact is False and not verdict.own_rounding:
        return "a change that claims to keep every bit does not: please report this as a bug of onnx-migrate, or of your pass"
    if verdict.comparisons:
        return "--rtol and --atol allow larger differences, --input-data compares on other inputs"
    return ""
