"""README.md: its sample output is what the command prints, its links lead to files, its options (and of pipelines.md) exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import rich_click as click

from tests.support.paths import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
MODEL = ROOT / "fixtures" / "conv_relu_upsample_opset11.onnx"
PIPELINES = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")


def without_version(line: str) -> str:
    """Return a line without its counts, which depend on the installed versions: onnxsim 0.4 also removes a Constant."""
    return re.sub(r"\d[\d,]*( B)?", "1", line.strip())


def test_the_first_screen_installs_runs_one_command_and_shows_six_lines_of_its_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from onnx_migrate.cli.app import run

    (block,) = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    install, command, *sample = block.splitlines()
    _, _, _, *options = shlex.split(command.removeprefix("$ "))
    assert install == "$ pip install 'onnx-migrate[all]'"
    assert len(sample) == 6

    with pytest.raises(SystemExit) as end:
        run([str(MODEL), str(tmp_path / "migrated.onnx"), *options])

    printed = {without_version(line) for line in capsys.readouterr().out.splitlines()}
    assert end.value.code == 0
    assert [line for line in sample if without_version(line) not in printed] == []


def test_the_clone_runs_the_command_of_the_first_screen() -> None:
    (command,) = re.findall(r"\.venv/bin/onnx-migrate (.*)", TEXT)
    (shown,) = re.findall(r"\$ onnx-migrate (.*)", TEXT)

    assert shlex.split(command)[0] == MODEL.relative_to(ROOT).as_posix()
    assert shlex.split(command)[1:] == shlex.split(shown)[1:]


def test_every_link_leads_to_a_file() -> None:
    # The README of an sdist has absolute links to the tag (tools/pypi_readme.py).
    links = (re.sub(r"https://\S+/blob/v[^/]+/", "", link) for link in re.findall(r"\]\(([^)]+)\)", TEXT))
    targets = {target.partition("#")[0] for target in links}

    assert {"docs/commands.md", "CONTRIBUTING.md"} <= targets
    assert [
        target for target in sorted(targets) if "://" not in target and not (ROOT / target).is_file()
    ] == []


def options(*commands: click.Command) -> set[str]:
    return {
        name for command in commands for item in command.params for name in (*item.opts, *item.secondary_opts)
    }


@pytest.mark.parametrize(
    ("text", "shell", "others"), [(TEXT, "bash", set()), (PIPELINES, "sh", {"dask", "pip"})]
)
def test_the_commands_that_a_page_names_have_these_options(text: str, shell: str, others: set[str]) -> None:
    from onnx_migrate.cli.app import app

    lines = [
        line for block in re.findall(rf"```{shell}\n(.*?)```", text, re.DOTALL) for line in block.splitlines()
    ]
    assert len(lines) > 10
    for line in lines:
        program, *words = shlex.split(line.rpartition(" | ")[2], comments=True)
        if program in others:
            continue
        command = app.commands[words[0] if words[0] in app.commands else "migrate"]
        assert program == "onnx-migrate"
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options(command), line


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_the_commands_of_every_page_have_their_options(page: Path) -> None:
    from onnx_migrate.cli.app import app

    blocks = re.findall(r"```(?:bash|sh|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    for line in lines:
        if line.startswith("onnx-migrate "):
            _, *words = shlex.split(line.partition(" | ")[0], comments=True)
            command = app.commands[words[0] if words[0] in app.commands else "migrate"]
            named = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert named <= options(command), line


def test_the_options_that_the_page_on_pipelines_names_exist() -> None:
    from onnx_migrate.cli.app import app

    assert set(re.findall(r"`(--[a-z-]+)", PIPELINES)) <= options(*app.commands.values())


def test_the_configuration_of_the_page_on_pipelines_is_read(tmp_path: Path) -> None:
    from onnx_migrate.cli.app import app
    from onnx_migrate.cli.options import config

    (block,) = re.findall(r"```toml\n(.*?)```", PIPELINES, re.DOTALL)
    path = tmp_path / "onnx-migrate.toml"
    path.write_text(block, encoding="utf-8")

    read = config._read(path, click.Context(app.commands["batch"]))

    assert read.options["jobs"] == 4
    assert read.overrides[0][0] == ("legacy/*", "*_int8.onnx")


def test_the_page_is_short_and_its_first_screen_has_what_it_is_a_command_and_a_picture() -> None:
    lines = TEXT.splitlines()
    screen = "\n".join(lines[:20])

    assert len(lines) <= 130
    for word in ("ONNX", "opset", "does not write a result", "pip install", "<picture>"):
        assert word in screen


def test_the_questions_start_with_explain() -> None:
    first, second = re.findall(r"```bash\nonnx-migrate (\w+)", TEXT)[:2]

    assert first == "explain"
    assert second != "explain"


@pytest.mark.parametrize("text", [TEXT, FIGURES])
def test_pictures_exist_in_light_and_dark_and_say_what_they_show(text: str) -> None:
    pictures = re.findall(
        r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img ([^>]+)>', text
    )

    assert len(pictures) == text.count("<picture>") == 1
    for dark, light in pictures:
        assert (ROOT / "docs" / dark.removeprefix("docs/")).stat().st_size < 150_000
        assert f'src="{dark.replace("-dark", "-light")}"' in light
        assert len(re.findall(r'alt="([^"]+)"', light)[0]) > 60


def test_the_picture_of_speed_shows_the_figures() -> None:
    from tools.pages.speed_figure import PICTURES, drawing, rows

    for path, scheme in PICTURES.items():
        assert path.read_text(encoding="utf-8") == drawing(scheme), "run python -m tools.pages.speed_figure"
    for name, seconds, _ in rows()[1]:
        assert f"{name} {seconds:g} s" in FIGURES
