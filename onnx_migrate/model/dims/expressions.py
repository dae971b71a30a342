"""Dims that are written as an expression of symbols, as in `2*H` and `(W + 31)//32`: any text is a valid dim_param."""

from __future__ import annotations

import ast
from collections.abc import Mapping

__all__ = ["is_expression", "value_of"]

_LONGEST = 200
"""Characters of an expression; longer texts are names."""


def is_expression(text: str) -> bool:
    """Return whether a dim_param is an expression of symbols and no symbol."""
    tree = _parse(text)
    return tree is not None and not isinstance(tree, ast.Name)


def value_of(text: str, sizes: Mapping[str, int]) -> int | None:
    """Return the value of an expression where symbols have these sizes.

    None for a text that is no expression of +, -, *, // and whole numbers, and where a symbol has no size.
    """
    tree = _parse(text)
    return None if tree is None else _value(tree, sizes)


def _parse(text: str) -> ast.expr | None:
    if len(text) > _LONGEST:
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int | None:
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.Name):
        return sizes.get(tree.id)
    if not isinstance(tree, ast.BinOp):
        return None
    left_size, right = _value(tree.left, sizes), _value(tree.right, sizes)
    if left_size is None or right is None:
        return None
    if isinstance(tree.op, ast.Add):
        return left_size + right
    if isinstance(tree.op, ast.Sub):
        return left_size - right
    if isinstance(tree.op, ast.Mult):
        return left_size * right
    # A division by zero has no size.
    return left_size // right if isinstance(tree.op, ast.FloorDiv) and right else None
