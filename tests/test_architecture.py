"""Who may import whom, and what the distribution holds."""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

ARROWS = """
    __main__   -> cli
    __init__   -> batching comparison explanation inspection migration engine report rewrite
    cli        -> batching comparison explanation inspection advice migration engine verify report files rewrite model spec
    explanation -> inspection advice engine report files rewrite analysis model spec
    batching   -> migration engine verify report files model spec
    inspection -> advice migration engine report files rewrite analysis model spec
    advice     -> engine rewrite model spec
    plugins    -> engine rewrite spec
    comparison -> engine verify files model
    migration  -> migration_run verification engine verify report files rewrite model spec
    migration_run -> verification engine verify report files rewrite model
    verification -> engine verify rewrite model spec
    passes     -> engine files rewrite analysis model spec
    engine     -> files rewrite analysis model spec
    verify     -> files analysis model spec
    report     -> rewrite analysis model spec
    files      -> model
    rewrite    -> analysis model spec
    analysis   -> model spec
    model      -> spec
    spec       ->
"""
"""Who may import whom, from the top floor down: each row imports only what is below it. Nobody imports passes: the
registry finds them."""

LEAVES = {
    "errors",
    "isolate",
    "opening",
    "plural",
    "printable",
    "remarks",
    "url",
    "verdicts",
    "_version",
}
"""May be imported by all, and import only each other."""

ALLOWED = {row.split("->")[0].strip(): set(row.split("->")[1].split()) for row in ARROWS.strip().splitlines()}
ALLOWED.update({leaf: set() for leaf in LEAVES})

LAZY = {"onnxruntime", "onnxsim", "onnx_graphsurgeon"}


def sources() -> list[Path]:
    return sorted([*(ROOT / "onnx_migrate").rglob("*.py"), *(ROOT / "passes").rglob("*.py")])


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0] if parts[0] == "passes" else parts[1]


def imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                continue  # passes are never imported by the folder's name, so among themselves they are relative
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_arrows(path: Path) -> None:
    own = room(path)
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        assert parts[0] != "passes", f"{path} imports the source tree's folder"
        if parts[0] != "onnx_migrate" or len(parts) < 2:
            continue
        other = parts[1]
        assert other == own or other in LEAVES or other in ALLOWED[own], f"{own} must not import {other}"


DRIVERS = ROOT / "onnx_migrate" / "verify" / "evaluators" / "drivers"
"""Run in a process of their own, whose only purpose is the runtime that they import."""


@pytest.mark.parametrize(
    "path",
    [path for path in sources() if path.parent != DRIVERS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = [
        name.split(".")[0]
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in imports(node)
    ]

    assert not LAZY & set(top)


def test_the_package_list_is_the_tree() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    folders = {path.parent for path in sources()}
    found = {
        ".".join(("onnx_migrate", *folder.relative_to(ROOT).parts) if folder.relative_to(ROOT).parts[0] == "passes"
                 else folder.relative_to(ROOT).parts)
        for folder in folders
    }  # fmt: skip

    assert listed == found


def test_help_does_not_load_onnx() -> None:
    code = (
        "import sys; sys.argv = ['onnx-migrate', '--help']\n"
        "from onnx_migrate.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "loaded = {'onnx', 'numpy', 'onnxruntime'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


LARGEST_ROOM = 12
"""Files of a folder, `__init__.py` aside, that a reader takes in at once."""

FAMILIES = {"passes/adapters", "passes/lowerings"}
"""Folders with one file for each family of operators, which are found by the operator's name."""


def test_no_room_has_more_files_than_one_takes_in() -> None:
    for folder in {path.parent for path in sources()}:
        files = [path for path in folder.glob("*.py") if not path.name.startswith("_")]
        if str(folder.relative_to(ROOT)) not in FAMILIES:
            assert len(files) <= LARGEST_ROOM, f"{folder} has {len(files)} files"


def test_each_row_of_the_picture_imports_only_what_is_below_it() -> None:
    rows = list(ALLOWED)
    for place, row in enumerate(rows):
        assert ALLOWED[row] <= set(rows[place + 1 :]), row


def mirror(path: Path) -> Path:
    """Return the test file that stands where a source file stands."""
    parts = path.relative_to(ROOT).parts
    folders = parts[:-1] if parts[0] == "passes" else parts[1:-1]
    return ROOT.joinpath("tests", *folders, f"test_{path.name}")


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("onnx_migrate", *parts) if parts[0] == "passes" else parts)


@pytest.mark.parametrize(
    "path",
    [path for path in sources() if not path.name.startswith("_")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_file_has_a_test_of_its_name_that_uses_it(path: Path) -> None:
    test = mirror(path)
    assert test.exists(), f"{path.relative_to(ROOT)} has no {test.relative_to(ROOT)}"
    if path.relative_to(ROOT).parts[0] == "passes" or room(path) == "cli":
        return  # reached through the registry, by the name of a pass, and through the command line
    module = module_of(path)
    found = imports(ast.parse(test.read_text(encoding="utf-8")))
    assert any(f"{item}.".startswith(f"{module}.") for item in found), (
        f"{test.relative_to(ROOT)} does not import {module}"
    )
