"""Values of a configuration file: what they may be, and that errors name the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest
import rich_click as click

from onnx_migrate.cli.commands.batch import batch
from onnx_migrate.cli.commands.migrate import migrate
from onnx_migrate.cli.options.config_values import line_of, options_of

FILE = Path("onnx-migrate.toml")


def options(command: click.Command = migrate, /, **table: object) -> dict[str, object]:
    return options_of(
        {key.replace("_", "-"): value for key, value in table.items()}, FILE, click.Context(command)
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text("# a comment\nopset = 17\n")


@pytest.mark.parametrize(("value", "found"), [(True, "N"), (False, None), ("batch", "batch")])
def test_a_dynamic_batch_is_true_or_a_name(value: object, found: object) -> None:
    assert options(dynamic_batch=value) == {"dynamic_batch": found}


def test_true_and_false_are_the_words_of_the_command_line() -> None:
    assert options(simplify=False, verify=True) == {"simplify": "no", "verify": "auto"}


def test_a_path_is_relative_to_the_file() -> None:
    found = options_of(
        {"input-data": "x.npz", "for": "./chip.toml"}, Path("/a/b.toml"), click.Context(migrate)
    )
    assert found == {"input_data": ["/a/x.npz"], "runtime": ["/a/chip.toml"]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"opset": True}, "line 2: opset must be a text or number, not True"),
        ({"opset": "x"}, "line 2: opset: 'x' is not an opset"),
        ({"opest": 3}, "unknown option opest; did you mean opset?"),
        ({"zzz": 3}, "unknown option zzz; known are adapters, atol, "),
        ({"rtol": -1}, "rtol: '-1' is not a finite number of at least 0, or OUTPUT:NUMBER"),
        ({"seed": [1]}, "seed takes one value, not a list"),
        ({"migrate": {"opset": 17}}, "there is no table [migrate]; options stand at the top of the file"),
    ],
)  # fmt: skip
def test_an_error_says_where_it_is(table: dict[str, object], message: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        options(**table)
    assert message in raised.value.message
    assert raised.value.message.startswith("onnx-migrate.toml")


def test_options_of_batch_alone_are_passed_over_by_others() -> None:
    assert options(jobs=2) == {}
    assert options(batch, jobs=2) == {"jobs": 2}


def test_the_line_is_that_of_the_right_table(tmp_path: Path) -> None:
    own = tmp_path / "a.toml"
    own.write_text(
        'opset = 1\n[[override]]\nfiles = "a"\nopset = 2\n[[override]]\nfiles = "b"\n"opset" = 3\n'
    )
    assert [line_of(own, "opset", place) for place in (None, 0, 1, 2)] == [
        ", line 1",
        ", line 4",
        ", line 7",
        "",
    ]
    project = tmp_path / "pyproject.toml"
    project.write_text(
        "[tool.ruff]\nopset = 0\n[tool.onnx-migrate]\nopset = 1\n[[tool.onnx-migrate.override]]\nopset = 2\n"
    )
    assert [line_of(project, "opset", place) for place in (None, 0)] == [", line 4", ", line 6"]
