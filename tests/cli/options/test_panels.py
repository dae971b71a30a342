"""The groups of the help: every option is in one, every example is a command that exists, and 80 columns suffice."""

from __future__ import annotations

import shlex

import pytest
import rich_click as click

from onnx_migrate.cli.app import app
from onnx_migrate.cli.options.panels import groups_of, in_panels
from onnx_migrate.cli.stop_signals import PROGRAM
from tests.cli.running import Run

COMMANDS = [pytest.param(name, command, id=name) for name, command in app.commands.items()]


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_every_option_is_in_one_group(name: str, command: click.Command) -> None:
    grouped = [option.name for _, options in groups_of(command) for option in options]
    assert sorted(grouped) == sorted(
        str(item.name) for item in command.params if isinstance(item, click.Option)
    )


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_examples_are_calls_of_the_command_with_an_option_of_the_group(
    name: str, command: click.Command
) -> None:
    for group, options in groups_of(command):
        example = group.examples.get(name)
        if example:
            words = shlex.split(example)
            own = words[1:] if words[0] in app.commands else words
            command.make_context(name, own, resilient_parsing=True)
            given = {word.partition("=")[0] for word in words}
            assert given & {text for option in options for text in option.opts}


@pytest.mark.parametrize("words", [[], *([name] for name in app.commands)], ids=str)
def test_help_fits_80_columns_and_shows_the_groups(
    words: list[str], cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli(*words, "--help").out
    assert max(map(len, shown.splitlines())) <= 80
    assert not words or f"Usage: {PROGRAM} {words[0]} [OPTIONS]" in shown
    assert "\n\n\n" not in "\n".join(line.rstrip() for line in shown.splitlines())


def test_the_usage_of_a_migration_shows_model_and_output(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "Usage: onnx-migrate migrate [OPTIONS] MODEL OUTPUT" in cli("migrate", "--help").out
    assert "Usage: onnx-migrate [OPTIONS] MODEL OUTPUT\n" in cli("--help").out
    assert "What to reach" in cli("migrate", "--help").out


def test_an_option_in_no_group_is_shown_all_the_same() -> None:
    @in_panels
    @click.command()
    @click.option("--new", help="Not in a group yet.")
    def command(new: str) -> None: ...

    assert "Not in a group yet." in command.get_help(click.RichContext(command))
