"""docs/pipelines.md names options that exist, and its configuration is valid."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from onnx_migrate.cli.app import app
from tests.support.paths import ROOT

TEXT = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")


def test_the_options_it_names_exist() -> None:
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL):
        for line in block.splitlines():
            program, *words = shlex.split(line, comments=True)
            if program != "onnx-migrate":
                continue
            command = app.commands[words[0] if words[0] in app.commands else "migrate"]
            known = {
                name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)
            }
            assert {word for word in words if word.startswith("--")} <= known, line
    named = set(re.findall(r"`(--[a-z-]+)", TEXT))
    every = {
        name
        for command in app.commands.values()
        for item in command.params
        for name in (*item.opts, *item.secondary_opts)
    }
    assert named <= every


def test_the_configuration_is_read(tmp_path: Path) -> None:
    import rich_click as click

    from onnx_migrate.cli.options import config

    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    path = tmp_path / "onnx-migrate.toml"
    path.write_text(block, encoding="utf-8")

    read = config._read(path, click.Context(app.commands["batch"]))

    assert read.options["jobs"] == 4
    assert read.overrides[0][0] == ("legacy/*", "*_int8.onnx")
