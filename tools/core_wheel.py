"""Builds the wheel of the core, `onnx-migrate-core`, from this tree: python -m tools.core_wheel FOLDER.

The wheel has `convert_version`, and every module that it may import. They are in a package of another name, so that the wheel
and onnx-migrate can be installed together, also in different versions.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NAME, CORE = "onnx_migrate", "onnx_migrate_core"

START = (
    "conversion",
    "plugins",
    "passes.migrate_opset",
    "passes.lower_opset",
    "files.places.urls",
    "files.kinds.exported_programs",
    "files.kinds.graphsurgeon_graphs",
    "files.kinds.onnx_ir_models",
)
"""The modules that callers and the registry of passes import by name. The steps of operators are added."""

APART = (
    "engine.graphsurgeon_bridge",  # passes of users
    "passes.steps.contrib",  # operators of com.microsoft
    "remedies",  # tries advice, with other passes
    "report.html",
    "verify",  # reads inputs of users
)
"""Modules that a conversion imports only for what the core does not do."""

FACE = '''\
"""Converts ONNX models to another opset, up or down."""

from __future__ import annotations

from onnx_migrate_core._version import __version__
from onnx_migrate_core.conversion import convert_version
from onnx_migrate_core.errors import (
    Cancelled,
    CannotMigrate,
    IllegalModel,
    InvalidModel,
    LoadError,
    MigrateError,
    UsageError,
    Where,
)
from onnx_migrate_core.rewrite.change_log import Change, Note

__all__ = [
    "Cancelled",
    "CannotMigrate",
    "Change",
    "IllegalModel",
    "InvalidModel",
    "LoadError",
    "MigrateError",
    "Note",
    "UsageError",
    "Where",
    "__version__",
    "convert_version",
]
'''


def core_modules() -> dict[str, Path]:
    """Return the files of the core by the names of their modules, relative to the package."""
    files = {name_of(path): path for room in (NAME, "passes") for path in (ROOT / room).rglob("*.py")}
    del files[""]
    steps = [name for name in files if name.startswith("passes.steps.")]
    core: dict[str, Path] = {}
    ahead = [*START, *steps]
    while ahead:
        name = ahead.pop()
        if name in core or name not in files or _is_in(name, APART):
            continue
        core[name] = files[name]
        ahead += [name.rpartition(".")[0], *imports(name, files[name])]
    return core


def name_of(path: Path) -> str:
    """Return the name of a file's module, relative to the package: "" for the package itself."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts if parts[0] == "passes" else parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(name: str, path: Path) -> Iterator[str]:
    """Yield the modules of this package that a file imports, also those in functions, and names that may be modules."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in _run_time(ast.parse(path.read_text(encoding="utf-8")), face=path.name == "__init__.py"):
        if not isinstance(node, ast.ImportFrom):
            continue
        base = (node.module or "").split(".") if node.module else []
        if node.level:
            base = [*package[: len(package) - node.level + 1], *base]
        elif base[:1] == [NAME]:
            base = base[1:]
        else:
            continue
        yield ".".join(base)
        yield from (".".join([*base, alias.name]) for alias in node.names)


def _run_time(tree: ast.AST, *, face: bool) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, without what only type checkers read. A face lists its lazy names there, and they count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not face:
            continue
        yield node
        yield from _run_time(node, face=face)


def _is_in(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def write_tree(folder: Path) -> None:
    """Write the sources of the core, and what builds its wheel, to a folder."""
    for name, path in core_modules().items():
        parts = name.split(".")
        target = folder.joinpath(CORE, *parts)
        target = target / "__init__.py" if path.name == "__init__.py" else target.with_suffix(".py")
        target.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(rf"\b{NAME}\b", CORE, path.read_text(encoding="utf-8"))
        target.write_text(text, encoding="utf-8")
    (folder / CORE / "__init__.py").write_text(FACE, encoding="utf-8")
    (folder / CORE / "py.typed").touch()
    for file in (ROOT / "packaging" / "core").iterdir():
        shutil.copy(file, folder)
    shutil.copy(ROOT / "LICENSE", folder)


def build(destination: Path) -> Path:
    """Write the wheel to a folder, and return its path."""
    with tempfile.TemporaryDirectory() as folder:
        write_tree(Path(folder))
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            destination,
            folder,
        ]
        subprocess.run(command, check=True)
    (wheel,) = destination.glob("onnx_migrate_core-*.whl")
    return wheel


if __name__ == "__main__":
    wheel = build(Path(sys.argv[1]))
    print(f"{wheel}: {wheel.stat().st_size / 1000:.0f} kB")
