"""Replaces calls of local functions by their bodies, or refuses to."""

from __future__ import annotations

from collections.abc import Collection

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.model.graphs import FunctionKey, function_key, function_path
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.inline_functions import inline_calls, other_opset

__all__ = ["inline_functions"]


def inline_functions(
    model: Model, functions: Collection[FunctionKey] | None = None, *, code: str = ""
) -> Model:
    """Replace all calls of these functions, by default of all, in place, and remove the functions; return the model.

    Weights stay references. Raises CannotMigrate, with `code` if given, for a function that uses another opset than the model.
    """
    for function in model.proto.functions:
        other = other_opset(model.proto, function)
        if other is not None and (functions is None or function_key(function) in functions):
            domain, own, outer = other
            raise CannotMigrate(
                f"the function cannot be inlined: it uses opset {own} of {domain or 'ai.onnx'}, and the model opset {outer}",
                code=code or "cannot-inline",
                where=Where(function_path(function)),
                hint=f"bring both to one opset first: --opset {max(own, outer)}" if not domain else "",
            )
    inline_calls(model.proto, functions)
    return model
