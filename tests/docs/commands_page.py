"""Writes docs/commands.md from the commands' own help. `python -m tests.docs.commands_page`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import rich_click as click

from onnx_migrate.cli.app import PROGRAM, app
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "commands.md"

HEAD = f"""# Commands

What `{PROGRAM} --help` and `{PROGRAM} COMMAND --help` say, on one page; `python -m tests.docs.commands_page` writes it.
An option that can be given in `{PROGRAM}.toml` has the same name there ([pipelines.md](pipelines.md#options-in-a-file)).
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
    words = [path, "[OPTIONS]", *map(_argument, arguments), *(["COMMAND"] if command is app else [])]
    yield f"    {' '.join(words)}\n"
    for paragraph in re.split(r"\n{2,}", inspect.cleandoc(command.help or "")):
        marked, _, block = paragraph.partition("\b\n")
        yield f"{marked}\n" if not block else f"```\n{block}\n```\n"
    options = [item for item in command.params if isinstance(item, click.Option)]
    if options:
        yield "\n".join(map(_option, options)) + "\n"


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or str(argument.name).upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = option.metavar or ("" if option.is_flag else _kind(option.type))
    default = option.default
    if isinstance(default, (tuple, list)):
        default = ",".join(map(str, default))
    if option.is_flag and option.secondary_opts:
        default = option.opts[0] if default else option.secondary_opts[0]
    shown_default = f" Default: `{default}`." if option.show_default else ""
    return f"- {names}{f' `{value}`' if value else ''}: {option.help}{shown_default}"


def _kind(kind: click.ParamType) -> str:
    return "|".join(kind.choices) if isinstance(kind, click.Choice) else kind.name.upper()


if __name__ == "__main__":
    main()
