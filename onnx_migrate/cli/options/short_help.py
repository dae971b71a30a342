"""`-h`: the purpose of a command, an example, and the twelve options that most people need, on one screen."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import rich_click as click

__all__ = ["MOST", "SHORT_HELPS", "ShortHelp", "short_help_lines", "short_help_option"]

MOST = 12
"""Number of options that a short help shows."""

_WIDTH = 80
"""Largest number of characters of a line."""


@dataclass(frozen=True)
class ShortHelp:
    """The example of a command, without the program, and the options that most people need, in their order."""

    example: str
    options: tuple[str, ...] = ()


SHORT_HELPS = {
    "migrate": ShortHelp(
        "model.onnx out.onnx --opset 17 --dynamic-batch",
        (
            "--opset", "--for", "--dynamic-batch", "--dynamic", "--fix-shape", "--precision", "--to-onnx-ops", "--no-simplify",
            "--verify", "--html", "--check", "--verbose",
        ),
    ),
    "batch": ShortHelp(
        "batch models --out-dir out --opset 17 --jobs 4",
        (
            "--out-dir", "--in-place", "--check", "--opset", "--for", "--dynamic-batch", "--precision", "--jobs", "--timeout",
            "--resume", "--html", "--junit",
        ),
    ),
    "inspect": ShortHelp(
        "inspect model.onnx --for tensorrt==8.6", ("--for", "--opset", "--json", "--verbose", "--timeout")
    ),
    "verify": ShortHelp(
        "verify original.onnx other.onnx --input-data images.npz",
        (
            "--input-data", "--cast", "--rtol", "--atol", "--exact", "--match-name", "--run-in", "--html", "--json", "--verbose",
        ),
    ),
    "diff": ShortHelp("diff original.onnx other.onnx --stat", ("--stat", "--json", "--quiet")),
    "reduce": ShortHelp(
        "reduce model.onnx small.onnx --check 'python check.py {}'",
        (
            "--check", "--run-in", "--message", "--against", "--strip-weights", "--input-data", "--jobs", "--check-timeout",
            "--time-limit", "--json",
        ),
    ),
    "explain": ShortHelp('explain model.onnx "No Op registered for Range"', ("--json",)),
    "passes": ShortHelp("passes"),
}  # fmt: skip
"""By command."""


def short_help_option() -> click.Option:
    """Return the option `-h`, which prints the short help of its command."""
    return click.Option(
        ["-h", "short_help"], is_flag=True, is_eager=True, expose_value=False, callback=_print,
        help="Show the options that most people need, and exit.",
    )  # fmt: skip


def _print(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo("\n".join(short_help_lines(context)))
        context.exit()


def short_help_lines(context: click.Context) -> Iterator[str]:
    """Yield the short help of a command."""
    command, width = context.command, min(_WIDTH, shutil.get_terminal_size().columns)
    short = SHORT_HELPS.get(str(command.name), ShortHelp(""))
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"Usage: {context.command_path} {usage}", "")
    first = inspect.cleandoc(command.help or "").partition("\n\n")[0]
    yield from textwrap.wrap(" ".join(first.split()), width)
    if short.example:
        yield from ("", click.style("Example:", bold=True), f"  onnx-migrate {short.example}")
    options = {
        name: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
    }
    shown = [options[name] for name in short.options if name in options]
    if shown:
        yield from ("", click.style("Options:", bold=True))
        yield from _rows([(_name(option), _first_sentence(str(option.help))) for option in shown], width)
    hidden = sum(
        isinstance(parameter, click.Option) and parameter.name != "short_help" for parameter in command.params
    )
    if hidden > len(shown):
        yield from ("", f"{context.command_path} --help shows all {hidden} options and the exit codes.")


def _name(option: click.Option) -> str:
    """Return the flags of an option that readers need, and its value."""
    flags = sorted(option.opts, key=len)
    flags = [flags[0], flags[-1]] if len(flags[0]) == 2 and len(flags) > 1 else option.opts[:1]
    value = "" if option.is_flag else _metavar(option)
    return f"{', '.join(flags)}{value if value.startswith('[') else f' {value}'}".rstrip()


def _metavar(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    choices: Iterable[Any] = getattr(option.type, "choices", ())
    return "|".join(map(str, choices)) or option.type.name.upper()


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.])\s+(?=[A-Z0-9=@])", text, maxsplit=1)[0]


def _rows(rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield rows of two columns; a long name has a line of its own."""
    column = min(26, max(len(name) for name, _ in rows)) + 4
    for name, text in rows:
        first, *rest = textwrap.wrap(text, width - column)
        if len(name) + 3 > column:
            yield f"  {name}"
            rest.insert(0, first)
        else:
            yield f"  {name:{column - 2}}{first}"
        yield from (f"{'':{column}}{line}" for line in rest)
