"""Who may import whom, and what the distribution holds."""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LEAVES = {"errors", "_version", "isolate", "signals", "url"}
ALLOWED = {
    "model": set(),
    "files": {"model"},
    "engine": {"files", "model"},
    "verify": {"model"},
    "report": {"model"},
    "passes": {"engine", "files", "model", "passes"},
    "migration": {"engine", "files", "model", "proof", "report", "verify"},
    "proof": {"files", "model", "verify"},
    "batching": {"engine", "files", "migration", "model", "report"},
    "comparing": {"files", "model", "proof", "verify"},
    "inspection": {"engine", "files", "migration", "model", "report"},
    "cli": {"batching", "comparing", "engine", "files", "inspection", "migration", "model", "report"},
    "isolate": set(),
    "errors": set(),
    "signals": set(),
    "url": set(),
    "_version": set(),
    "__init__": {"batching", "comparing", "engine", "inspection", "migration"},
    "__main__": {"cli"},
}
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
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.extend(names if node.module == "onnx_migrate" else [node.module or ""])
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


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
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


def test_every_pass_and_adapter_has_a_test_of_its_name() -> None:
    for path in sorted((ROOT / "passes").rglob("*.py")):
        if path.name == "__init__.py" or path.parent.name == "dynamic_dims":
            continue
        mirrored = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.name}")
        assert mirrored.exists(), mirrored
