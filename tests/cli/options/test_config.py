"""Options from a config file."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest

from tests.cli.running import FAST, Run, first_dims, large, opset_of, snapshot


@pytest.fixture(params=["onnx-migrate.toml", "pyproject.toml"])
def write(request: pytest.FixtureRequest, folder: Path):  # type: ignore[no-untyped-def]
    def put(text: str, overrides: str = "") -> None:
        prefix = "" if request.param == "onnx-migrate.toml" else "tool.onnx-migrate."
        head = f"[{prefix[:-1]}]\n" if prefix else ""
        overrides = overrides.replace("[[override]]", f"[[{prefix}override]]")
        (folder / request.param).write_text(f"{head}{text}\n{overrides}", encoding="utf-8")

    return put


def test_options_are_read_from_the_file(cli: Run, folder: Path, write) -> None:  # type: ignore[no-untyped-def]
    write('opset = 18\nsimplify = false\nverify = false\ndynamic = ["x:N,3,H,W"]')

    assert cli("small.onnx", "out.onnx").code == 0
    assert opset_of(folder / "out.onnx") == 18
    assert first_dims(folder / "out.onnx")[0] == "N"
    assert cli("small.onnx", "out.onnx", "--opset", "15").code == 0
    assert opset_of(folder / "out.onnx") == 15, "the command line takes precedence"
    assert cli("small.onnx", "out.onnx", "--config", "none", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 17


OVERRIDES = """
[[override]]
files = ["old/*"]
opset = 13
[[override]]
files = "old/deep/*.onnx"
opset = 14
save-as-external-data = true
"""


def test_overrides_by_file(process: Run, folder: Path, write) -> None:  # type: ignore[no-untyped-def]
    write("opset = 18\nsimplify = false\nverify = false\njobs = 1", OVERRIDES)
    for name in ("old/deep/a.onnx", "old/b.onnx", "c.onnx"):
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        onnx.save(large(), folder / "in" / name)

    shutil.copytree(folder / "in" / "old", folder / "old")
    assert process("batch", "in/c.onnx", "old/b.onnx", "old/deep/a.onnx", "--out-dir", "out").code == 0

    assert {name: opset_of(folder / "out" / name) for name in ("a.onnx", "b.onnx", "c.onnx")} == {
        "a.onnx": 14, "b.onnx": 13, "c.onnx": 18,
    }  # fmt: skip
    assert [path.name for path in (folder / "out").glob("*.data")] == ["a.onnx.data"]
    assert process("old/b.onnx", "single.onnx").code == 0
    assert opset_of(folder / "single.onnx") == 13
    assert process("old/b.onnx", "single.onnx", "--opset", "16").code == 0
    assert opset_of(folder / "single.onnx") == 16


def test_the_nearest_parent_with_a_file_is_used(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "onnx-migrate.toml").write_text(
        "opset = 18\nverify = false\nsimplify = false\n", encoding="utf-8"
    )
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "pyproject.toml").write_text("[tool.black]\nline-length = 99\n", encoding="utf-8")
    monkeypatch.chdir(folder / "a" / "b")

    assert cli("../../small.onnx", "out.onnx").code == 0
    assert opset_of(folder / "a" / "b" / "out.onnx") == 18


@pytest.mark.parametrize(
    ("text", "contains"),
    [
        ("opset = ", "not TOML"),
        ("opsets = 17", "unknown option opsets"),
        ("output = 'x'", "unknown option output"),
        ("verify = 1", "'1' is not one of 'require', 'auto', 'off'"),
        ("quiet = 1", "unknown option quiet"),
        ("simplify = 'maybe'", "maybe"),
        ("seed = 'x'", "x"),
        ("override = 1", "must be an array of tables"),
        ("[[override]]\nopset = 17", "needs a key files"),
        ("[[override]]\nfiles = '*'\ntimeout = 1", "timeout cannot be set in an override"),
        ("[[override]]\nfiles = '*'\nbogus = 1", "unknown option bogus"),
    ],
)
def test_an_error_in_the_file_is_one_line(cli: Run, folder: Path, text: str, contains: str) -> None:
    (folder / "onnx-migrate.toml").write_text(text, encoding="utf-8")
    before = snapshot(folder)

    ended = cli("small.onnx", "out.onnx")

    assert (ended.code, ended.out) == (2, "")
    assert contains in ended.err
    assert ended.err.count("\n") == 1
    assert snapshot(folder) == before


def test_a_file_named_with_config_must_exist(cli: Run, folder: Path) -> None:
    assert cli("small.onnx", "out.onnx", "--config", "no.toml").code == 2


def test_paths_are_relative_to_the_folder_of_the_file(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "onnx-migrate.toml").write_text("input-data = 'no.npz'\nsimplify = false\n", encoding="utf-8")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")

    ended = cli("../small.onnx", "out.onnx")

    assert ended.code == 2
    assert f"{folder / 'no.npz'}: cannot be read" in ended.err


EVIL = "import pathlib, onnx\npathlib.Path('ran').touch()\ndef nothing(model: onnx.ModelProto) -> None: ...\n"


@pytest.mark.parametrize(
    "text", ['pass = ["evil:nothing"]', '[[override]]\nfiles = "*"\npass = ["evil:nothing"]']
)
@pytest.mark.parametrize("args", [["small.onnx", "out.onnx"], ["batch", "small.onnx", "--out-dir", "out"]])
def test_code_that_a_found_file_names_needs_trust(
    process: Run, folder: Path, args: list[str], text: str
) -> None:
    (folder / "evil.py").write_text(EVIL, encoding="utf-8")
    (folder / "onnx-migrate.toml").write_text(text, encoding="utf-8")

    ended = process(*args, *FAST)
    assert ended.code == 2
    assert "names code to run (pass = evil:nothing)" in ended.err
    assert not (folder / "ran").exists()
    assert not (folder / "out").exists()

    for trust in (["--config", "onnx-migrate.toml"], ["--trust-config"]):
        assert process(*args, *FAST, *trust).code == 0
        (folder / "ran").unlink()


def test_a_runtime_in_a_folder_that_a_found_file_names_needs_trust(
    cli: Run, folder: Path, faulty: object
) -> None:
    python = folder / "evil" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\ntouch {folder / 'ran'}\n", encoding="utf-8")
    python.chmod(0o755)
    (folder / "onnx-migrate.toml").write_text('prove-in = "faulty@evil"\n', encoding="utf-8")

    ended = cli("small.onnx", "out.onnx", *FAST)
    assert ended.code == 2
    assert f"names code to run (run-in = faulty@{folder / 'evil'})" in ended.err.replace(" \n", "\n")
    assert not (folder / "ran").exists()

    ended = cli("small.onnx", "out.onnx", *FAST, "--trust-config")
    assert ended.code == 2
    assert "Faulty is not installed in" in ended.err
    assert (folder / "ran").exists()

    (folder / "onnx-migrate.toml").write_text('prove-in = ["faulty"]\n', encoding="utf-8")
    assert "Faulty 2.3.4: the result is right" in cli("small.onnx", "out.onnx", *FAST).out


def test_dims_may_be_tables_and_keys_have_underscores(cli: Run, folder: Path, write) -> None:  # type: ignore[no-untyped-def]
    write('dynamic = {x = {0 = "N"}}\ntarget_opset = 15')
    assert cli("small.onnx", "out.onnx", *FAST).code == 0
    assert first_dims(folder / "out.onnx")[0] == "N"
    assert opset_of(folder / "out.onnx") == 15

    write("fix = {N = 4}")
    assert cli("out.onnx", "fixed.onnx", *FAST).code == 0
    assert first_dims(folder / "fixed.onnx")[0] == 4


@pytest.mark.parametrize("text", ["opset = 99", 'for = "tensort"', 'dynamic = "nobody:N"'])
def test_an_error_of_a_value_names_the_file_that_it_may_be_from(  # type: ignore[no-untyped-def]
    cli: Run, folder: Path, write, text: str
) -> None:
    assert "options are read from" not in cli("small.onnx", "out.onnx", "--opset", "99").err
    write(text)
    ended = cli("small.onnx", "out.onnx", *FAST)
    assert ended.code == 2
    assert f"; options are read from {folder}" in ended.err
