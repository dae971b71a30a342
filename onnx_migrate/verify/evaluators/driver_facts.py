"""The facts of the runtimes for `--run-in`: the constants at the head of each driver in drivers/.

A driver imports its runtime, which may be installed in another Python, so this module reads the source and runs nothing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["DRIVERS", "DriverFacts", "drivers"]

DRIVERS = Path(__file__).with_name("drivers")


@dataclass(frozen=True)
class DriverFacts:
    """A runtime: the values of the constants in its driver with these names in capital letters.

    `title` names it in messages. `floor` is the error that it may have on any model, in units of eps of the largest value.
    `aliases` are other names that users give. `packages` is what `manager` ("pip" or "npm") installs; "" is the runtime's name.
    `loses_axes` says that it drops or adds axes of length 1, `doubles` that it computes doubles as such.
    """

    path: Path
    title: str
    floor: float
    aliases: tuple[str, ...] = ()
    packages: str = ""
    manager: str = "pip"
    loses_axes: bool = False
    doubles: bool = False


def drivers() -> dict[str, DriverFacts]:
    """Return the facts of all drivers by the names of the runtimes."""
    return _in_folder(DRIVERS)


@cache
def _in_folder(folder: Path) -> dict[str, DriverFacts]:
    heads = {path: _constants(path) for path in sorted(folder.glob("*.py"))}
    return {
        path.stem.replace("_", "-"): DriverFacts(path, **head)
        for path, head in heads.items()
        if "title" in head
    }


def _constants(path: Path) -> dict[str, Any]:
    """Return the constants of a driver that are facts, by the names of the fields."""
    names = {field.name.upper(): field.name for field in fields(DriverFacts)}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        names[target.id]: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in names
    }
