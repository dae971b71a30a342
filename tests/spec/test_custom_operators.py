"""Operators that are declared, and the answers that are forgotten with each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onnx_migrate.spec import custom_operators
from onnx_migrate.spec.custom_operators import (
    declare_operator,
    declared_operators,
    forget_schemas,
    schema_cache,
)
from onnx_migrate.spec.schema import newest_opset, signature_at, versions


@pytest.fixture(autouse=True)
def none_declared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(custom_operators, "_declared", {})
    yield
    monkeypatch.undo()
    forget_schemas()


def test_a_declared_operator_has_versions_and_takes_anything() -> None:
    assert (versions("com.example", "Gizmo"), newest_opset("com.example")) == ((), 0)

    declare_operator("Gizmo", 1, 4, domain="com.example")
    declare_operator("Gizmo", 3, domain="com.example")

    assert declared_operators() == {("com.example", "Gizmo"): (1, 3, 4)}
    assert (versions("com.example", "Gizmo"), newest_opset("com.example")) == ((1, 3, 4), 4)
    form = signature_at("com.example", "Gizmo", 2)
    assert form is not None
    assert (form.since_version, form.unchecked, form.min_inputs) == (1, True, 0)
    assert signature_at("com.example", "Gizmo", 4) is not None


@pytest.mark.parametrize(
    ("found", "domain"),
    [((1,), ""), ((1,), "ai.onnx"), ((1,), "ai.onnx.ml"), ((), "com.example"), ((0, 1), "com.example")],
)
def test_what_cannot_be_declared(found: tuple[int, ...], domain: str) -> None:
    with pytest.raises(ValueError, match=r"standard's|needs the versions"):
        declare_operator("Gizmo", *found, domain=domain)
    assert not declared_operators()


def test_answers_are_kept_until_another_operator_is_known() -> None:
    asked = []

    @schema_cache
    def answer(name: str) -> str:
        asked.append(name)
        return name

    answer("a")
    answer("a")
    declare_operator("Gizmo", 1, domain="com.example")
    answer("a")
    assert asked == ["a", "a"]
