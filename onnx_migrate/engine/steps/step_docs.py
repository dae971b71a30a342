"""The texts of a step's function: its explanation, and the reason that reports print."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from onnx_migrate.docstrings import are_dropped, docstring

__all__ = ["doc_of", "reason_of"]

_LONGEST_FORMULA = 30
"""A formula of up to this many lines is shown, if its docstring does not describe the changes."""

_ASKED = {
    r"need_dtype|numpy_type|is_float|wide\(\)": "element types",
    r"need_rank": "ranks",
    r"need_static|need_size": "fixed shapes",
    r"need_constant|need_number": "constants",
}
"""Facts that the code of a step needs to know, by the calls that ask for them; a node without them is an error."""


def doc_of(function: Callable[..., Any]) -> str:
    """Return the docstring of a step's function, the facts that its code asks for, and the code of a short formula."""
    # A formula is wrapped in an adapter, which has no docstring of its own.
    formula = inspect.unwrap(function)
    code = _code(formula)
    needed_facts = [fact for how, fact in _ASKED.items() if re.search(how, "\n".join(code))]
    parts = [docstring(function)]
    if needed_facts:
        parts.append(f"An error if needed but not known: {', '.join(needed_facts)}.")
    # A long formula is easier to read in the source.
    if formula is not function and len(code) <= _LONGEST_FORMULA and "What changes:" not in parts[0]:
        parts.append("The formula; a number takes the element type of its partner, which must be known:")
        parts.append(textwrap.indent("\n".join(code), "    "))
    return "\n\n".join(parts)


def _code(step: Callable[..., Any]) -> list[str]:
    """Return the code of a step, and of the private functions in its module that it calls; nothing without the source."""
    code_by_function: dict[Any, list[str]] = {}
    pending = [step]
    while pending:
        function = pending.pop(0)
        try:
            source = textwrap.dedent(inspect.getsource(function))
        except OSError:
            return []
        (tree,) = ast.parse(source).body
        assert isinstance(tree, ast.FunctionDef)
        lines, body = source.splitlines(), tree.body[1 if ast.get_docstring(tree) else 0 :]
        own = lines[body[0].lineno - 1 :] if body else []
        if function is step:
            code_by_function[function] = textwrap.dedent("\n".join(own)).splitlines()
        else:
            code_by_function[function] = ["", *lines[: tree.body[0].lineno - 1], *own]
        names = (
            element.id
            for element in ast.walk(tree)
            # Public functions are documented elsewhere.
            if isinstance(element, ast.Name) and element.id.startswith("_")
        )
        called = (function.__globals__.get(name) for name in names)
        pending += [
            element
            for element in called
            if inspect.isfunction(element) and element not in (*code_by_function, *pending)
        ]
    return [line for lines in code_by_function.values() for line in lines]


def reason_of(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring on one line, which reports give as the reason of a rewrite.

    Raises ValueError for a function without one. A program that has neither docstrings nor sources gets a place to look.
    """
    reason = docstring(function).partition("\n\n")[0].replace("\n", " ").rstrip(".")
    if not reason and are_dropped():
        return f"{function.__module__}.{function.__name__} has the reason in its source, which this program is without"
    if not reason:
        raise ValueError(
            f"{function.__name__} needs a docstring: its first paragraph is the reason that reports give"
        )
    return reason
