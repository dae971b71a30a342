"""docs/commands.md is the help of the commands."""

from __future__ import annotations

from onnx_migrate.cli.app import app
from tools.pages.commands_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.pages.commands_page"


def test_every_command_and_option_is_on_the_page() -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## onnx-migrate ")

    assert [section.partition("\n")[0] for section in sections[1:]] == list(app.commands)
    for section, command in zip(sections[1:], app.commands.values(), strict=True):
        for parameter in command.params:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert f"`{name}`" in section or name.upper() in section or str(parameter.metavar) in section
