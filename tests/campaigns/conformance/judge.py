"""Brings a case to an opset with a tool, and holds the result against the recorded outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from google.protobuf.message import DecodeError
from onnx.reference import ReferenceEvaluator

import onnx_migrate
from onnx_migrate.errors import MigrateError
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.model.legality import check_legal
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx, schema_violation, signature_at
from tests.campaigns.conformance.cases import Case
from tests.harness import ORT_NEWEST, make_variant, right_anywhere

__all__ = ["SETTINGS", "TOOLS", "VARIANTS", "Outcome", "fault", "judge", "ready", "run"]

SETTINGS = {
    "as shipped": "plain",
    "symbolic dims": "symbolic",
    "inside If": "if",
    "inside a local function": "function",
}
"""What each setting is called, and the harness's variant."""

VARIANTS = {**SETTINGS, "unknown ranks": "unranked"}
"""All settings that a case can be judged in: the tests know one more than the table."""

RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)

RTOL, ATOL = 1e-3, 1e-7
"""The tolerance of onnx's own backend test runner."""

ORT_NEWEST_IR = 13

Values = tuple[Mapping[str, Any], Sequence[Any]]


def _ours(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    return onnx_migrate.convert_version(model, target)


def _theirs(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    from onnx import version_converter

    return version_converter.convert_version(model, target)


def _untouched(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    return model


def _number(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    return _stamped(model, target, 10)


TOOLS: dict[str, Callable[[onnx.ModelProto, int], onnx.ModelProto]] = {
    "onnx-migrate": _ours,
    "onnx.version_converter": _theirs,
    "the original": _untouched,
    "changing the number alone": _number,
}


@dataclass(frozen=True)
class Outcome:
    """What became of one case: `kind` is passed, refused, illegal, wrong, no-evaluator, unreadable
    (the record itself) or random, and of a process that ended crashed or hung; `text` says more."""

    kind: str
    text: str = ""
    seconds: float = 0.0
    """Processor time that the tool took."""

    @property
    def passed(self) -> bool:
        """Whether the result is valid and gives the recorded outputs."""
        return self.kind == "passed"


def judge(case: Case, setting: str, tool: str, target: int) -> Outcome:
    """Bring a case in a setting to an opset and run it there."""
    try:
        base, runs = case.load()
    except (UnicodeDecodeError, DecodeError, TypeError, ValueError) as error:
        return Outcome("unreadable", f"{type(error).__name__}: {error}")
    if any(node.op_type in RANDOM for body in (base.graph, *base.functions) for node in body.node):
        return Outcome(
            "random", "a runtime has a generator of its own, and gives the recorded outputs by luck"
        )
    values: list[Values] = []
    model = base
    for fed, expected in runs:
        model, given = make_variant(ready(base, setting), VARIANTS[setting], fed)
        values.append((given, expected))
    start = time.process_time()
    try:
        result = TOOLS[tool](model, target)
    except MigrateError as error:
        return Outcome("refused", f"{error.code}: {error}")
    except Exception as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    seconds = time.process_time() - start
    found = fault(result, model) if tool != "the original" else ""
    return Outcome("illegal", found, seconds) if found else replace(run(result, values), seconds=seconds)


def ready(base: onnx.ModelProto, setting: str) -> onnx.ModelProto:
    """Give a model what a setting takes for granted: ai.onnx for the If, and outputs that nodes give."""
    if not setting.startswith("inside"):
        return base
    model = onnx.ModelProto()
    model.CopyFrom(base)
    if onnx_opset(model.opset_import, ir_version=model.ir_version) is None:
        model.opset_import.add(domain="", version=11)
    elif not model.opset_import and setting == "inside a local function":
        model.opset_import.add(domain="", version=1)
    graph = model.graph
    given = {value.name for value in (*graph.input, *graph.initializer)}
    for value in graph.output:
        if value.name in given:
            graph.node.add(op_type="Identity", input=[value.name], output=[f"{value.name}_given"])
            value.name += "_given"
    return model


def fault(result: onnx.ModelProto, source: onnx.ModelProto) -> str:
    """Say why a result is not valid, "" when it is: the checker is as strict as the source stands up to."""
    try:
        check_legal(result)
    except MigrateError as error:
        return str(error)
    for full in (True, False):
        if not _complaint(source, full):
            return _complaint(result, full)
    return ""


def _complaint(model: onnx.ModelProto, full: bool) -> str:
    try:
        onnx.checker.check_model(model, full_check=full)
    except Exception as error:
        return str(error)
    return ""


def run(model: onnx.ModelProto, values: Sequence[Values], *, atol: float = ATOL) -> Outcome:
    """Run a model in ONNX Runtime and then in onnx.reference until one gives what was recorded."""
    kind, texts = "no-evaluator", []
    for name, evaluator in (("ONNX Runtime", _in_runtime), ("onnx.reference", _in_reference)):
        try:
            outputs = evaluator(model, values)
        except Exception as error:
            texts.append(f"{name}: {type(error).__name__}: {str(error)[:400]}")
            continue
        try:
            for (_, expected), actual in zip(values, outputs, strict=True):
                agree(expected, actual, atol)
        except AssertionError as error:
            kind = "wrong"
            texts.append(f"{name}: {' '.join(str(error).split())[:300]}")
            continue
        return Outcome("passed", name)
    return Outcome(kind, " | ".join(texts))


def _in_runtime(model: onnx.ModelProto, values: Sequence[Values]) -> list[list[Any]]:
    opset = onnx_opset(model.opset_import, ir_version=model.ir_version) or 1
    if opset > ORT_NEWEST:
        if not _fits(model, ORT_NEWEST):
            raise RuntimeError(f"opset {opset} is beyond it")
        model = _stamped(model, ORT_NEWEST, min(model.ir_version, ORT_NEWEST_IR))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(
        right_anywhere(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [list(session.run(None, dict(fed))) for fed, _ in values]


def _in_reference(model: onnx.ModelProto, values: Sequence[Values]) -> list[list[Any]]:
    return [list(ReferenceEvaluator(model).run(None, dict(fed))) for fed, _ in values]


def _stamped(model: onnx.ModelProto, opset: int, ir_version: int) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = ir_version
    if not copy.opset_import:
        copy.opset_import.add(domain="", version=opset)
    for owner in (copy, *copy.functions):
        for entry in owner.opset_import:
            if is_onnx(entry.domain):
                entry.version = opset
    return copy


def _fits(model: onnx.ModelProto, opset: int) -> bool:
    """Tell whether a newer model's nodes have the form of an opset too.

    Then they mean the same at both: opsets 27 and 28 allow more types and add attributes with the old default.
    """

    def fit(nodes: Any) -> bool:
        for node in nodes:
            form = signature_at(node.domain, node.op_type, opset)
            if is_onnx(node.domain) and (form is None or schema_violation(node, form)):
                return False
            if not all(fit(graph.node) for _, _, graph in subgraphs(node)):
                return False
        return True

    return all(fit(body.node) for body in (model.graph, *model.functions))


def agree(expected: Sequence[Any], actual: Sequence[Any], atol: float = ATOL) -> None:
    """Hold outputs against recorded ones, as onnx's backend test runner does."""
    assert len(expected) == len(actual), f"{len(actual)} outputs, and {len(expected)} are recorded"
    for old, new in zip(expected, actual, strict=True):
        if isinstance(old, list):
            assert isinstance(new, list), f"{type(new).__name__} for a sequence"
            agree(old, new, atol)
        elif old is None or new is None:
            assert old is new
        else:
            _agree(np.asarray(old), np.asarray(new), atol)


def _agree(old: np.ndarray[Any, Any], new: np.ndarray[Any, Any], atol: float) -> None:
    if old.dtype.kind in "OSU":
        np.testing.assert_array_equal(new.astype(str), old.astype(str))
        return
    assert new.dtype == old.dtype, f"{new.dtype} for {old.dtype}"
    if old.dtype.kind == "V" or old.dtype.name.startswith(
        ("bfloat", "float8", "float4", "int4", "uint4", "int2", "uint2")
    ):
        old, new = old.astype(np.float32), new.astype(np.float32)
    assert new.shape == old.shape, f"{new.shape} for {old.shape}"
    np.testing.assert_allclose(new, old, rtol=RTOL, atol=atol)
