"""`-h`: one screen, at most twelve options, with an example that the command takes."""

from __future__ import annotations

import re
import shlex

import pytest
import rich_click as click

from onnx_migrate.cli.app import app
from onnx_migrate.cli.options.short_help import MOST, SHORT_HELPS, short_help_lines
from tests.cli.running import Run

COMMANDS = [pytest.param(name, command, id=name) for name, command in app.commands.items()]


@pytest.mark.parametrize("words", [[], *([name] for name in app.commands)], ids=str)
@pytest.mark.parametrize("columns", ["80", "200"])
def test_it_fits_a_screen(words: list[str], columns: str, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = cli(*words, "-h")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_its_options_are_those_of_the_command_and_at_most_twelve(name: str, command: click.Command) -> None:
    short = SHORT_HELPS[name]
    flags = {flag for option in command.params for flag in option.opts}
    assert set(short.options) <= flags
    assert len(short.options) <= MOST
    assert len(SHORT_HELPS["migrate"].options) == MOST


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_its_example_is_a_call(name: str, command: click.Command) -> None:
    words = shlex.split(SHORT_HELPS[name].example)
    own = words[1:] if words[0] == name else words
    with command.make_context(name, own, resilient_parsing=True) as context:
        assert not context.args


def test_a_narrow_terminal_gets_narrow_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    command = app.commands["verify"]
    lines = list(short_help_lines(click.RichContext(command, info_name="verify")))
    assert (
        max(len(line) for line in lines if "example" not in line and "onnx-migrate verify" not in line) <= 60
    )


def test_it_names_the_options_that_are_not_shown(cli: Run) -> None:
    shown = cli("migrate", "-h").out
    every = cli("migrate", "--help").out
    count = re.search(r"--help shows all (\d+) options", shown)
    assert count is not None
    assert (
        int(count[1])
        == sum(1 for item in app.commands["migrate"].params if isinstance(item, click.Option)) - 1
    )
    assert "--unroll-limit" not in shown
    assert "--unroll-limit" in every
    assert "Exit codes" in every


def test_every_command_has_a_line_in_the_help_of_the_program(cli: Run) -> None:
    lines = cli("-h").out.splitlines()
    for name in app.commands:
        assert sum(line.startswith(f"  {name} ") for line in lines) == 1


@pytest.mark.parametrize("option", ["--batch", "--batch-size"])
def test_a_batch_is_a_dynamic_batch(cli: Run, option: str) -> None:
    done = cli("small.onnx", "out.onnx", option, "4")
    assert (done.code, done.out) == (2, "")
    assert f"No such option '{option}': did you mean --dynamic-batch?" in done.err
