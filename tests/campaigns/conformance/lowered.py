"""Brings the node-test cases of the installed onnx down to older opsets, and holds results against the recorded outputs.

An input that a step must know is bound: it becomes an initializer with its recorded value, unless `bound` is false.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

import onnx_migrate
from onnx_migrate.engine.validity import check_result
from onnx_migrate.errors import CannotMigrate, MigrateError
from onnx_migrate.model.model import Model
from onnx_migrate.standard.opsets import onnx_opset
from tests.campaigns.conformance import judge as judging
from tests.campaigns.conformance.judge import RANDOM, TOOLS, VARIANTS, Outcome, Values
from tests.campaigns.conformance.survey import survey
from tests.harness import make_variant

__all__ = ["NEWEST", "OURS", "TARGETS", "lowered_outcomes", "names_above"]

OURS = "onnx-migrate"
TARGETS = (21, 17, 13, 11, 9)
NEWEST = 26
"""The newest opset that ONNX Runtime runs: cases of newer opsets are left out."""

_INEXACT = re.compile("dft|stft")
"""Cases whose outputs are sums of many products: compared with an absolute tolerance of 1e-4."""


@cache
def _cases() -> dict[str, Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return {case.name: case for case in found if _of_onnx_alone(case.model)}


def _of_onnx_alone(model: onnx.ModelProto) -> bool:
    domains = {entry.domain for entry in model.opset_import}
    return domains <= {"", "ai.onnx"} and not any(node.op_type in RANDOM for node in model.graph.node)


def names_above(target: int) -> list[str]:
    """Return the names of the cases of opsets above `target` and up to NEWEST."""
    return [
        name
        for name, case in _cases().items()
        if target < (onnx_opset(case.model.opset_import, ir_version=case.model.ir_version) or 0) <= NEWEST
    ]


def lowered_outcomes(
    names: Sequence[str],
    target: int,
    *,
    setting: str = "as shipped",
    bound: bool = True,
    tool: str = OURS,
) -> dict[str, Outcome]:
    """Judge each case at a target, in child processes. Another tool than ours gets the same inputs bound."""
    tasks: list[Any] = [(name, setting, tool, target, bound) for name in names]
    return {task[0]: outcome for task, outcome in survey(tasks, work=_judge_all).items()}  # type: ignore[comparison-overlap]


def _judge_all(tasks: Sequence[Any]) -> list[Outcome]:
    ort.set_default_logger_severity(4)
    warnings.simplefilter("ignore")
    return [judge(*task) for task in tasks]


def judge(name: str, setting: str, tool: str, target: int, bound: bool) -> Outcome:
    """Lower one case in a setting, and run the result."""
    case = _cases()[name]
    base = onnx.ModelProto()
    base.CopyFrom(case.model)
    runs = [(_fed(base, inputs), [_array(value) for value in outputs]) for inputs, outputs in case.data_sets]
    for _ in range(8):
        values: list[Values] = []
        for fed, expected in runs:
            model, given = make_variant(judging.ready(base, setting), VARIANTS[setting], fed)
            values.append((given, expected))
        try:
            result = onnx_migrate.convert_version(model, target)
        except CannotMigrate as error:
            result = None
            wanted = re.search(r"make '([^']+)' an initializer", error.hint)
            if bound and wanted is not None and wanted[1] in runs[0][0] and len(runs) == 1:
                _bind(base, wanted[1], runs[0][0].pop(wanted[1]))
                continue
            if tool == OURS:
                return Outcome("refused", f"{error.code}: {error}")
        except MigrateError as error:
            return Outcome("illegal", f"{error.code}: {error}")
        if tool != OURS:
            try:
                result = TOOLS[tool](model, target)
            except Exception as error:
                return Outcome("refused", f"{type(error).__name__}: {error}")
        assert result is not None
        try:
            check_result(Model(result), Model(model))
        except MigrateError as error:
            return Outcome("illegal", str(error))
        fault = judging.fault(result, model)
        if fault:
            return Outcome("illegal", fault)
        return judging.run(result, values, atol=1e-4 if _INEXACT.search(name) else judging.ATOL)
    return Outcome("refused", "needs-constant: still, after eight inputs were bound")


def _fed(model: onnx.ModelProto, inputs: Sequence[Any]) -> dict[str, Any]:
    given = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in given]
    return dict(zip(names, map(_array, inputs), strict=False))


def _array(value: Any) -> Any:
    """Return a recorded value as an array; ONNX Runtime is fed no scalars of NumPy."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _bind(model: onnx.ModelProto, name: str, value: Any) -> None:
    model.graph.initializer.add().CopyFrom(numpy_helper.from_array(value))
    model.graph.initializer[-1].name = name
    kept = [item for item in model.graph.input if item.name != name]
    del model.graph.input[:]
    model.graph.input.extend(kept)
