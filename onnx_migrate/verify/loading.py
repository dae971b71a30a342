"""Loads a result in ONNX Runtime if it loads the original: without inputs, like a user's first step with it."""

from __future__ import annotations

import re

import onnx

from onnx_migrate.facts.running_cost.obstacles import folds_for_long
from onnx_migrate.messages import size_text
from onnx_migrate.model.graphs import all_nodes, weight_tensors
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.process import mark
from onnx_migrate.process.limits import less_memory, memory_limit
from onnx_migrate.verdicts import LoadFailure
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError, Runnable, open_model

__all__ = ["NOT_OPTIMISED", "load_doubt", "load_failure", "load_within_reason", "loading_memory"]

_LOADING, _LOADING_PER_BYTE = 1 << 30, 6
"""Bytes that loading takes as a rule: its shape inference follows values, and folding makes new ones beside the weights."""

NOT_OPTIMISED = (
    "the result was loaded without optimisation only: with it, ONNX Runtime computes constants for too long"
)
"""The doubt about a result whose constants take long to compute."""

_NO_KERNEL = re.compile(r"an implementation for (?P<op>\w+)\(\d+\) node with name '(?P<name>[^']*)'")


def load_within_reason(original: Runnable, result: Runnable) -> tuple[LoadFailure | None, str]:
    """Load models that are known to take too much to run: as `check_loads`, in this process."""
    memory = loading_memory(original, result)
    try:
        with less_memory(memory):
            return load_failure(original, result), load_doubt(result)
    except MemoryError:
        return None, f"whether the result loads is not known: loading takes more than {size_text(memory)}"


def loading_memory(*models: Runnable | None) -> int:
    """Return bytes that ONNX Runtime takes at most to load one of these models, unless it computes large values for that."""
    sizes = (
        sum(byte_size(tensor.dims, tensor.data_type) or 0 for tensor in weight_tensors(model.proto()))
        for model in models
        if model is not None
    )
    return _LOADING + _LOADING_PER_BYTE * max(sizes, default=0)


def load_failure(original: Runnable | None, result: Runnable) -> LoadFailure | None:
    """Load a result without and with optimisation, and return why the first of them fails that works for the original.

    The function returns None if the result loads wherever the original does. With optimisation, ONNX Runtime computes constants
    as it loads. If that takes long, the function loads the result without optimisation only.
    """
    # Loading with optimisation may take very long.
    for level in LEVELS[:1] if load_doubt(result) else LEVELS:
        mark(f"result: loading, {level}")
        try:
            open_model(result, level)
        except EvaluationError as error:
            mark(f"original: loading, {level}")
            # A result need not load where the original does not.
            if original is None or _loads(original, level):
                node, operator = _place(error, result.proto())
                unoptimised = level != LEVELS[0]
                return LoadFailure(str(error), node, operator, unoptimised=unoptimised, limit=error.limit)
    return None


def load_doubt(result: Runnable) -> str:
    """Return the doubt that remains if a result is not loaded with optimisation, "" if it is."""
    return NOT_OPTIMISED if folds_for_long(result.model, memory_limit()) else ""


def _place(error: EvaluationError, model: onnx.ModelProto) -> tuple[str, str]:
    """Return the name, or else the first output, and the operator of the failing node; "" for a node that the runtime made."""
    missing_kernel = _NO_KERNEL.search(str(error))
    for node in all_nodes(model):
        named = error.node != "" and node.name == error.node
        if named or (
            missing_kernel and missing_kernel["op"] == node.op_type and missing_kernel["name"] == node.name
        ):
            return node.name or next(filter(None, node.output), ""), node.op_type
    return "", ""


def _loads(model: Runnable, level: str) -> bool:
    try:
        open_model(model, level)
    except EvaluationError:
        return False
    return True
