"""Options converted to the arguments of the library: contradictions, precedence, `--fix`."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from onnx_migrate.errors import UsageError
from tests.cli.running import FAST, Run


def first_dims(path: Path) -> list[int | str]:
    (value,) = onnx.load(path).graph.input
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def test_fix_undoes_dynamic(process: Run, folder: Path) -> None:
    process("small.onnx", "open.onnx", "--dynamic", "x:N,3,H,W", *FAST)

    ended = process("open.onnx", "out.onnx", "--fix", "N=1", "--fix", "x:1,3,8,8", *FAST)

    assert (ended.code, ended.err) == (0, "")
    assert first_dims(folder / "out.onnx") == [1, 3, 8, 8]
    assert process("open.onnx", "wrong.onnx", "--fix", "K=1", *FAST).code == 2
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
    assert (given["dynamic"], given["fix"], given["resize_form"]) == (None, None, None)


def test_no_simplify_overrides_the_config_file_but_not_the_command_line(cli: Run, folder: Path) -> None:
    (folder / "onnx-migrate.toml").write_text('simplify = "require"\n', encoding="utf-8")

    assert cli("small.onnx", "out.onnx", "--no-simplify", "--no-verify").code == 0
    ended = cli("small.onnx", "out.onnx", "--no-simplify", "--simplify=require")
    assert (ended.code, "contradict" in ended.err) == (2, True)


def test_no_verify_overrides_the_config_file_but_not_the_command_line(cli: Run, folder: Path) -> None:
    (folder / "onnx-migrate.toml").write_text('verify = "require"\n', encoding="utf-8")

    assert cli("small.onnx", "out.onnx", "--no-simplify", "--no-verify").code == 0
    ended = cli("small.onnx", "out.onnx", "--no-verify", "--verify=require")
    assert (ended.code, "contradict" in ended.err) == (2, True)
