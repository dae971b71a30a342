"""The library calls that migrate one model: load, run the pipeline, verify, prove in other runtimes, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast

from onnx_migrate import files
from onnx_migrate.core_options import policy_of
from onnx_migrate.declared import KeywordsOf, OfSource
from onnx_migrate.engine.features import functions_of
from onnx_migrate.engine.helping_passes import PartPass
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.obligations import Chain
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.pipeline_run import PipelineResult
from onnx_migrate.engine.steps.step_modules import import_steps
from onnx_migrate.errors import (
    CannotMigrate,
    InvalidModel,
    MigrateError,
    require_onnxruntime,
)
from onnx_migrate.files import GivenModel as M
from onnx_migrate.migration_result import Migration
from onnx_migrate.model.model import Model
from onnx_migrate.options import Options
from onnx_migrate.pipelines import pipeline_of
from onnx_migrate.process import OutOfTime, heard_by, stoppable
from onnx_migrate.process.progress import OWN_STAGES, Reporter
from onnx_migrate.report import ModelSummary, PartialReport, Report
from onnx_migrate.report.feature_values import recorded_values
from onnx_migrate.report.request import Request, settled_notes
from onnx_migrate.rewrite.annotations import differ_in_header_alone
from onnx_migrate.rewrite.change_log import ChangeLog, Rest
from onnx_migrate.rewrite.operator_counts import PassEffect
from onnx_migrate.safe_open.transfers import transfers_within
from onnx_migrate.verdicts import RuntimeProof
from onnx_migrate.verification import Verifying
from onnx_migrate.verify import Settings, ready_worker
from onnx_migrate.verify.prover import Proof, Prover
from onnx_migrate.verify.settings import inputs_of, libraries_of
from onnx_migrate.verify.tolerances import require_outputs, tolerance_of

if TYPE_CHECKING:
    from onnx_migrate.verification.in_runtimes import ProvingInRuntimes

__all__ = ["Migration", "StageClock", "migrate"]

P = ParamSpec("P")


class _Migrate(Protocol[P]):
    """`migrate` as type checkers see it: the result has the type of the caller's model."""

    def __call__(self, source: M | files.Content | Model, *args: P.args, **options: P.kwargs) -> Migration[M]:
        """Migrate a model."""


def _typed(function: OfSource[Any, P, Any]) -> _Migrate[P]:
    """Return the function; its type says which model comes back."""
    return cast("_Migrate[P]", function)


@_typed
@KeywordsOf(Options)
def migrate(source: files.Source | Model, options: Options) -> Migration[Any]:
    """Migrate a model to an opset, make dims dynamic, simplify it and verify that it computes the same.

    Args:
        source: a path, a URL that fsspec knows, the bytes of a model, or a file opened in binary mode. It may also be a
            ModelProto of any size, an onnx_graphsurgeon.Graph, the result of torch.onnx.export(dynamo=True), or a loaded
            Model. It stays unchanged.
        options: see `onnx_migrate.options.Options`.

    Raises:
        LoadError: the source is unreadable.
        UsageError: an argument does not fit the model, or other arguments.
        CannotMigrate: a node has no equivalent at the target opset, or a dim cannot become dynamic.
        VerificationFailed: the numbers differ, or ONNX Runtime loads the original but not the result. Also if verify="require"
            could not verify the result, or a runtime of `run_in` does not run it correctly.
        PassError: a pass failed.
        Cancelled: `cancel` was set. All of these are MigrateError.
    """
    with stoppable(options.cancel, options.timeout), transfers_within(options.timeout):

        def load() -> Model:
            nonlocal source
            source = source if isinstance(source, Model) else files.load(source)
            return source

        for complete in functions_of("completes", options):
            options = complete(options, load)
        return _Run(options).of(source)


class _Run:
    """The resolved and checked options of one call of `migrate`, before it loads the model."""

    def __init__(self, options: Options) -> None:
        self.policy = policy_of(options.verify)
        if self.policy != "off":
            require_onnxruntime("the verification", "or leave it out: --verify=off")
        self.in_runtimes = _in_runtimes(options.run_in)
        import_steps([options.adapters] if isinstance(options.adapters, str) else options.adapters)
        self.tolerance = tolerance_of(options.rtol, options.atol)
        self.inputs = inputs_of(
            options.input_data,
            mean=options.mean,
            std=options.std,
            layout=options.layout,
            most=options.max_inputs,
        )
        input_data = None if self.inputs is None else self.inputs.data
        self.request = Request.of(replace(options, input_data=input_data))
        self.options = options = replace(options, input_data=self.inputs)
        self.pipeline = pipeline_of(options)
        # A result without the optional passes is an error then.
        self.simplified = options.of_feature("simplify") == "require"
        self.strict = options.require_valid
        # A process for the verification starts while the passes run, unless the result may need no verification run.
        self.ready = options.isolated and self.policy != "off" and options.of_feature("ir_version") is None
        # The progress shows only the stages that run.
        proofs = [*(["verify"] if self.policy != "off" else []), *(["prove"] if self.in_runtimes else [])]
        reporter = Reporter(options.progress, _titles(self.pipeline, proofs))
        self.clock = StageClock(reporter.stage)
        self.settings = Settings(
            self.inputs,
            self.tolerance,
            options.seed,
            options.limits,
            options.isolated,
            reporter.within,
            libraries=libraries_of(options.ort_library),
        )

    def of(self, source: files.Source | Model) -> Migration[Any]:
        """Load and migrate a model. Raises as `migrate` does."""
        if isinstance(source, Model):
            original = source
        else:
            with self.clock("load"):
                original = files.load(source)
        self.clock.seconds["load"] = original.load_seconds
        log = ChangeLog()
        try:
            # Inputs that do not fit must not cost the time of the passes.
            self._bind_inputs(original)
            result, proof, proofs = self._proved(original, log)
        except MigrateError as error:
            self._add_remedies(error, original, _baseline(original, log))
            error.partial_report = PartialReport.of(
                original, log, error.where, self.clock.seconds, self.request
            )
            raise
        knowledge = self.request.operators_known(result.model)
        report = Report(
            model=original.name,
            before=ModelSummary.of(original.proto),
            after=ModelSummary.of(result.model.proto),
            passes=self.pipeline.names,
            changes=tuple(log.changes),
            notes=tuple(settled_notes(log.notes, knowledge)),
            verification=proof.verdict if proof else None,
            dynamic=proof.dynamic if proof else None,
            proved_in=proofs,
            seconds=self.clock.seconds,
            request=self.request,
            effects=tuple(log.facts_of(PassEffect)),
            operators_known=knowledge,
            header_only=not log.changes and differ_in_header_alone(original, result.model),
            same=not log.changes and files.equal(original, result.model),
            **recorded_values(log),
        )
        rest = log.fact(Rest, "", "")
        return Migration(report, original, result.model, rest.model if rest else None)

    def _bind_inputs(self, original: Model) -> None:
        """Read the user's inputs for the model, and check the names of outputs with limits. Raises UsageError."""
        part_passes = [
            pipeline_pass for pipeline_pass in self.pipeline if isinstance(pipeline_pass, PartPass)
        ]
        names = (name for part_pass in part_passes for name in part_pass.output_names(original))
        require_outputs(self.tolerance, (*names, *(value.name for value in original.proto.graph.output)))
        if self.inputs is not None and self.policy != "off":
            from onnx_migrate.verify.own_inputs import bind_inputs

            # A part may have inputs that no data was given for.
            bind_inputs(self.inputs, original, self.settings, complete=not part_passes)

    def _add_remedies(self, error: MigrateError, original: Model, baseline: Model) -> None:
        """Try the advice on an error, and add that of features if the passes refused the model."""
        # No option repairs an invalid model.
        if isinstance(error, InvalidModel):
            return
        from onnx_migrate.tried_advice import tried_advice

        error.advise(tried_advice(error, original, self.options))
        if not isinstance(error, CannotMigrate):
            return
        with suppress(OutOfTime):  # the refusal says more than the end of the search for a way out
            for advise in functions_of("advises", self.options):
                error.advise(advise(error, baseline, self.options))

    def _proved(
        self, original: Model, log: ChangeLog
    ) -> tuple[PipelineResult, Proof | None, tuple[RuntimeProof, ...]]:
        """Run the pipeline and verify its result, here and in other runtimes."""
        proof: Proof | None = None
        with ExitStack() as stack:
            if self.ready:
                with ready_worker(self.settings):
                    pass  # it waits among the kept workers, for the simplifier and for the proof
            with heard_by(self.settings.listen):
                result = self.pipeline.run(
                    original, log, require_optional=self.simplified, strict=self.strict, stage=self.clock
                )
            prover = stack.enter_context(Prover(self.settings))
            required = self.policy == "require"
            verifying = Verifying(self.pipeline, prover, required, self.simplified, log)
            if self.policy != "off":
                with self.clock("verify"):
                    result, proof = verifying(original, result)
            else:
                self._note_unproved_dims(log)
            if self.in_runtimes is None:
                return result, proof, ()
            with self.clock("prove"):
                return self.in_runtimes(verifying, _baseline(original, log), result, proof)

    def _note_unproved_dims(self, log: ChangeLog) -> None:
        for pipeline_pass in self.pipeline:
            if ModelProperty.DYNAMIC_DIMS in pipeline_pass.ensures:
                log.note(
                    pipeline_pass.name,
                    "not-proved",
                    "the verification is off, so the model did not run at other sizes. Only such runs show whether its"
                    " dynamic dims work",
                    severity="warning",
                )


def _in_runtimes(texts: str | Iterable[str]) -> ProvingInRuntimes | None:
    """Return the runs in other runtimes that the user asks for, None for none. Raises UsageError."""
    if not texts:
        return None
    from onnx_migrate.verification.in_runtimes import ProvingInRuntimes

    return ProvingInRuntimes.of(texts)


def _titles(pipeline: Pipeline, proofs: Iterable[str]) -> dict[str, str]:
    """Return the titles of the stages of a call by name, in their order."""
    passes = {
        pipeline_pass.name: pipeline_pass.title or f"running the pass {pipeline_pass.name}"
        for pipeline_pass in pipeline
    }
    return {"load": OWN_STAGES["load"], **passes, **{name: OWN_STAGES[name] for name in proofs}}


def _baseline(original: Model, log: ChangeLog) -> Model:
    """Return the model that stands for the original in other runtimes: the original, unless passes took a part of it."""
    return (log.fact(Chain, "", "") or Chain()).baseline(original)


class StageClock:
    """Times the stages and passes the name of each to `progress` as it begins."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress or (lambda stage: None)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time a block under the name of `stage`."""
        self._progress(stage)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
