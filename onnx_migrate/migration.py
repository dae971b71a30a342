"""The library calls that migrate one model: load, run the pipeline, verify."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from inspect import signature
from typing import Any, Literal

import onnx

from onnx_migrate import files
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, make_pass
from onnx_migrate.engine.pipeline import Pipeline, default_pipeline
from onnx_migrate.engine.pipeline_options import Opset, ResizeForm
from onnx_migrate.engine.stage_clock import StageClock
from onnx_migrate.errors import MigrateError
from onnx_migrate.isolate import Limits
from onnx_migrate.model.dim_plan import DimPlan
from onnx_migrate.model.dim_requests import DynamicAxes, FixedDims
from onnx_migrate.model.model import Model
from onnx_migrate.report import ModelSummary, PartialReport, Report
from onnx_migrate.report.request import Request
from onnx_migrate.rewrite.annotations import differ_in_header_alone
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.simplification import Simplification
from onnx_migrate.spec.targets import Lower, Targets, resolve
from onnx_migrate.verification import Policy, ProvingElsewhere, Verifying, policy_of
from onnx_migrate.verify import ready_worker
from onnx_migrate.verify.elsewhere import RuntimeProof, asked_for, prove_models
from onnx_migrate.verify.prover import Prover

__all__ = ["Migration", "convert_version", "migrate"]


@dataclass(frozen=True)
class Migration:
    """A migrated and, unless that was left out, verified model, and the report of what was changed."""

    report: Report
    original: Model = field(repr=False)
    """The model as it was read, unchanged."""
    _model: Model = field(repr=False)

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

    def save(self, path: str | os.PathLike[str], *, external: bool = False, in_place: bool = False) -> None:
        """Write the result to `path`, which may be a URL, atomically; weights go from file to file.

        One file, unless that would be over 2 GB or `external` asks for the weights beside it, in PATH.data (by URL see
        `files.upload`).
        Writing over the source needs `in_place`. Raises SaveError, and then what was at `path` is still there.
        """
        files.save(self._model, path, external=external, in_place=in_place)


def convert_version(model: onnx.ModelProto, target_version: int) -> onnx.ModelProto:
    """Return `model` at an ai.onnx opset; a drop-in for `onnx.version_converter.convert_version`.

    The argument is not touched. Opset and IR version change and nothing else: no simplification, no verification.
    References to external data that was not loaded stay; LoadError is raised if an adapter needs a value from there.
    A newer model is lowered. Raises CannotMigrate for a node without an equivalent at the target.
    """
    source = files.load(model, allow_missing_data=True)
    pipeline = Pipeline(
        (
            make_pass("migrate_opset", opset=target_version, unlist=False, newer="lower"),
            make_pass("lower_opset", opset=target_version),
        )
    )
    return files.inline(pipeline.run(source, ChangeLog()).model)


def migrate(
    source: files.Source | Model,
    *,
    opset: Opset | None = None,
    runtime: str | Sequence[str] | Targets | None = None,
    lower: Lower = True,
    dynamic: DynamicAxes | None = None,
    dynamic_batch: bool | str = False,
    fix: FixedDims | None = None,
    simplify: bool | Literal["require"] = True,
    verify: bool | Policy = "auto",
    resize_form: ResizeForm | None = None,
    resize_intent: bool = False,
    keep: Collection[str] = (),
    keep_initializers_as_inputs: bool = False,
    ir_version: int | None = None,
    keep_ir: bool = False,
    drop_training: bool = False,
    passes: Sequence[Pass | Callable[..., Any] | str] = (),
    without: Sequence[str] = (),
    pipeline: Pipeline | None = None,
    input_data: str | os.PathLike[str] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    timeout: float = 600.0,
    memory_limit: int | None = None,
    isolated: bool = True,
    progress: Callable[[str], None] | None = None,
    proof_progress: Callable[[str], None] | None = None,
    prove_in: str | Sequence[str] = (),
) -> Migration:
    """Migrate a model to an opset, make dims dynamic, simplify it and verify that it computes the same.

    Args:
        source: a path, a URL that fsspec knows, the bytes of a model, or a ModelProto or loaded Model (not touched).
        opset: the ai.onnx opset to reach; "17+", the default, is 17, or the model's own where that is newer; "latest" is the
            newest that the installed onnx knows. A mapping, or a text like "17,ai.onnx.ml=3", says one for each of
            ai.onnx and ai.onnx.ml; what it does not name stays. With `ir_version` the default is that the opset stays.
        runtime: what the result has to run in: "tensorrt==8.6", "onnxruntime" for the installed release, the path of a file of
            your own ("./mychip.toml"), or several of these. It determines the opset, so `opset` may name that of ai.onnx.ml
            only; IR version, forms and operators become those that all of them take (docs/runtimes.md).
        lower: bring a model that is newer than `opset` down to it; with "nearest" to the nearest opset that it can reach,
            with False refuse it (code `downgrade`).
        dynamic: axes to make dynamic, as torch.onnx takes `dynamic_axes`, or "x:N,3,H,W".
        dynamic_batch: make the batch axis of every input dynamic; a text is the symbol, else it is N.
        fix: sizes for dynamic dims: {"N": 1, "x": [1, 3, 224, 224]}, "N=1", "x:1,3,224,224", or several texts.
        simplify: run onnxsim. If it fails, the result is the unsimplified model and the report says so; with
            "require" the migration fails instead.
        verify: run the original and the result on the same inputs and compare all outputs; with `dynamic`, run the
            result at other sizes too. Where that cannot be done, "auto" returns an unverified result, which is not
            simplified, and the report says why; with "require" the migration fails. "off" compares nothing. True is
            "auto", False is "off".
        resize_form: write each Resize with "scales" or with "sizes" wherever that is exact; "auto", the default
            unless a `runtime` wants another, writes sizes where onnx infers another length from the scales than runtimes
            compute, so that the model would not load.
        resize_intent: rewrite each Resize to compute what the exporting framework did, where the file is known to say
            something else. The model's numbers change: the part before is compared with the original, and the result
            with the model after this rewriting.
        keep: attribute values that the standard has removed and ONNX Runtime still accepts: "tf_half_pixel_for_nn".
        keep_initializers_as_inputs: leave initializers in the graph's inputs, where callers can override them.
        ir_version: the IR version of the result. What a lower one than the model's does not have is written in another
            form, or refused (docs/ir-versions.md). Where nothing else is asked for, no other pass runs.
        keep_ir: leave the IR version as it is where the opset is lowered; else it is lowered with it.
        drop_training: remove training information, which IR versions below 7 do not have, for such an `ir_version`.
        passes: more passes, to run before simplify: functions of a ModelProto or a graphsurgeon Graph,
            "module:function", or passes.
        without: names of passes to leave out.
        pipeline: passes to run instead of the default ones. Options of the default pipeline, as `opset` and `dynamic`,
            then have no effect.
        input_data: inputs to verify on, an .npz by input name or a folder of input_*.pb.
        rtol: largest relative difference allowed.
        atol: largest absolute difference allowed.
        seed: of the random inputs.
        timeout: seconds that the simplifier, and the verification, may each take.
        memory_limit: bytes of memory that each of them may take; three quarters of the machine's by default.
        isolated: run native code in child processes, so that a crash does not end this process.
        progress: called with the name of each stage as it begins.
        proof_progress: called with how far the verification has come, as in "input 2 of 3, run 5 of 8".
        prove_in: runtimes to run the original and the result in too, where they are installed: "tract", or
            "onnxruntime==1.9@FOLDER", or several (docs/proving.md). The result must run in each, and be right, or be as
            far off as the original is there.

    Raises:
        LoadError: the source cannot be read. UsageError: an argument does not fit the model, or others.
        CannotMigrate: a node has no equivalent at the target opset, or a dim cannot become dynamic.
        VerificationFailed: the numbers differ, the result does not load in ONNX Runtime where the original does, or it
            could not be verified with verify="require", or a runtime of `prove_in` does not run it right. PassError: a
            pass failed. All are MigrateError.
    """
    arguments = dict(locals())
    asked = asked_for(prove_in)
    limits, policy = Limits.of(timeout, memory_limit), policy_of(verify)
    targets = None if runtime is None else resolve(runtime)
    request = Request.of(arguments, _defaults(), targets)
    if pipeline is None:
        pipeline = default_pipeline(
            opset=opset,
            targets=targets,
            lower=lower,
            dynamic=dynamic,
            dynamic_batch=dynamic_batch,
            fix=fix,
            simplify=bool(simplify),
            resize_form=resize_form,
            resize_intent=resize_intent,
            keep=keep,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            ir_version=ir_version,
            keep_ir=keep_ir,
            drop_training=drop_training,
            limits=limits,
            isolated=isolated,
        )
    last = next((item.name for item in pipeline if item.for_targets or item.name == "simplify"), None)
    for item in passes:
        pipeline = pipeline.add(item, before=last)
    pipeline = pipeline.without(*without)
    clock = StageClock(progress)
    if isinstance(source, Model):
        original = source
    else:
        with clock("load"):
            original = files.load(source)
    clock.seconds["load"] = original.load_seconds
    log, proof = ChangeLog(), None
    proofs: tuple[RuntimeProof, ...] = ()
    ready = isolated and policy != "off" and ir_version is None  # what is asked for may take no run at all
    with ready_worker(limits) if ready else nullcontext() as worker:
        try:
            result = pipeline.run(original, log, require_optional=simplify == "require", stage=clock)
            inputs: dict[str, Any] = {"input_data": input_data, "rtol": rtol, "atol": atol, "seed": seed}
            running: dict[str, Any] = {"limits": limits, "isolated": isolated, "listen": proof_progress}
            prover_of = partial(Prover, **inputs, **running, worker=worker)
            verifying = Verifying(pipeline, prover_of, policy == "require", simplify == "require")
            if policy != "off":
                with clock("verify"):
                    result, proof = verifying(original, result, log)
            elif any(ModelProperty.DYNAMIC_DIMS in item.ensures for item in pipeline):
                log.note(
                    "dynamic_dims",
                    "not-proved",
                    "verification was left out, so the model was not run at other sizes. Only that shows whether its"
                    " dynamic dims work",
                    severity="warning",
                )
            if asked:
                with clock("prove"):
                    proving = ProvingElsewhere(
                        lambda before, after, intended: prove_models(
                            asked, before, after, intended=intended, **inputs, **running
                        ),
                        lambda shorter, known: verifying.again(shorter, log, known),
                        simplify == "require",
                    )
                    result, proof, proofs = proving(original, result, proof)
        except MigrateError as error:
            error.partial_report = PartialReport.of(original, log, error.where, clock.seconds, request)
            raise
    report = Report(
        model=original.name,
        before=ModelSummary.of(original.proto),
        after=ModelSummary.of(result.model.proto),
        passes=pipeline.names,
        changes=tuple(log.changes),
        notes=tuple(log.notes),
        verification=proof.verdict.as_dict() if proof else None,
        dynamic=proof.dynamic.as_dict() if proof and proof.dynamic else None,
        proved_in=tuple(item.as_dict() for item in proofs),
        dims=log.fact(DimPlan, "", "") or DimPlan(),
        simplified=log.fact(Simplification, "", ""),
        seconds=clock.seconds,
        request=request,
        header_only=not log.changes and differ_in_header_alone(original, result.model),
    )
    return Migration(report, original, result.model)


@cache
def _defaults() -> dict[str, Any]:
    """Return the defaults of the arguments of `migrate`."""
    return {name: parameter.default for name, parameter in signature(migrate).parameters.items()}
