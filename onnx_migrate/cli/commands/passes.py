"""`onnx-migrate passes`: the pipeline."""

from __future__ import annotations

import inspect

import rich_click as click

__all__ = ["passes"]


@click.command()
def passes() -> None:
    """List the passes of the pipeline in the order they run, those of other distributions included."""
    from onnx_migrate.engine.pass_infra import UserPass
    from onnx_migrate.engine.pipeline import default_pipeline

    for item in default_pipeline(dynamic={}):
        source = item.function if isinstance(item, UserPass) else type(item)
        first = (inspect.getdoc(source) or "").partition("\n")[0]
        click.echo(f"{item.name:15} {first}")
