"""The registry of steps: what decorators register, and which step a lift takes next."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest

from onnx_migrate.engine.steps import registry
from onnx_migrate.engine.steps.registry import adapter, compatible, next_step, steps, unsupported
from onnx_migrate.engine.steps.step_table import StepTable
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the registry without steps for one test."""
    monkeypatch.setattr(registry, "_table", StepTable())
    next_step.cache_clear()
    yield
    next_step.cache_clear()


@pytest.mark.usefixtures("empty")
def test_an_adapter_gives_its_docstring_as_reason_and_is_registered_once_for_each_operator() -> None:
    @adapter("Softmax", "Hardmax", to=13, exactness=Exactness.EQUIVALENT)
    def softmax(node: onnx.NodeProto, rw: Rewriter) -> None:
        """Moves the axis,
        in one line.

        More of it.
        """

    found = {step.code: step for step in steps()}
    assert list(found) == ["hardmax-13", "softmax-13"]
    step = found["softmax-13"]
    assert (step.adapt, step.kind, step.from_version) == (softmax, "adapted", 11)
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

    assert next_step("", "Relu", 5, 13) is None
    step = next_step("ai.onnx", "Relu", 5, 17)
    assert isinstance(step, registry.Step)
    assert (step.to, step.kind) == (14, "compatible")
    assert next_step("", "Relu", 14, 17) is None
    assert next_step("", "Softmax", 11, 17) == 13
    assert next_step("", "Softmax", 11, 12) is None


@pytest.mark.usefixtures("empty")
def test_a_refusal_and_steps_of_another_domain() -> None:
    unsupported("Upsample", 10, why="no equal", hint="none")
    compatible("LabelEncoder", 4, reason="tensors", domain="ai.onnx.ml", exactness=Exactness.EQUIVALENT)

    refused = next_step("", "Upsample", 9, 17)
    assert isinstance(refused, registry.Step)
    assert (refused.kind, refused.doc, refused.code) == ("refused", "no equal", "upsample-10")
    encoder = next_step("ai.onnx.ml", "LabelEncoder", 2, 5)
    assert isinstance(encoder, registry.Step)
    assert encoder.code == "ai.onnx.ml.labelencoder-4"
    assert next_step("com.acme", "Upsample", 1, 17) is None


def test_the_adapters_folder_is_loaded_on_the_first_question() -> None:
    step = next_step("", "Softmax", 11, 17)

    assert isinstance(step, registry.Step)
    assert step.adapt is not None
    assert step.adapt.__module__ == "onnx_migrate.passes.steps.softmax"
