"""The options that commands share, and the groups of their help: every option is in one, and 80 columns suffice."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import rich_click as click

from onnx_migrate.cli.app import app
from onnx_migrate.cli.options.panels import groups_of, in_panels
from onnx_migrate.cli.stop_signals import PROGRAM
from tests.cli.running import FAST, Run, first_dims, opset_of


def test_both_commands_have_the_same_options_in_one_order() -> None:
    names = [[item.name for item in app.commands[command].params] for command in ("migrate", "batch")]

    shared = [[name for name in own if name in set(names[0]) & set(names[1])] for own in names]
    own = {
        "in_place",
        "check",
        "timeout",
        "memory_limit",
        "html",
        "junit",
        "annotations",
        "allow_unverified",
        "open_page",
        "as_json",
        "config",
        "trust_config",
        "quiet",
    }
    assert [name for name in shared[0] if name not in own] == [name for name in shared[1] if name not in own]
    assert {"opset", "dynamic", "simplify", "verify", "resize_form", "rtol", "skip_pass"} <= set(shared[0])


def test_commands_that_run_models_have_the_same_options_of_a_comparison() -> None:
    names = ["mean", "std", "layout", "rtol", "atol", "seed"]
    options = {
        command: [
            (item.name, item.opts, item.help)
            for item in app.commands[command].params
            if isinstance(item, click.Option) and item.name in names
        ]
        for command in ("migrate", "reduce", "verify")
    }

    assert [name for name, _, _ in options["verify"]] == names
    assert options["reduce"] == options["verify"] == options["migrate"]


def test_the_options_that_differ_have_help_of_their_own() -> None:
    texts = {
        command: {item.name: getattr(item, "help", None) for item in app.commands[command].params}
        for command in ("migrate", "batch")
    }

    assert texts["migrate"]["timeout"] != texts["batch"]["timeout"]
    assert all(
        text
        for own in texts.values()
        for name, text in own.items()
        if name not in ("model", "output", "sources")
    )


@pytest.mark.parametrize("opset", ["abc", "17,", "ai.onnx.ml=", "1.5"])
def test_what_is_no_opset_is_refused_before_the_model_is_read(cli: Run, opset: str) -> None:
    ended = cli("missing.onnx", "out.onnx", "--opset", opset)

    assert (ended.code, ended.out) == (2, "")
    assert (
        "is not an opset (give a number, 17+ for 17 or newer, keep for the model's own, or latest)"
        in ended.err
    )


@pytest.mark.parametrize("option", ["--rtol", "--atol"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "x"])
def test_a_tolerance_is_a_number_that_is_0_or_more(cli: Run, folder: Path, option: str, value: str) -> None:
    ended = cli("small.onnx", "out.onnx", option, value)

    assert (ended.code, ended.out) == (2, "")
    assert option in ended.err
    assert not (folder / "out.onnx").exists()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("inspet", "small.onnx"), "did you mean onnx-migrate inspect small.onnx?"),
        (("bach", "models", "--out-dir", "x y"), "did you mean onnx-migrate batch models --out-dir 'x y'?"),
        (("convert", "small.onnx", "o.onnx"), "did you mean onnx-migrate migrate small.onnx o.onnx?"),
        (("compare", "a", "b"), "did you mean onnx-migrate verify a b?"),
        (
            ("small.onnx", "o.onnx", "17"),
            "(17): it takes MODEL and OUTPUT. For many models use onnx-migrate batch.",
        ),
        (("verify", "a", "b", "c"), "(c): it takes ORIGINAL and OTHER"),
        (("small.onnx", "a", "-o", "b"), "OUTPUT is given twice, as a and with --output b"),
        (("small.onnx", "o.onnx", "--timeout", "5m"), "Invalid value for '--timeout': '5m' is not a number."),
        (("batch", "small.onnx", "--check", "--jobs", "all"), "'all' is not a whole number."),
        (("small.onnx", "o.onnx", "--opest", "17"), "--opset"),
        (("small.onnx", "o.onnx", "--for", "tensort"), "did you mean tensorrt?)"),
        (("small.onnx", "o.onnx", "--dynamic", "xx:N,3,8,8"), "did you mean x?"),
    ],
)
def test_a_misspelt_word_is_answered_by_the_right_one(cli: Run, words: tuple[str, ...], meant: str) -> None:
    ended = cli(*words)

    assert (ended.code, ended.out) == (2, "")
    assert meant in ended.err


def test_options_may_be_written_with_underscores(cli: Run, folder: Path) -> None:
    assert cli("--dynamic_batch", "small.onnx", "out.onnx", "--target_opset", "15", "--no_simplify").code == 0
    assert (opset_of(folder / "out.onnx"), first_dims(folder / "out.onnx")[0]) == (15, "N")


def test_a_misspelt_file_and_a_folder_are_answered_by_what_is_there(cli: Run, folder: Path) -> None:
    assert "smal.onnx: no such file (did you mean small.onnx?)" in cli("smal.onnx", "out.onnx").err
    assert "onnx-migrate batch takes folders" in cli("..", "out.onnx").err


def test_help_is_a_word_too(cli: Run) -> None:
    assert cli("help").out == cli("--help").out
    assert cli("help", "batch").out == cli("batch", "--help").out


def test_a_file_with_nearly_the_name_of_a_command_is_a_file(cli: Run, folder: Path) -> None:
    (folder / "small.onnx").rename(folder / "inspet")
    assert cli("inspet", "out.onnx", *FAST).code == 0


@pytest.mark.parametrize("command", ["migrate", "batch", "inspect", "verify"])
@pytest.mark.parametrize("option", ["--timeout", "--memory-limit"])
def test_a_limit_of_nothing_is_refused(cli: Run, command: str, option: str) -> None:
    models = ["small.onnx", "small.onnx"] if command == "verify" else ["small.onnx"]
    done = cli(command, *models, option, "0")

    assert done.code == 2
    assert option in done.err


COMMANDS = [pytest.param(name, command, id=name) for name, command in app.commands.items()]


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_every_option_is_in_one_group(name: str, command: click.Command) -> None:
    grouped = [option.name for _, options in groups_of(command) for option in options]
    every = sorted(str(item.name) for item in command.params if isinstance(item, click.Option))
    assert sorted(grouped) == every, "a panel of onnx_migrate/cli/options/panels.py shows each option"


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
    assert "Opset, runtime and precision" in cli("migrate", "--help").out


def test_an_option_in_no_group_is_shown_all_the_same() -> None:
    @in_panels
    @click.command()
    @click.option("--new", help="Not in a group yet.")
    def command(new: str) -> None: ...

    assert "Not in a group yet." in command.get_help(click.RichContext(command))
