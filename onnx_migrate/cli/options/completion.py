"""Shell completion of values that are not files: functions of click's context, parameter, and the text typed so far."""

from __future__ import annotations

import rich_click as click
from click.shell_completion import CompletionItem

__all__ = ["codes", "evaluators", "pass_names", "runtimes"]


def codes(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return what `onnx-migrate explain` knows by name: codes, steps, operators, runtimes and error texts."""
    from onnx_migrate.explanation import names

    return [name for name in names() if name.lower().startswith(typed.lower())]


def evaluators(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the runtimes of `--prove-in`."""
    from onnx_migrate.verify.evaluators.foreign import TITLES

    return [name for name in TITLES if name.startswith(typed)]


def pass_names(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Return the passes that `--without` can leave out."""
    from onnx_migrate.engine.pipeline import default_pipeline

    return [item.name for item in default_pipeline(dynamic={}) if item.name.startswith(typed)]


def runtimes(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[str] | list[CompletionItem]:
    """Return the runtimes of `--for`, their other names if those fit, and after == the releases at which their tables change."""
    from onnx_migrate.spec.targets import known_names, shipped
    from onnx_migrate.spec.targets.shipped import spellings

    if typed.startswith((".", "/")):
        return [CompletionItem(typed, type="file")]
    name, given, _ = typed.partition("==")
    if not given:
        found = [known for known in known_names() if known.startswith(typed)]
        return found or sorted(known for known in spellings().values() if known.startswith(typed))
    if name not in known_names():
        return []
    releases = [f"{name}=={row.since}" for row in shipped(name).releases if row.since]
    return [release for release in releases if release.startswith(typed)]
