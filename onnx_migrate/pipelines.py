"""The passes that a migration runs for its options."""

from __future__ import annotations

from onnx_migrate.declared import KeywordsOf
from onnx_migrate.engine.fitting_passes import FittingPass
from onnx_migrate.engine.pass_infra import default_passes
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.options import Options

__all__ = ["default_pipeline", "pipeline_of"]


def pipeline_of(options: Options) -> Pipeline:
    """Return the passes of a migration: the default ones or `pipeline`, with `passes`, without `skip_pass`. Raises UsageError."""
    pipeline = options.pipeline
    if pipeline is None:
        # A caller's own pipeline replaces all default passes.
        pipeline = Pipeline(tuple(default_passes(options)))
    # The user's passes run before the simplifier and the fitting to a runtime, which judge the final nodes.
    last = next(
        (
            pipeline_pass.name
            for pipeline_pass in pipeline
            if pipeline_pass.optional or isinstance(pipeline_pass, FittingPass)
        ),
        None,
    )
    for pipeline_pass in options.passes:
        pipeline = pipeline.add(pipeline_pass, before=last)
    skipped = [options.skip_pass] if isinstance(options.skip_pass, str) else options.skip_pass
    return pipeline.without(*(name.strip() for names in skipped for name in names.split(",")))


@KeywordsOf(Options)
def default_pipeline(options: Options) -> Pipeline:
    """Return the passes `migrate` runs with these keywords, installed ones included, to list, reorder or extend."""
    return pipeline_of(options)
