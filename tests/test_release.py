"""The files of a release agree with each other: version, dependencies, versions of Python, pinned actions."""

from __future__ import annotations

import re
from configparser import ConfigParser

import pytest

from onnx_migrate import __version__
from tests.support.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RECIPE = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8")


def setup() -> ConfigParser:
    parser = ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def requirements(text: str) -> set[str]:
    """Return requirements without conditions, extras and spaces."""
    lines = (re.sub(r"\[.*\]|;.*| ", "", line).strip() for line in text.splitlines())
    return {line for line in lines if line}


def test_every_file_has_the_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"(?m)^version: (.*)$", citation) == [__version__]
    assert re.findall(r'(?m)^  version: "(.*)"$', RECIPE) == [__version__]
    assert re.findall(r"(?m)^## (.*)$", changelog)[0] in (__version__, "Unreleased")


def test_the_conda_recipe_needs_what_the_package_with_all_needs() -> None:
    run = re.findall(r"(?ms)^  run:\n(.*?)^\w", RECIPE)[0]
    recipe = {
        re.sub(r"[ -]", "", line.replace("    - ", "", 1))
        for line in run.splitlines()
        if line.startswith("    - ")
    }
    config = setup()
    package = requirements(config["options"]["install_requires"]) | requirements(
        config["options.extras_require"]["all"]
    )

    assert {name for name in recipe if not name.startswith("python>")} == {
        name.replace("-", "") for name in package
    }


def test_ci_runs_every_python_of_the_classifiers() -> None:
    classifiers = setup()["metadata"]["classifiers"]
    versions = re.findall(r"Python :: (3\.\d+)", classifiers)
    (matrix,) = re.findall(
        r"python: (\[.*\])", (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    )

    assert re.findall(r"3\.\d+", matrix) == versions


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(workflow: object) -> None:
    text = ROOT.joinpath(str(workflow)).read_text(encoding="utf-8")
    uses = re.findall(r"uses: (.*)", text)

    assert uses
    assert [use for use in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []
    assert "\npermissions: {}\n" in text
