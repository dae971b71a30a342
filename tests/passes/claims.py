"""How the claims that a version changes nothing are tested: by the two schemas, and by the numbers of samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx.defs import OpSchema

from tests import harness
from tests.passes.steps.samples import samples

__all__ = ["check_samples", "differences", "outputs", "varies"]

CONSTANT = frozenset({"ConstantOfShape", "OptionalHasElement", "Size"})
"""Operators whose outputs do not depend on their inputs."""


def differences(old: OpSchema, new: OpSchema, *, types: bool = True) -> list[str]:
    """Return what a node of `old` may have that `new` does not allow or interprets otherwise; `types` are looked at too."""
    found = ["deprecated"] if new.deprecated else []
    for name, attribute in old.attributes.items():
        match = new.attributes.get(name)
        if match is None:
            found.append(f"attribute {name} was removed")
        elif match.type != attribute.type:
            found.append(f"attribute {name} has another type")
        elif match.required and not attribute.required:
            found.append(f"attribute {name} is required")
        elif not (attribute.required or match.required) and match.default_value != attribute.default_value:
            found.append(f"attribute {name} has another default")
    added = [new.attributes[name] for name in new.attributes if name not in old.attributes]
    found.extend(
        f"attribute {attribute.name} is new and required" for attribute in added if attribute.required
    )
    return found + _formal_differences(old, new, types=types)


def _types_of(schema: OpSchema) -> dict[str, set[str]]:
    """Return the types of each type variable; `FormalParameter.types` cannot be read with onnx 1.20."""
    return {item.type_param_str: set(item.allowed_type_strs) for item in schema.type_constraints}


def _formal_differences(old: OpSchema, new: OpSchema, *, types: bool) -> list[str]:
    found = []
    if old.min_input < new.min_input or old.max_input > new.max_input:
        found.append("the number of inputs")
    if old.min_output < new.min_output or old.max_output > new.max_output:
        found.append("the number of outputs")
    pairs = [*zip(old.inputs, new.inputs, strict=False), *zip(old.outputs, new.outputs, strict=False)]
    were, are = _types_of(old), _types_of(new)
    for before, after in pairs:
        single = OpSchema.FormalParameterOption.Single
        optional = OpSchema.FormalParameterOption.Optional
        if before.option != after.option and (before.option, after.option) != (single, optional):
            found.append(f"{before.name} was {before.option.name} and is {after.option.name}")
        if before.option.name == "Variadic" and after.is_homogeneous and not before.is_homogeneous:
            found.append(f"{before.name} must be of one type")
        lost = were.get(before.type_str, {before.type_str}) - are.get(after.type_str, {after.type_str})
        if types and lost:
            found.append(f"{before.name} may not be {sorted(lost)}")
    for (one, one_new), (two, two_new) in combinations(pairs, 2):
        tied = one_new.type_str == two_new.type_str and len(are.get(one_new.type_str, ())) > 1
        if tied and one.type_str != two.type_str:
            found.append(f"{one.name} and {two.name} must be of one type")
    return found


def outputs(proto: onnx.ModelProto, feeds: harness.Feeds) -> tuple[list[Any], str]:
    """Run a model and return the outputs and the evaluator's name, since two evaluators round differently."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return harness.reference(proto, feeds, error), "onnx.reference"
    return harness.run(proto, feeds), "ONNX Runtime"


def varies(output: Any) -> bool:
    """Return whether an output has two different values, so that it can show a difference."""
    arrays = output if isinstance(output, list) else [output]
    return any(len(set(np.asarray(array).flatten().tolist())) > 1 for array in arrays)


def check_samples(
    operator: str, opset: int, compare: Callable[[onnx.ModelProto], list[Any]], *, runs: bool
) -> None:
    """Compare each sample of an operator by `compare`, which returns the outputs; without `runs`, hold that it fails."""
    cases = samples(operator, opset)
    assert cases, f"samples.py has no {operator} for opset {opset}"
    if not runs:
        for sample in cases:
            with pytest.raises(AssertionError):  # otherwise the claim can be run and is listed wrongly
                compare(sample.model(opset))
        return
    computed = [output for sample in cases for output in compare(sample.model(opset))]
    # Outputs that are all equal, or NaN, cannot show a difference.
    assert operator in CONSTANT or any(varies(output) for output in computed)
