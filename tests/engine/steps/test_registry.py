"""The registries of steps up, down and of decompositions, and the table of steps."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest

from onnx_migrate.engine.steps import registry
from onnx_migrate.engine.steps.registration import (
    adapter,
    compatible,
    decomposition,
    lowering,
    unchanged,
    unsupported,
)
from onnx_migrate.engine.steps.registry import StepTable, decomposition_of, next_step, step_at, steps
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.engine.steps.step_docs import reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.schema import versions


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the registry without steps for one test."""
    monkeypatch.setattr(registry, "_table", StepTable({}))
    registry._passed.cache_clear()
    yield
    registry._passed.cache_clear()


@pytest.mark.usefixtures("empty")
def test_an_adapter_gives_its_docstring_as_reason_and_is_registered_once_for_each_operator() -> None:
    @adapter("Softmax", "Hardmax", to=13, exactness=Exactness.EQUIVALENT)
    def softmax(node: onnx.NodeProto, rw: Rewriter) -> None:
        """Moves the axis,
        in one line.

        More of it.
        """

    found = {step.code: step for step in steps(Direction.UP)}
    assert list(found) == ["hardmax-13", "softmax-13"]
    step = found["softmax-13"]
    assert (step.adapt, step.kind, step.older) == (softmax, "adapted", 11)
    assert step.reason == "Moves the axis, in one line"
    assert step.doc.endswith("More of it.")
    with pytest.raises(ValueError, match="registered twice"):
        compatible("Softmax", 13, reason="nothing")


@pytest.mark.usefixtures("empty")
def test_an_adapter_without_a_docstring_is_refused() -> None:
    def silent(node: onnx.NodeProto, rw: Rewriter) -> None:
        rw.rename("Identity")

    with pytest.raises(ValueError, match="needs a docstring"):
        adapter("Softmax", to=13)(silent)


@pytest.mark.usefixtures("empty")
def test_exact_claims_are_passed_by_and_a_version_without_a_step_is_named() -> None:
    compatible("Relu", 6, 13, reason="wider types")
    compatible("Relu", 14, reason="another kernel", exactness=Exactness.EQUIVALENT)

    assert next_step(Direction.UP, "", "Relu", 5, 13) is None
    step = next_step(Direction.UP, "ai.onnx", "Relu", 5, 17)
    assert isinstance(step, Step)
    assert (step.version, step.kind) == (14, "compatible")
    assert next_step(Direction.UP, "", "Relu", 14, 17) is None
    assert next_step(Direction.UP, "", "Softmax", 11, 17) == 13
    assert next_step(Direction.UP, "", "Softmax", 11, 12) is None


@pytest.mark.usefixtures("empty")
def test_a_refusal_and_steps_of_another_domain() -> None:
    unsupported("Upsample", 10, why="no equal", hint="none")
    compatible("LabelEncoder", 4, reason="tensors", domain="ai.onnx.ml", exactness=Exactness.EQUIVALENT)

    refused = next_step(Direction.UP, "", "Upsample", 9, 17)
    assert isinstance(refused, Step)
    assert (refused.kind, refused.doc, refused.code) == ("refused", "no equal", "upsample-10")
    encoder = next_step(Direction.UP, "ai.onnx.ml", "LabelEncoder", 2, 5)
    assert isinstance(encoder, Step)
    assert encoder.code == "ai.onnx.ml.labelencoder-4"
    assert next_step(Direction.UP, "com.acme", "Upsample", 1, 17) is None


def test_the_adapters_folder_is_loaded_on_the_first_question() -> None:
    step = next_step(Direction.UP, "", "Softmax", 11, 17)

    assert isinstance(step, Step)
    assert step.adapt is not None
    assert step.adapt.__module__ == "onnx_migrate.passes.steps.softmax"


def test_a_step_is_found_by_the_version_it_leaves() -> None:
    step = step_at(Direction.DOWN, "ai.onnx", "Softmax", 13)

    assert step is not None
    assert (step.kind, step.code, step.older) == ("adapted", "softmax-13-down", 11)
    assert "axis" in step.doc
    assert step_at(Direction.DOWN, "", "Softmax", 12) is None


def test_an_operator_that_begins_leads_nowhere() -> None:
    assert Step(Direction.DOWN, "", "Mish", 18).older == 0


def test_a_step_is_registered_once() -> None:
    assert step_at(Direction.DOWN, "", "Softmax", 13)
    with pytest.raises(ValueError, match="twice"):
        unchanged("Softmax", 13, reason="again")


def test_an_adapter_says_why() -> None:
    def silent(node: object, rw: object) -> None: ...

    with pytest.raises(ValueError, match="docstring"):
        lowering("Softmax", leaves=99)(silent)


def test_steps_are_listed_in_order() -> None:
    keys = [(step.domain, step.operator, step.version) for step in steps(Direction.DOWN)]
    assert keys == sorted(keys)


def test_every_decomposition_says_what_changes_and_why_that_is_equal() -> None:
    assert len(steps(Direction.WITHOUT)) > 40
    for item in steps(Direction.WITHOUT):
        assert item.reason
        if item.refusal:
            assert item.hint
            assert item.domain
            continue
        assert "What changes:" in item.doc or "The formula; " in item.doc, item.code
        assert "Why equal:" in item.doc, item.code
        assert item.domain or versions("", item.operator), item.code
        name = f"{item.domain}.{item.operator}" if item.domain else item.operator
        assert item.code == f"{name.lower()}-written-out"


def test_lookup() -> None:
    found = decomposition_of("ai.onnx", "Softplus")
    assert found is decomposition_of("", "Softplus") is not None
    assert decomposition_of("", "Conv") is None
    assert decomposition_of("com.acme", "Softplus") is None


def test_a_second_one_and_one_without_a_text_are_refused() -> None:
    with pytest.raises(ValueError, match="softplus-written-out is registered twice"):
        decomposition("Softplus")(_documented)
    with pytest.raises(ValueError, match="docstring"):
        decomposition("Acos")(lambda node, rw: None)


def _documented(node: object, rw: object) -> None:
    """It is nothing."""


def test_a_table_without_packages_holds_what_is_registered_in_order() -> None:
    table = StepTable({})
    table.register(later := Step(Direction.UP, "", "Relu", 14))
    table.register(first := Step(Direction.UP, "", "Relu", 6))
    table.register(down := Step(Direction.DOWN, "", "Relu", 14))

    assert table.all(Direction.UP) == [first, later]
    assert table.get(Direction.UP, "", "Relu", 14) is later
    assert table.get(Direction.DOWN, "", "Relu", 14) is down
    assert table.get(Direction.UP, "", "Relu", 13) is None
    with pytest.raises(ValueError, match="relu-14 is registered twice"):
        table.register(later)


def test_a_table_imports_the_modules_of_its_packages_at_the_first_question() -> None:
    table = StepTable({Direction.UP: ("onnx_migrate.no_such_package",)})

    table.register(Step(Direction.UP, "", "Relu", 14))
    assert table.all(Direction.DOWN) == []
    with pytest.raises(ModuleNotFoundError):
        table.all(Direction.UP)
    with pytest.raises(ModuleNotFoundError):  # a failed load is not taken for an empty table
        table.get(Direction.UP, "", "Relu", 14)


@pytest.mark.usefixtures("empty")
def test_a_way_down_ends_at_the_first_step_that_changes_the_node() -> None:
    unchanged("Relu", 14, 13, reason="fewer types")
    unchanged("Relu", 6, reason="another kernel", exactness=Exactness.EQUIVALENT)

    assert next_step(Direction.DOWN, "", "Relu", 17, 6) is None
    step = next_step(Direction.DOWN, "ai.onnx", "Relu", 17, 5)
    assert isinstance(step, Step)
    assert (step.version, step.older, step.kind, step.code) == (6, 1, "unchanged", "relu-6-down")
    lost = next_step(Direction.DOWN, "", "Relu", 17, 6, lambda step: step.version == 13)
    assert isinstance(lost, Step)
    assert lost.version == 13
    assert next_step(Direction.DOWN, "", "Softmax", 17, 11) == 13


def test_the_reason_is_the_first_paragraph_on_one_line() -> None:
    def wrapped() -> None:
        """Moves the axis,
        in one line.

        More of it.
        """

    def silent() -> None: ...

    assert reason_of(wrapped) == "Moves the axis, in one line"
    with pytest.raises(ValueError, match="silent needs a docstring"):
        reason_of(silent)
