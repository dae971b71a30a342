"""One migration, with its arguments resolved: load, run the pipeline, verify, prove elsewhere, report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, BinaryIO

import onnx

from onnx_migrate import files
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.pipeline_run import PipelineResult
from onnx_migrate.engine.stage_clock import StageClock
from onnx_migrate.errors import MigrateError, UsageError
from onnx_migrate.files import Beside
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.report import ModelSummary, PartialReport, Report
from onnx_migrate.report.diff_nodes import DiffEntry
from onnx_migrate.report.request import Request
from onnx_migrate.rewrite.annotations import differ_in_header_alone
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.operator_counts import PassEffect
from onnx_migrate.rewrite.simplification import Simplification
from onnx_migrate.verification import Policy, ProvingElsewhere, Verifying
from onnx_migrate.verify import ready_worker
from onnx_migrate.verify.elsewhere import Asked, RuntimeProof, prove_models
from onnx_migrate.verify.prover import Proof, Prover

__all__ = ["Migration", "MigrationRun"]


@dataclass(frozen=True)
class Migration:
    """A migrated and, unless that was left out, verified model, and the report of what was changed."""

    report: Report
    original: Model = field(repr=False)
    """The model as it was read, unchanged."""
    _model: Model = field(repr=False)

    def __str__(self) -> str:
        return self.report.text()

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The result with all its weights, read when first asked for."""
        return files.inline(self._model)

    @property
    def structure(self) -> onnx.ModelProto:
        """The result with its large weights left where they are, marked as external data; not to be changed."""
        return self._model.proto

    def same_as_original(self) -> bool:
        """Return whether the result equals the original, weights included; they are read only where moved."""
        return files.equal(self.original, self._model)

    def differences(self) -> list[DiffEntry]:
        """Return how the result differs from the original, node by node, as `--diff` shows it; for lines see `diff_lines`."""
        from onnx_migrate.report.diff import diff_entries

        weights = self.original.weights, self._model.weights
        return list(diff_entries(self.original.proto, self._model.proto, weights=weights))

    def save(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        external: bool = False,
        in_place: bool = False,
        beside: Beside | None = None,
    ) -> None:
        """Write the result to `path`, which may be a URL, atomically; weights go from file to file.

        A file object, opened in binary mode, gets it as by `write`.

        One file, unless that would be over 2 GB or `external` asks for the weights beside it, in PATH.data (by URL see
        `files.upload`).
        Writing over the source needs `in_place`. Raises SaveError, and then what was at `path` is still there.
        `beside` is for files that shall be there with the result or not at all: it is called with the size of the result
        when that is complete under a temporary name, and returns a context in which the result takes its name.
        """
        if not isinstance(path, (str, os.PathLike)):
            if external or in_place or beside or not hasattr(path, "write"):
                raise UsageError(
                    f"a result cannot be saved to a {type(path).__name__} with these arguments",
                    hint="give a path, or only a file opened in binary mode",
                )
            self.write(path)
            return
        files.save(self._model, path, external=external, in_place=in_place, beside=beside)

    def write(self, file: BinaryIO) -> None:
        """Write the result as one file to the end of an open file. Raises SaveError over 2 GB, LoadError and OSError."""
        files.write(self._model, file)


@dataclass(frozen=True)
class MigrationRun:
    """What one call of `migrate` is to do, resolved and checked, before the model is known."""

    pipeline: Pipeline
    request: Request
    policy: Policy
    simplified: bool
    """Whether a result without the optional passes is an error."""
    asked: tuple[Asked, ...]
    inputs: Mapping[str, Any]
    libraries: tuple[str, ...]
    running: Mapping[str, Any]
    clock: StageClock
    ready: bool
    """Whether a process for the verification is started while the passes run."""

    def of(self, source: files.Source | Model) -> Migration:
        """Load and migrate a model. Raises as `migrate` does."""
        if isinstance(source, Model):
            original = source
        else:
            with self.clock("load"):
                original = files.load(source)
        self.clock.seconds["load"] = original.load_seconds
        log = ChangeLog()
        try:
            result, proof, proofs = self._proved(original, log)
        except MigrateError as error:
            error.partial_report = PartialReport.of(
                original, log, error.where, self.clock.seconds, self.request
            )
            raise
        report = Report(
            model=original.name,
            before=ModelSummary.of(original.proto),
            after=ModelSummary.of(result.model.proto),
            passes=self.pipeline.names,
            changes=tuple(log.changes),
            notes=tuple(log.notes),
            verification=proof.verdict if proof else None,
            dynamic=proof.dynamic if proof else None,
            proved_in=proofs,
            dims=log.fact(DimPlan, "", "") or DimPlan(),
            simplified=log.fact(Simplification, "", ""),
            seconds=self.clock.seconds,
            request=self.request,
            effects=tuple(log.facts_of(PassEffect)),
            header_only=not log.changes and differ_in_header_alone(original, result.model),
        )
        return Migration(report, original, result.model)

    def _proved(
        self, original: Model, log: ChangeLog
    ) -> tuple[PipelineResult, Proof | None, tuple[RuntimeProof, ...]]:
        """Run the pipeline and verify what comes of it, here and in other runtimes."""
        proof: Proof | None = None
        with ready_worker(self.running["limits"]) if self.ready else nullcontext() as worker:
            result = self.pipeline.run(original, log, require_optional=self.simplified, stage=self.clock)
            prover_of = partial(
                Prover, **self.inputs, **self.running, worker=worker, libraries=self.libraries
            )
            verifying = Verifying(self.pipeline, prover_of, self.policy == "require", self.simplified)
            if self.policy != "off":
                with self.clock("verify"):
                    result, proof = verifying(original, result, log)
            elif any(ModelProperty.DYNAMIC_DIMS in item.ensures for item in self.pipeline):
                log.note(
                    "dynamic_dims",
                    "not-proved",
                    "verification was left out, so the model was not run at other sizes. Only that shows whether its"
                    " dynamic dims work",
                    severity="warning",
                )
            if not self.asked:
                return result, proof, ()
            with self.clock("prove"):
                proving = ProvingElsewhere(
                    lambda before, after, intended: prove_models(
                        self.asked, before, after, intended=intended, **self.inputs, **self.running
                    ),
                    lambda shorter, known: verifying.again(shorter, log, known),
                    self.simplified,
                )
                return proving(original, result, proof)
