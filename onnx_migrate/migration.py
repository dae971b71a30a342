"""The library calls that migrate one model, with all their arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from inspect import signature
from typing import Any, Literal

import onnx

from onnx_migrate import files
from onnx_migrate.engine.pass_infra import Pass, make_pass
from onnx_migrate.engine.pipeline import Pipeline, default_pipeline
from onnx_migrate.engine.pipeline_options import Opset, ResizeForm
from onnx_migrate.engine.stage_clock import StageClock
from onnx_migrate.engine.steps.step_table import import_steps
from onnx_migrate.errors import UsageError
from onnx_migrate.isolate import CancelToken, Limits, stoppable
from onnx_migrate.isolate.progress import ProgressListener, Reporter
from onnx_migrate.migration_run import Migration, MigrationRun
from onnx_migrate.model.dims.fixed_sizes import FixedDims
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.model import Model
from onnx_migrate.opening.transfers import transfers_within
from onnx_migrate.report.request import Request
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.spec.targets import Lower, Targets, resolve
from onnx_migrate.verification import Policy, policy_of
from onnx_migrate.verify import InputData
from onnx_migrate.verify.elsewhere import asked_for
from onnx_migrate.verify.ort_library import Libraries, libraries_of

__all__ = ["Migration", "convert_version", "migrate"]


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
    simplify: bool | Literal["auto", "require", "no"] = True,
    verify: bool | Policy = "auto",
    resize_form: ResizeForm | None = None,
    resize_intent: bool = False,
    keep: Collection[str] = (),
    keep_initializers_as_inputs: bool = False,
    ir_version: int | None = None,
    keep_ir: bool = False,
    drop_training: bool = False,
    passes: Sequence[Pass | Callable[..., Any] | str] = (),
    adapters: Sequence[str] = (),
    without: Sequence[str] = (),
    pipeline: Pipeline | None = None,
    input_data: InputData | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    timeout: float = 600.0,
    memory_limit: int | None = None,
    isolated: bool = True,
    ort_library: Libraries = (),
    prove_in: str | Sequence[str] = (),
    progress: ProgressListener | None = None,
    cancel: CancelToken | None = None,
) -> Migration:
    """Migrate a model to an opset, make dims dynamic, simplify it and verify that it computes the same.

    Args:
        source: a path, a URL that fsspec knows, the bytes of a model, a file opened in binary mode, a ModelProto of any size,
            an onnx_graphsurgeon.Graph, what torch.onnx.export(dynamo=True) returns, or a loaded Model; it is not touched.
        opset: the ai.onnx opset to reach; "17+", the default, is 17, or the model's own where that is newer; "latest" is the
            newest that the installed onnx knows. A mapping, or a text like "17,ai.onnx.ml=3", says one for each of
            ai.onnx, ai.onnx.ml and custom domains (`adapters`); what it does not name stays. With `ir_version` the default is
            that the opset stays.
        runtime: what the result has to run in: "tensorrt==8.6", "onnxruntime" for the installed release, the path of a file of
            your own ("./mychip.toml"), or several of these. It determines the opset, so `opset` may name that of ai.onnx.ml
            only; IR version, forms and operators become those that all of them take (docs/runtimes.md).
        lower: bring a model that is newer than `opset` down to it; with "nearest" to the nearest opset that it can reach,
            with False refuse it (code `downgrade`).
        dynamic: axes to make dynamic, as torch.onnx takes `dynamic_axes`, or whole shapes, {"x": ["N", 3, "H", "W"]} or
            "x:N,3,H,W", or several such texts.
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
        adapters: modules to import that register steps for operators of custom domains (`onnx_migrate.plugins`), besides those
            that are imported already and those of installed packages; `opset` may then name these domains.
        without: names of passes to leave out.
        pipeline: passes to run instead of the default ones. Options of the default pipeline, as `opset` and `dynamic`,
            then have no effect.
        input_data: inputs to verify on: arrays by input name, {"x": array}, a list of such dicts, the path of an .npz by input
            name, or a folder of input_*.pb.
        rtol: largest relative difference allowed.
        atol: largest absolute difference allowed.
        seed: of the random inputs.
        timeout: seconds that the simplifier, and the verification, may each take; and the download of a model, which has more
            time as long as it makes a megabyte a second.
        memory_limit: bytes of memory that each of them may take; three quarters of the machine's by default.
        isolated: run native code in child processes, so that a crash does not end this process.
        ort_library: shared libraries with kernels of custom operators, which ONNX Runtime loads (RegisterCustomOps) in the
            process that runs the models, so that they can be verified. They are native code, which that process runs.
        prove_in: runtimes to run the original and the result in too, where they are installed: "tract", or
            "onnxruntime==1.9@FOLDER", or several (docs/proving.md). The result must run in each, and be right, or be as
            far off as the original is there.
        progress: called, in this thread, as each stage begins and each run of the verification. What it raises ends the migration
            and is raised here; children are ended first.
        cancel: a threading.Event, or anything with `is_set`. Once it is set, within a tenth of a second where a child runs and at
            the next stage or run otherwise, children are ended and Cancelled is raised.

    Raises:
        LoadError: the source cannot be read. UsageError: an argument does not fit the model, or others.
        CannotMigrate: a node has no equivalent at the target opset, or a dim cannot become dynamic.
        VerificationFailed: the numbers differ, the result does not load in ONNX Runtime where the original does, or it
            could not be verified with verify="require", or a runtime of `prove_in` does not run it right. PassError: a
            pass failed. Cancelled: `cancel` was set. All are MigrateError.
    """
    arguments = dict(locals())
    asked = asked_for(prove_in)
    limits, policy = Limits.of(timeout, memory_limit), policy_of(verify)
    import_steps([adapters] if isinstance(adapters, str) else adapters)
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
            simplify=_is_simplified(simplify),
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
    stages = [
        "load",
        *pipeline.names,
        *(["verify"] if policy != "off" else []),
        *(["prove"] if asked else []),
    ]
    reporter = Reporter(progress, stages)
    run = MigrationRun(
        pipeline=pipeline,
        request=request,
        policy=policy,
        simplified=simplify == "require",
        asked=asked,
        inputs={"input_data": input_data, "rtol": rtol, "atol": atol, "seed": seed},
        libraries=libraries_of(ort_library),
        running={"limits": limits, "isolated": isolated, "listen": reporter.within},
        clock=StageClock(reporter.stage),
        ready=isolated and policy != "off" and ir_version is None,  # what is asked for may take no run at all
    )
    with stoppable(cancel), transfers_within(timeout):
        return run.of(source)


def _is_simplified(simplify: bool | str) -> bool:
    """Return whether to simplify. Raises UsageError, since every text would be true."""
    known: dict[bool | str, bool] = {True: True, False: False, "auto": True, "require": True, "no": False}
    if not isinstance(simplify, (bool, str)) or simplify not in known:
        raise UsageError(
            f"simplify={simplify!r} is not known",
            hint='it is "require", "auto", "no", True (auto) or False (no)',
        )
    return known[simplify]


@cache
def _defaults() -> dict[str, Any]:
    """Return the defaults of the arguments of `migrate`."""
    return {name: parameter.default for name, parameter in signature(migrate).parameters.items()}
