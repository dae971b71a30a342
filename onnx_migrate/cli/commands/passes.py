"""`onnx-migrate passes`: the passes of the default pipeline."""

from __future__ import annotations

import rich_click as click

from onnx_migrate.cli.options.panels import Command
from onnx_migrate.docstrings import docstring

__all__ = ["passes"]


@click.command(cls=Command)
def passes() -> None:
    """List the passes of a migration.

    In the order they run, including those that other packages install. Passes that run only with --pass NAME come last.
    """
    from onnx_migrate.engine.pass_infra import UserPass, package_of, passes_on_request
    from onnx_migrate.options import Options
    from onnx_migrate.pipelines import pipeline_of

    on_request = passes_on_request()
    for listed_pass in (*pipeline_of(Options.of_installed(dynamic={})), *on_request):
        source = listed_pass.function if isinstance(listed_pass, UserPass) else type(listed_pass)
        first = docstring(source).partition("\n")[0]
        on_demand = f", with --pass {listed_pass.name} only" if listed_pass in on_request else ""
        package = f" (package {package_of(listed_pass)}{on_demand})" if package_of(listed_pass) else ""
        click.echo(f"{listed_pass.name:15} {first}{package}")
