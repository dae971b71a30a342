"""Writes docs/commands.md from the commands' own help. `python -m tools.pages.commands_page`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import rich_click as click

from onnx_migrate.cli.app import app
from onnx_migrate.cli.options.panels import groups_of
from onnx_migrate.cli.stop_signals import PROGRAM
from tests.support.paths import ROOT

__all__ = ["PAGE", "argument_text", "default_text", "main", "page", "value_text"]

PAGE = ROOT / "docs" / "commands.md"

HEAD = f"""# Commands

This page shows the help of `{PROGRAM}` and of each of its commands. `{PROGRAM} COMMAND --help` prints the same, and `-h` the
options that most people need. You can
set an option in `{PROGRAM}.toml` by its name ([options in a file](pipelines.md#options-in-a-file)).
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the commands as they are."""
    parts = [HEAD, *_command(PROGRAM, app)]
    for name, command in app.commands.items():
        parts += [f"## {PROGRAM} {name}\n", *_command(f"{PROGRAM} {name}", command)]
    return "\n".join(parts)


def _command(path: str, command: click.Command) -> Iterator[str]:
    arguments = [item for item in command.params if isinstance(item, click.Argument)]
    words = [path, "[OPTIONS]", *map(argument_text, arguments), *(["COMMAND"] if command is app else [])]
    yield f"    {' '.join(words)}\n"
    for paragraph in re.split(r"\n{2,}", inspect.cleandoc(command.help or "")):
        marked, _, block = paragraph.partition("\b\n")
        yield f"{marked}\n" if not block else f"```\n{block}\n```\n"
    for group, options in groups_of(command):
        example = group.examples.get(str(command.name))
        yield f"**{group.title}**{f', for example `{PROGRAM} {example}`' if example else ''}\n"
        yield "\n".join(map(_option, options)) + "\n"


def argument_text(argument: click.Argument) -> str:
    """Return how an argument stands in a synopsis."""
    if argument.metavar:
        return argument.metavar
    name = str(argument.name).upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value, default = value_text(option), default_text(option)
    shown_default = f" Default: `{default}`." if default is not None else ""
    return f"- {names}{f' `{value}`' if value else ''}: {option.help}{shown_default}"


def value_text(option: click.Option) -> str:
    """Return what follows the name of an option, "" for a flag."""
    return option.metavar or ("" if option.is_flag else _kind(option.type))


def default_text(option: click.Option) -> str | None:
    """Return the default that the help shows, None where it shows none."""
    if not option.show_default:
        return None
    default = option.default
    if isinstance(default, (tuple, list)):
        default = ",".join(map(str, default))
    if option.is_flag and option.secondary_opts:
        default = option.opts[0] if default else option.secondary_opts[0]
    return str(default)


def _kind(kind: click.ParamType) -> str:
    return "|".join(kind.choices) if isinstance(kind, click.Choice) else kind.name.upper()


if __name__ == "__main__":
    main()
