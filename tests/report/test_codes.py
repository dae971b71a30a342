"""The explained codes are exactly those that the source uses."""

from __future__ import annotations

import ast
from pathlib import Path

from onnx_migrate.report.codes import CODES
from tests.support.paths import ROOT


def is_word(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value


def codes_of(path: Path) -> set[str]:
    found = set()
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    chosen = [
        item for item in nodes if isinstance(item, ast.FunctionDef) and item.name in ("_code", "_code_of")
    ]
    returns = {id(item) for function in chosen for item in ast.walk(function)}
    for node in nodes:
        if isinstance(node, ast.Call):
            values = [item.value for item in node.keywords if (item.arg or "").endswith("code")]
            noted = isinstance(node.func, ast.Attribute) and node.func.attr == "note"
            if noted and (len(node.args) == 3 or (len(node.args) == 2 and is_word(node.args[0]))):
                values.append(node.args[-2])
            constants = [inner for value in values for inner in ast.walk(value)]
            found |= {
                item.value
                for item in constants
                if isinstance(item, ast.Constant) and isinstance(item.value, str)
            }
        elif isinstance(node, ast.Return) and id(node) in returns:
            found |= {item.value for item in ast.walk(node) if isinstance(item, ast.Constant)}
        elif isinstance(node, ast.Assign):
            names = {getattr(item, "id", "") for item in node.targets}
            if "default_code" in names:
                found.add(ast.literal_eval(node.value))
            elif "code" in names and isinstance(node.value, ast.IfExp):
                found |= {ast.literal_eval(item) for item in (node.value.body, node.value.orelse)}
    return found - {""}


def test_exactly_the_codes_in_use_are_explained() -> None:
    sources = [*(ROOT / "onnx_migrate").rglob("*.py"), *(ROOT / "passes").rglob("*.py")]
    used = set().union(*(codes_of(path) for path in sources))

    assert used - {"ValueError"} == set(CODES)
