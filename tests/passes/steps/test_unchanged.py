"""Every claim that a node stays as it is: its schemas allow it, and samples compute the same at both versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

from onnx_migrate.engine.steps.lost_types import lost_types
from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction, LostTypes, Step
from onnx_migrate.model.legality import check_legal
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.element_types import FIRST_OPSET, type_name
from onnx_migrate.standard.schema import newest_opset, versions
from onnx_migrate.standard.unlisted_operators import RUNTIME_OPERATORS
from tests import harness
from tests.harness import same_bits
from tests.passes.claims import check_samples, differences, outputs, varies
from tests.passes.steps.samples import samples
from tests.steps import lower, refuses
from tests.support.skips import Elsewhere, skip

OF_RUNTIME = {operator.name for operator in RUNTIME_OPERATORS}
"""Operators that only ONNX Runtime has: no schema and no text of the standard."""

CLAIMS = [
    step
    for step in steps(Direction.DOWN)
    if step.kind == "unchanged"
    and not step.domain
    and step.operator not in OF_RUNTIME
    and step.version <= newest_opset()
    and step.version in versions("", step.operator)
]

DRAWS = "ONNX Runtime has no kernel of the newer version, and onnx.reference draws other numbers"
NO_KERNEL = "no evaluator has this version"
NOT_RUN = {
    ("Bernoulli", 22): DRAWS,
    ("GlobalLpPool", 22): NO_KERNEL,
    ("MaxRoiPool", 22): NO_KERNEL,
    ("Multinomial", 22): DRAWS,
    ("RandomNormal", 22): DRAWS,
    ("RandomNormalLike", 22): DRAWS,
    ("RandomUniform", 22): DRAWS,
    ("RandomUniformLike", 22): DRAWS,
}
"""Claims whose versions no evaluator can run both; tests/passes/steps/test_compatible.py holds their schemas equal."""

POSITIVE = frozenset({"ReduceLogSum"})
"""Operators that are NaN for the sums of negative values, at which onnx.reference warns."""


def _ids(step: Step) -> str:
    return step.code


@pytest.mark.parametrize("step", CLAIMS, ids=_ids)
def test_schema_allows_it(step: Step) -> None:
    new, old = defs.get_schema(step.operator, step.version), defs.get_schema(step.operator, step.older)
    assert (new.since_version, old.since_version) == (step.version, step.older)
    assert not differences(new, old, types=False)


@pytest.mark.parametrize("step", CLAIMS, ids=_ids)
def test_the_numbers_are_the_same(step: Step) -> None:
    opset = step.version
    runs = (step.operator, opset) not in NOT_RUN
    check_samples(step.operator, opset, lambda sample: _compare(sample, step), runs=runs)


def _compare(source: onnx.ModelProto, step: Step) -> list[Any]:
    check_legal(source)
    before = _nodes(source, step)
    assert before, f"the sample of {step.operator} has none"
    result, _ = lower(source, step.version - 1)
    if step.operator not in ("If", "Loop", "Scan"):  # whose bodies are lowered
        assert _nodes(result, step) == before
    feeds = harness.random_feeds(source)
    if step.operator in POSITIVE:
        feeds = {name: np.abs(value) for name, value in feeds.items()}
    expected, by = outputs(source, feeds)
    actual, by_too = outputs(result, feeds)
    close = by != by_too or step.exactness is not Exactness.EXACT
    same_bits(expected, actual, step.code, rtol=1e-5 if close else 0.0, atol=1e-6 if close else 0.0)
    return expected


def _nodes(proto: onnx.ModelProto, step: Step) -> list[bytes]:
    return [node.SerializeToString() for node in proto.graph.node if node.op_type == step.operator]


UNREACHED = frozenset(
    {
        "Constant", "ConstantOfShape", "RandomNormal", "RandomUniform",  # the type is that of an attribute
        "If", "Loop", "Scan", "OptionalHasElement", "SplitToSequence",  # of a sub-graph, or of no tensor
        "Dropout", "IsInf", "IsNaN", "MeanVarianceNormalization", "Pow",  # only part of the types fits the sample
    }
)  # fmt: skip
"""Operators whose samples are not valid with some types that the older version does not take."""

LOST = [
    (step, dtype)
    for step in CLAIMS
    for name, dtype in TensorProto.DataType.items()
    if f"tensor({name.lower()})" in lost_types(step)
]


@pytest.mark.parametrize(
    ("step", "dtype"), LOST, ids=[f"{step.code}-{type_name(dtype)}" for step, dtype in LOST]
)
def test_a_lost_type_computes_in_a_wider_one_or_is_refused(step: Step, dtype: int) -> None:
    if (step.operator, dtype) == ("Pow", TensorProto.BFLOAT16) and harness.ONNX_NEWEST < harness.SUPPORTED:
        skip("onnx.reference of older releases computes no bfloat16", Elsewhere.NEWEST)
    cases = [sample.model(step.version) for sample in samples(step.operator, step.version)]
    pairs = [pair for sample in cases for pair in _of_type(sample, dtype) if _takes(pair[0], step, dtype)]
    if not pairs:
        assert step.operator in UNREACHED
    code = _refused(step, dtype)
    for source, alike in pairs:
        if code:
            refuses(code, lower, source, step.version - 1)
        else:
            _compare_lost(source, alike, step, dtype)


def _refused(step: Step, dtype: int) -> str:
    """Return the code that a node of a lost type is refused with, "" where it is lowered."""
    if FIRST_OPSET.get(dtype, 1) >= step.version:
        return "no-such-type"
    if dtype in (TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return "no-equal"  # no type is wider
    halves = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    if step.types is LostTypes.EXACT or (step.types is LostTypes.ROUNDED and dtype in halves):
        return ""
    return "no-equal"


def _compare_lost(source: onnx.ModelProto, alike: onnx.ModelProto, step: Step, dtype: int) -> None:
    result, log = lower(source, step.version - 1)
    note = f"does not support {type_name(dtype)} below opset {step.version}, so it computes in "
    assert any(note in change.reason for change in log.changes)
    feeds = harness.random_feeds(source)
    for name, value in feeds.items():
        if value.dtype == np.int64:  # ends of narrow integers are passed, and no divisor is 0
            feeds[name] = value % 2 if dtype == TensorProto.BOOL else np.where(value == 0, 1, value) * 43
    if (step.operator, step.version) in NOT_RUN:
        alike, _ = lower(alike, step.version - 1)
    expected, _ = outputs(alike, feeds)
    tolerance = 0.01 if step.operator == "GridSample" else 0.0  # the Tanh before it is rounded too
    same_bits(expected, outputs(result, feeds)[0], step.code, rtol=tolerance)
    assert any(varies(output) for output in expected)


def _of_type(sample: onnx.ModelProto, dtype: int) -> Iterator[tuple[onnx.ModelProto, onnx.ModelProto]]:
    """Yield a sample with another type, and a model of the same numbers that evaluators run.

    The type is cast from inputs and to outputs that they take. The second model is the same for integers; for floats it
    computes in float32 with the inputs and results rounded to the type, which is what the standard allows for narrow ones.
    """
    is_float = "float" in type_name(dtype)
    for replaced in (TensorProto.FLOAT,) if is_float else (TensorProto.FLOAT, TensorProto.INT32):
        for outputs_too in (True, False):
            proto = _replace(sample, replaced, dtype, outputs_too=outputs_too)
            if proto is None:
                continue
            alike = _replace(sample, replaced, dtype, outputs_too=outputs_too, rounded=is_float)
            assert alike is not None
            yield proto, alike
            break


def _takes(proto: onnx.ModelProto, step: Step, dtype: int) -> bool:
    """Return whether a node of the operator of a step reads or writes a type."""
    inferred = onnx.shape_inference.infer_shapes(proto)
    graph = inferred.graph
    of_type = {
        value.name
        for value in (*graph.input, *graph.output, *graph.value_info)
        if value.type.tensor_type.elem_type == dtype
    }
    return any(node.op_type == step.operator and of_type & {*node.input, *node.output} for node in graph.node)


def _replace(
    sample: onnx.ModelProto, replaced: int, dtype: int, *, outputs_too: bool, rounded: bool = False
) -> onnx.ModelProto | None:
    """Return a sample with another type, None where that is not valid.

    `rounded` keeps the type and rounds the inputs and results to the other one.
    """
    proto = harness.model(sample)
    inputs = [value for value in proto.graph.input if value.type.tensor_type.elem_type == replaced]
    results = [value for value in proto.graph.output if value.type.tensor_type.elem_type == replaced]
    if not inputs:
        return None
    for tensor in proto.graph.initializer:
        if tensor.data_type == replaced:
            values = numpy_helper.to_array(tensor)
            values = values.astype(str) if dtype == TensorProto.STRING else values
            changed = helper.make_tensor(tensor.name, dtype, values.shape, values.flatten())
            if rounded:
                changed = numpy_helper.from_array(
                    numpy_helper.to_array(changed).astype(np.float32), tensor.name
                )
            tensor.CopyFrom(changed)
    changing = [*inputs, *(results if outputs_too else [])]
    if not rounded:
        for value in changing:
            value.type.tensor_type.elem_type = dtype
        try:
            onnx.checker.check_model(proto)
            onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            return None
    if dtype != TensorProto.STRING:
        _cast(proto, changing, [dtype, TensorProto.FLOAT] if rounded else [dtype])
    return proto


def _cast(proto: onnx.ModelProto, values: Sequence[onnx.ValueInfoProto], dtypes: Sequence[int]) -> None:
    """Cast inputs to types in order, from one that runtimes take, and outputs to the first and then back to that one."""
    is_float = "float" in type_name(dtypes[0])
    carrier = TensorProto.FLOAT if is_float else TensorProto.INT64
    head: list[onnx.NodeProto] = []
    tail: list[onnx.NodeProto] = []
    outputs_ = {value.name for value in proto.graph.output}
    for value in values:
        name, is_output = value.name, value.name in outputs_
        value.name = f"{name}_carried"
        value.type.tensor_type.elem_type = carrier
        steps = [dtypes[0], carrier] if is_output and len(dtypes) > 1 else [carrier] if is_output else dtypes
        chain = [name if is_output else value.name, *(f"{name}_{i}" for i in range(len(steps) - 1))]
        chain.append(value.name if is_output else name)
        for before, after, dtype in zip(chain, chain[1:], steps, strict=False):
            (tail if is_output else head).append(helper.make_node("Cast", [before], [after], to=dtype))
    nodes = [*head, *proto.graph.node, *tail]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)


@pytest.mark.parametrize(
    ("value", "code"), [("bfloat16", "no-equal"), ("float8e4m3fn", "no-equal"), ("float", "")]
)
def test_a_type_that_an_attribute_names_is_refused(value: str, code: str) -> None:
    source = harness.model(
        f"""20 (int64[2] s) => (float[A,B] y)
        {{ c = ConstantOfShape <value = {value}[1] {{1}}> (s) y = Cast <to = 1> (c) }}"""
    )
    if not code:
        lower(source, 19)
        return
    refuses(code, lower, source, 19)


@pytest.mark.parametrize(("operator", "leaves"), [("Softmax", 13), ("ReduceSum", 13), ("AveragePool", 19)])
def test_the_schema_check_finds_a_false_claim(operator: str, leaves: int) -> None:
    new, old = defs.get_schema(operator, leaves), defs.get_schema(operator, leaves - 1)
    assert differences(new, old, types=False)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
def test_the_comparison_of_numbers_finds_a_false_claim(operator: str) -> None:
    """Change nothing but the number of the opset."""
    newer, older = (
        harness.model(f"{opset} (float[2,3,4] x) => (float[2,3,4] y) {{ y = {operator} <axis = 1> (x) }}")
        for opset in (13, 12)
    )
    feeds = harness.random_feeds(newer)
    with pytest.raises(AssertionError):
        same_bits(outputs(newer, feeds)[0], outputs(older, feeds)[0], operator, 1e-5, 1e-6)
