"""`onnx-migrate passes`: the passes of the default pipeline."""

from __future__ import annotations

import rich_click as click

from onnx_migrate.cli.options.panels import Command
from onnx_migrate.docstrings import docstring

__all__ = ["passes"]


@click.command(cls=Command)
def passes() -> None:
    """List the passes of a migration, in their order. Those of installed packages are in it."""
    from onnx_migrate.engine.pass_infra import UserPass
    from onnx_migrate.options import default_pipeline

    for item in default_pipeline(dynamic={}):
        source = item.function if isinstance(item, UserPass) else type(item)
        first = docstring(source).partition("\n")[0]
        click.echo(f"{item.name:15} {first}")
