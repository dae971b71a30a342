"""Replaces calls of local functions by their bodies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from onnx import inliner

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import FunctionKey, function_key
from onnx_migrate.model.model import Model

__all__ = ["inline_functions"]


def inline_functions(model: Model, functions: Collection[FunctionKey]) -> Model:
    """Return a model in which all calls of these functions are replaced by their bodies; weights stay references.

    Functions of the same domain and name with another overload are inlined too. Raises CannotMigrate, code
    `cannot-inline`, if one of the functions is still there afterwards.
    """
    names = sorted({(domain, name) for domain, name, _ in functions})
    try:
        proto = inliner.inline_selected_functions(model.proto, names)
    except RuntimeError as error:
        raise _refusal(names[0], str(error)) from error
    left = {function_key(function)[:2] for function in proto.functions} & set(names)
    if left:
        raise _refusal(min(left), "it is still there after inlining")
    return replace(model, proto=proto)


def _refusal(function: tuple[str, str], reason: str) -> CannotMigrate:
    return CannotMigrate(
        f"the function {':'.join(function)} cannot be inlined: {reason}",
        code="cannot-inline",
        hint="functions and model must import the same opsets, and no sub-graph may refer to an attribute of the function",
    )
