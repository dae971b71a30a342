"""Every claim of the registry: its schemas allow it, and samples compute the same before and after."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import defs
from onnx.defs import OpSchema

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.model.legality import check_legal
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.schema import newest_opset, versions
from onnx_migrate.standard.unlisted_operators import EXPERIMENTAL_OPERATORS, RUNTIME_OPERATORS
from tests import harness
from tests.passes.claims import check_samples, differences, outputs
from tests.passes.steps.samples import samples
from tests.steps import lift
from tests.support.skips import Elsewhere, skip

REGISTERED = [step for step in steps(Direction.UP) if not step.domain and not step.adapt and not step.refusal]
EXISTING = [step for step in REGISTERED if step.version in versions("", step.operator)]
"""An older onnx lacks some: 1.22 knows opset 26, and not Attention-25. tests/passes/test_ledger.py finds those of none."""
CLAIMS = [step for step in EXISTING if step.version <= newest_opset()]
EXPERIMENTAL = {(operator.name, operator.removed_in) for operator in EXPERIMENTAL_OPERATORS}
"""Steps from a version that onnx.defs has removed."""
OF_RUNTIME = {(operator.name, operator.standard_from) for operator in RUNTIME_OPERATORS}
"""Steps from a version that only ONNX Runtime has."""

SCHEMA_DIFFERS = {("GRU", 3): "the default of direction was misspelt 'foward'"}
"""Claims that the schemas contradict, with the reason why they are right."""

OTHER_NUMBERS = "ONNX Runtime 1.31 has no kernel of this version, and onnx.reference draws other numbers"
NO_KERNEL = "no evaluator has this version"
WRAPS = "ONNX Runtime 1.31 stops at opset 26, and onnx.reference takes an optional for a list of one"
NOT_RUN = {
    ("Bernoulli", 22): OTHER_NUMBERS,
    ("Gemm", 6): NO_KERNEL,
    ("GlobalLpPool", 22): NO_KERNEL,
    ("MaxRoiPool", 22): NO_KERNEL,
    ("Multinomial", 22): NO_KERNEL,
    ("Optional", 28): WRAPS,
    ("OptionalGetElement", 28): WRAPS,
    ("OptionalHasElement", 28): WRAPS,
    ("RandomNormal", 22): OTHER_NUMBERS,
    ("RandomNormalLike", 22): OTHER_NUMBERS,
    ("RandomUniform", 22): OTHER_NUMBERS,
    ("RandomUniformLike", 22): OTHER_NUMBERS,
}
"""Claims whose versions no evaluator can run both; their schemas must be equal except for the allowed types."""


OTHER_KERNEL = {("Attention", 25), ("Celu", 28), ("OneHot", 28)}
"""Versions that ONNX Runtime 1.32 computes by a kernel of their own, or by the function body, which rounds otherwise."""


def _ids(step: Step) -> str:
    return step.code


def _schemas(step: Step) -> tuple[OpSchema, OpSchema]:
    return defs.get_schema(step.operator, step.older), defs.get_schema(step.operator, step.version)


@pytest.mark.parametrize(
    "step",
    [step for step in CLAIMS if (step.operator, step.version) not in EXPERIMENTAL | OF_RUNTIME],
    ids=_ids,
)
def test_schema_allows_it(step: Step) -> None:
    if (step.operator, step.version) == ("GlobalLpPool", 22) and onnx.__version__.startswith("1.17."):
        skip("onnx 1.17 left bfloat16 out of GlobalLpPool-22", Elsewhere.NEWEST)
    found = differences(*_schemas(step))
    assert bool(found) == ((step.operator, step.version) in SCHEMA_DIFFERS), found


@pytest.mark.parametrize("step", CLAIMS, ids=_ids)
def test_the_numbers_are_the_same(step: Step) -> None:
    # A version beyond ONNX Runtime's newest opset is compared with the newest that it runs.
    opset = min(step.version - 1, harness.ORT_NEWEST)
    assert max(version for version in versions("", step.operator) if version <= opset) == step.older
    runs = (step.operator, step.version) not in NOT_RUN
    check_samples(step.operator, opset, lambda sample: _compare(sample, step), runs=runs)


def _compare(source: onnx.ModelProto, step: Step) -> list[Any]:
    check_legal(source)
    before = [node.SerializeToString() for node in source.graph.node if node.op_type == step.operator]
    assert before, f"the sample of {step.operator} has none"
    result, _ = lift(source, step.version)
    after = [node.SerializeToString() for node in result.graph.node if node.op_type == step.operator]
    if step.operator not in ("If", "Loop", "Scan"):  # whose bodies are lifted
        assert after == before
    feeds = harness.random_feeds(source)
    expected, by = outputs(source, feeds)
    actual, by_too = outputs(result, feeds)
    exact = step.exactness is Exactness.EXACT and (step.operator, step.version) not in OTHER_KERNEL
    close = by != by_too or not exact
    harness.same(expected, actual, step.code, rtol=1e-5 if close else 0.0, atol=1e-6 if close else 0.0)
    return expected


@pytest.mark.parametrize(
    "step",
    [step for step in CLAIMS if (step.operator, step.version) in set(NOT_RUN) - set(SCHEMA_DIFFERS)],
    ids=_ids,
)
def test_the_schemas_of_claims_that_cannot_run_are_equal(step: Step) -> None:
    old, new = _schemas(step)
    assert old.doc.split() == new.doc.split()
    assert set(old.attributes) == set(new.attributes)
    for name, attribute in old.attributes.items():
        match = new.attributes[name]
        assert attribute.description.split() == match.description.split()
        assert (attribute.required, attribute.default_value) == (match.required, match.default_value)
    for before, after in (
        *zip(old.inputs, new.inputs, strict=True),
        *zip(old.outputs, new.outputs, strict=True),
    ):
        assert (before.name, before.option) == (after.name, after.option)
        # A hint that memory may be reused (Gemm-1) does not change the result.
        assert before.description.replace(", can be inplace.", "") == after.description


@pytest.mark.parametrize("named", [SCHEMA_DIFFERS, NOT_RUN], ids=["schema", "not_run"])
def test_the_lists_of_exceptions_name_claims_only(named: dict[tuple[str, int], str]) -> None:
    assert set(named) <= {(step.operator, step.version) for step in REGISTERED}


@pytest.mark.parametrize(
    ("operator", "to"), [("Softmax", 13), ("Erf", 13), ("GridSample", 20), ("Upsample", 10), ("Split", 13)]
)
def test_the_schema_check_finds_a_false_claim(operator: str, to: int) -> None:
    if operator == "Erf" and harness.ONNX_NEWEST < harness.SUPPORTED:
        skip("an older onnx gives Erf-9 the types of Erf-13", Elsewhere.NEWEST)
    assert differences(*_schemas(Step(Direction.UP, "", operator, to)))


@pytest.mark.parametrize(("operator", "to"), [("RoiAlign", 16), ("Hardmax", 13)])
def test_the_comparison_of_numbers_finds_a_false_claim(operator: str, to: int) -> None:
    """Change nothing but the number of the opset."""
    found = []
    for sample in samples(operator, to - 1):
        source, result = sample.model(to - 1), sample.model(to)
        feeds = harness.random_feeds(source)
        try:
            harness.same(outputs(source, feeds)[0], outputs(result, feeds)[0], operator, 1e-5, 1e-6)
        except AssertionError as error:
            found.append(str(error))
    assert found
