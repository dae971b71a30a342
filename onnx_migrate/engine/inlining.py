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
    proto = inliner.inline_selected_functions(model.proto, names)
    left = {function_key(function)[:2] for function in proto.functions} & set(names)
    if left:
        domain, name = min(left)
        raise CannotMigrate(
            f"the function {domain}:{name} cannot be inlined",
            code="cannot-inline",
            hint="functions and model must import the same opsets: migrate to a newer opset first",
        )
    return replace(model, proto=proto)
