"""Tries the command of a remedy on the structure of a model: no weights are read, and nothing is written."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.errors import MigrateError, UsageError
from onnx_migrate.explanation.error_text import Explanation
from onnx_migrate.files import Source
from onnx_migrate.inspection import inspect, load_structure
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model

__all__ = ["Trial", "tried"]

_PASSES = {("--quantized-form", "qdq"): "quantized_as_pairs", ("--to-onnx-ops", ""): "standard"}
"""The passes for certain options; a trial runs only these passes of the pipeline."""

_VALUES = ("NAME=SIZE", "VERSION", "RELEASE", "OPSET", "RUNTIME", "INPUT", "A,B")
"""Words that a user has to replace before a command can run."""


@dataclass(frozen=True)
class Trial:
    """The effect of a remedy's command on a model, and whether it ends with a result."""

    text: str
    succeeds: bool


def tried(command: str, source: Source, item: Explanation) -> Trial | None:
    """Return the effect of a command on a model; None if its options need weights, or lack values."""
    words = shlex.split(command)
    # A command with a placeholder cannot run.
    if any(value in word for word in words for value in _VALUES):
        return None
    options = {name: value for name, value in pairwise([*words, ""]) if name.startswith("--")}
    try:
        if set(options) <= {"--opset", "--for"}:
            return _planned(command, options, source)
        names = [
            _PASSES.get((name, "" if value.startswith("--") else value)) for name, value in options.items()
        ]
        # The trial runs passes alone, so each option must have one.
        return _run(command, [name for name in names if name], source, item) if all(names) else None
    except UsageError:
        return None
    except MigrateError as error:
        return Trial(f"{command} fails: {error.with_hint}", False)


def _planned(command: str, options: dict[str, str], source: Source) -> Trial | None:
    """Return the effect of a migration to an opset, or for a runtime, by its plan."""
    opset, runtime = options.get("--opset", ""), options.get("--for")
    if opset and not re.fullmatch(r"\d+\+?", opset):
        return None
    planned = inspect(source, opset=opset or (None if runtime else "17+"), runtime=runtime)
    if planned.refusal is not None:
        return Trial(f"{command} fails: {planned.refusal.with_hint}", False)
    changes = len(planned.plan.changes) if planned.plan else 0
    reached = planned.plan.after.opset if planned.plan else None
    return Trial(f"{command} reaches opset {reached}; {count_of(changes, 'node')} to change", True)


def _run(command: str, passes: list[str], source: Source, item: Explanation) -> Trial:
    """Run the passes, and return how many nodes of the operators in the text they rewrite."""
    model, _ = load_structure(source)
    results = Pipeline(tuple(make_pass(name) for name in passes)).intermediate_models(model)
    if not results:
        return Trial(f"{command} changes nothing in it", False)
    operator = item.facts.get("op", "")
    before, after = _number(model, operator), _number(results[-1][1], operator)
    rewritten = (
        f"rewrites {before - after} of {count_of(before, f'node of {operator}')}" if before else "rewrites it"
    )
    return Trial(f"{command} {rewritten}", not before or after < before)


def _number(model: Model, operator: str) -> int:
    return sum(node.op_type == operator for node in all_nodes(model.proto))
