"""The library calls that migrate one model."""

from __future__ import annotations

import onnx

from onnx_migrate import files
from onnx_migrate.declared import KeywordsOf
from onnx_migrate.engine.pass_infra import make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.steps.step_table import import_steps
from onnx_migrate.migration_run import Migration, MigrationRun, StageClock
from onnx_migrate.model.model import Model
from onnx_migrate.options import Options, pipeline_of
from onnx_migrate.process import stoppable
from onnx_migrate.process.progress import Reporter
from onnx_migrate.report.request import Request
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.safe_open.transfers import transfers_within
from onnx_migrate.verification import policy_of
from onnx_migrate.verify import Settings, Tolerance
from onnx_migrate.verify.other_runtimes import asked_for
from onnx_migrate.verify.settings import libraries_of

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


@KeywordsOf(Options)
def migrate(source: files.Source | Model, options: Options) -> Migration:
    """Migrate a model to an opset, make dims dynamic, simplify it and verify that it computes the same.

    Args:
        source: a path, a URL that fsspec knows, the bytes of a model, a file opened in binary mode, a ModelProto of any size,
            an onnx_graphsurgeon.Graph, what torch.onnx.export(dynamo=True) returns, or a loaded Model; it is not touched.
        options: see `onnx_migrate.options.Options`.

    Raises:
        LoadError: the source cannot be read. UsageError: an argument does not fit the model, or others.
        CannotMigrate: a node has no equivalent at the target opset, or a dim cannot become dynamic.
        VerificationFailed: the numbers differ, the result does not load in ONNX Runtime where the original does, or it
            could not be verified with verify="require", or a runtime of `prove_in` does not run it right. PassError: a
            pass failed. Cancelled: `cancel` was set. All are MigrateError.
    """
    asked, policy = asked_for(options.prove_in), policy_of(options.verify)
    import_steps([options.adapters] if isinstance(options.adapters, str) else options.adapters)
    request, pipeline = Request.of(options), pipeline_of(options)
    stages = [
        "load",
        *pipeline.names,
        *(["verify"] if policy != "off" else []),
        *(["prove"] if asked else []),
    ]
    reporter = Reporter(options.progress, stages)
    run = MigrationRun(
        pipeline=pipeline,
        request=request,
        policy=policy,
        simplified=options.simplify == "require",
        asked=asked,
        settings=Settings(
            options.input_data,
            Tolerance(options.rtol, options.atol),
            options.seed,
            options.limits,
            options.isolated,
            reporter.within,
            libraries=libraries_of(options.ort_library),
        ),
        clock=StageClock(reporter.stage),
        ready=options.isolated
        and policy != "off"
        and options.ir_version is None,  # else it may take no run at all
    )
    with stoppable(options.cancel), transfers_within(options.timeout):
        return run.of(source)
