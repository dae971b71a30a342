"""Options converted to the arguments of the library: contradictions, `--fix-shape`, `--dynamic-batch` before a path."""

from __future__ import annotations

import shutil
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import rich_click as click

import onnx_migrate
from onnx_migrate.cli.commands.migrate import migrate as migrate_command
from onnx_migrate.cli.options.arguments import arguments, bytes_of
from onnx_migrate.errors import UsageError
from tests.cli.running import FAST, Run, first_dims


def test_fix_undoes_dynamic(process: Run, folder: Path) -> None:
    process("small.onnx", "open.onnx", "--dynamic", "x:N,3,H,W", *FAST)

    ended = process("open.onnx", "out.onnx", "--fix-shape", "N=1", "--fix-shape", "x:1,3,8,8", *FAST)

    assert (ended.code, ended.err) == (0, "")
    assert first_dims(folder / "out.onnx") == [1, 3, 8, 8]
    assert process("open.onnx", "wrong.onnx", "--fix-shape", "K=1", *FAST).code == 2
    assert not (folder / "wrong.onnx").exists()


@pytest.mark.parametrize(
    ("options", "simplify", "verify"),
    [
        ([], True, "auto"),
        (["--no-simplify"], False, "auto"),
        (["--simplify=require", "--no-verify"], "require", "off"),
        (["--verify=require"], True, "require"),
        (["--verify=off"], True, "off"),
    ],
    ids=str,
)
def test_flags_become_arguments(
    cli: Run, monkeypatch: pytest.MonkeyPatch, options: list[str], simplify: object, verify: str
) -> None:
    given = {}

    def record(source: object, **arguments: object) -> None:
        given.update(arguments)
        raise UsageError("recorded")

    monkeypatch.setattr("onnx_migrate.migration.migrate", record)

    assert cli("small.onnx", "out.onnx", *options, "--memory-limit", "2").code == 2
    assert (given["simplify"], given["verify"], given["memory_limit"]) == (simplify, verify, 2 << 30)
    assert (given["dynamic"], given["fix_shape"], given["resize_form"]) == (None, None, None)


@pytest.mark.parametrize("name", ["simplify", "verify"])
def test_a_flag_overrides_the_config_file_but_not_the_command_line(cli: Run, folder: Path, name: str) -> None:
    (folder / "onnx-migrate.toml").write_text(f'{name} = "require"\n', encoding="utf-8")

    assert cli("small.onnx", "out.onnx", *FAST).code == 0
    ended = cli("small.onnx", "out.onnx", f"--no-{name}", f"--{name}=require")
    assert (ended.code, "contradict" in ended.err) == (2, True)


@pytest.mark.parametrize(("gigabytes", "expected"), [(None, None), (1.0, 2**30), (0.5, 2**29)])
def test_a_memory_limit_is_in_gibibytes(gigabytes: float | None, expected: int | None) -> None:
    assert bytes_of(gigabytes) == expected


ONLY_LIBRARY = {"source", "pipeline", "isolated", "progress", "cancel"}
"""Arguments of the library for what a script has and a command line has not."""

NOT_OF_MIGRATE = {
    "model", "output", "output_option", "in_place", "save_as_external_data",  # `Migration.save`
    # what is done with the result and the report
    "check", "dry_run", "diff", "depfile", "html", "junit", "annotations", "allow_unverified", "open_page",
    "as_json", "verbose", "quiet", "short_help",
    "config", "trust_config",  # where options are read from
}  # fmt: skip


@pytest.mark.parametrize(
    "option", [item for item in migrate_command.params if item.name not in NOT_OF_MIGRATE], ids=str
)
def test_the_library_takes_all_that_the_command_line_has(option: click.Parameter) -> None:
    values = {
        "--opset": "18", "--fix-shape": "N=1", "--for": "onnxruntime", "--run-in": "onnxruntime",
        "--keep-resize-mode": "tf_half_pixel_for_nn", "--precision-tolerance": "1%",
    }  # fmt: skip
    name = option.opts[0]
    assert isinstance(option, click.Option)
    if name not in values and isinstance(option.type, click.Choice):
        values[name] = option.type.choices[-1]
    takes_value = not option.is_flag and option.name not in ("dynamic_batch", "to_onnx_ops")
    words = [name, values.get(name, "3")] if takes_value else [name]

    def parsed(words: list[str]) -> dict[str, Any]:
        with migrate_command.make_context(
            "migrate", ["m.onnx", "o.onnx", "--config", "none", *words]
        ) as context:
            return arguments(dict(context.params))

    plain, given = parsed([]), parsed(words)
    assert plain != given, f"{name} changes no argument of the library"
    assert given.keys() | ONLY_LIBRARY == signature(onnx_migrate.migrate).parameters.keys()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--dynamic-batch", "small.onnx", "out.onnx"], "N"),
        (["--dynamic-batch=items", "small.onnx", "out.onnx"], "items"),
        (["small.onnx", "--dynamic-batch", "out.onnx"], "N"),
        (["small.onnx", "--dynamic-batch=items", "out.onnx"], "items"),
        (["small.onnx", "out.onnx", "--dynamic-batch"], "N"),
        (["small.onnx", "out.onnx", "--dynamic-batch=items"], "items"),
        (["small.onnx", "--dynamic-batch", "-o", "out.onnx"], "N"),
        (["--dynamic-batch", "--", "small.onnx", "out.onnx"], "N"),
        (["model", "out.onnx", "--dynamic-batch"], "N"),
        (["--dynamic-batch", "model", "out.onnx"], "N"),
        (["batch", "--dynamic-batch", "models", "--out-dir", "."], "N"),
        (["batch", "models", "--dynamic-batch", "--out-dir", "."], "N"),
        (["batch", "--dynamic-batch=items", "models", "--out-dir", "."], "items"),
        (["batch", "--out-dir", ".", "--dynamic-batch", "models"], "N"),
    ],
    ids=" ".join,
)
def test_the_option_may_precede_or_follow_paths(cli: Run, folder: Path, words: list[str], name: str) -> None:
    (folder / "models").mkdir()
    shutil.copy("small.onnx", "models/out.onnx")
    shutil.copy("small.onnx", "model")

    ended = cli(*words, *FAST) if "--" not in words else cli(*FAST, *words)

    assert (ended.code, ended.err) == (0, "")
    assert first_dims(folder / "out.onnx") == [name, 3, 8, 8]


@pytest.mark.parametrize(
    "words",
    [
        ["small.onnx", "out.onnx", "--dynamic-batch", "items"],
        ["small.onnx", "--dynamic-batch", "items"],
        ["batch", "small.onnx", "--dynamic-batch", "items", "--out-dir", "out"],
    ],
    ids=" ".join,
)
def test_a_name_without_an_equals_sign_is_wrong_usage(cli: Run, folder: Path, words: list[str]) -> None:
    ended = cli(*words)

    assert (ended.code, ended.out) == (2, "")
    assert "write --dynamic-batch=items for a name, ./items for a path" in ended.err
    assert [path.name for path in folder.iterdir()] == ["small.onnx"]


@pytest.mark.parametrize("command", ["migrate", "batch"])
def test_the_help_shows_the_equals_sign(cli: Run, command: str) -> None:
    assert "--dynamic-batch =NAME" in cli(command, "--help").out


@pytest.mark.parametrize(
    "words",
    [["--json-lines", "--jobs", "1"], ["--json_lines", "-j", "1"], ["--json-lines", "--out_dir=other"]],
    ids=str,
)
def test_an_option_in_place_of_a_value_is_wrong_usage(cli: Run, folder: Path, words: list[str]) -> None:
    before = sorted(folder.iterdir())

    ended = cli("batch", "small.onnx", "--out-dir", "out", *words)

    assert ended.code == 2
    assert (
        f"Option '{words[0]}' requires a value, and {words[1].partition('=')[0].replace('_', '-')} is an option"
        in ended.err
    )
    assert sorted(folder.iterdir()) == before


def test_a_value_behind_an_equals_sign_may_look_like_an_option(cli: Run, folder: Path) -> None:
    ended = cli("batch", "small.onnx", "--out-dir", "out", "--json-lines=--jobs", *FAST)

    assert (ended.code, (folder / "--jobs").is_file()) == (0, True)


def test_an_option_may_follow_one_whose_value_may_be_left_out(cli: Run, folder: Path) -> None:
    assert cli("small.onnx", "out.onnx", "--int32", "--quiet", *FAST).code == 0
