"""The registry of decompositions: every one is documented, and none hides a step down that would do."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.steps.decomposition_registry import decomposition, decomposition_of, decompositions
from onnx_migrate.standard.schema import versions


def test_every_decomposition_says_what_changes_and_why_that_is_equal() -> None:
    assert len(decompositions()) > 40
    for item in decompositions():
        assert item.reason
        assert "What changes:" in item.doc or "The formula; " in item.doc, item.code
        assert "Why equal:" in item.doc, item.code
        assert versions("", item.operator), item.code
        assert item.code == f"{item.operator.lower()}-written-out"


def test_lookup() -> None:
    found = decomposition_of("ai.onnx", "Softplus")
    assert found is decomposition_of("", "Softplus") is not None
    assert decomposition_of("", "Conv") is None
    assert decomposition_of("com.acme", "Softplus") is None


def test_a_second_one_and_one_without_a_text_are_refused() -> None:
    with pytest.raises(ValueError, match="two decompositions"):
        decomposition("Softplus")(_documented)
    with pytest.raises(ValueError, match="docstring"):
        decomposition("Acos")(lambda node, rw: None)


def _documented(node: object, rw: object) -> None:
    """It is nothing."""
