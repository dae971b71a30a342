"""Docstrings that reports, lists and help print: from the source where Python drops them, as with `python -OO`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast

__all__ = ["are_dropped", "docstring"]


def docstring(owner: Callable[..., Any]) -> str:
    """Return the docstring of a function or class without its indentation, "" where it has none.

    A class without one has that of its base class.
    """
    text = owner.__doc__
    if text is None or (isinstance(owner, type) and text.startswith(f"{owner.__name__}(")):  # by dataclass
        text = _from_source(owner)
    if not text and isinstance(owner, type):
        text = next(filter(None, map(_from_source, owner.__mro__[1:-1])), "")
    return inspect.cleandoc(text)


def are_dropped() -> bool:
    """Return whether this Python drops docstrings as it compiles modules, or was given modules without them."""
    return are_dropped.__doc__ is None


def _from_source(owner: Callable[..., Any]) -> str:
    owner = inspect.unwrap(owner)
    # With python -OO, the docstrings are only in the source.
    if not are_dropped():
        return owner.__dict__.get("__doc__") or "" if isinstance(owner, type) else owner.__doc__ or ""
    docstrings = _docstrings(owner.__module__)
    if isinstance(owner, type):
        return docstrings.get(owner.__qualname__, "")
    code = getattr(owner, "__code__", None)
    return "" if code is None else docstrings.get(code.co_firstlineno, "")


@cache
def _docstrings(module: str) -> dict[str | int, str]:
    """Return the docstrings in a module's source: of functions by their first line, of classes by their names."""
    import ast

    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):  # there is no source, as in a frozen program
        return {}
    docstrings: dict[str | int, str] = {}
    _collect(tree, "", docstrings)
    return docstrings


def _collect(parent: ast.AST, prefix: str, found: dict[str | int, str]) -> None:
    import ast

    for node in ast.iter_child_nodes(parent):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # A code object begins at its first decorator.
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[first] = ast.get_docstring(node) or ""
            _collect(node, f"{prefix}{node.name}.<locals>.", found)
        elif isinstance(node, ast.ClassDef):
            found[prefix + node.name] = ast.get_docstring(node) or ""
            _collect(node, f"{prefix}{node.name}.", found)
        else:
            _collect(node, prefix, found)
