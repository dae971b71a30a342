"""The table that both registries of steps are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from onnx_migrate.engine.steps.step_table import StepTable, reason_of


@dataclass(frozen=True)
class Named:
    code: str
    key: tuple[str, str, int]


def test_a_table_without_a_package_holds_what_is_registered_in_order() -> None:
    table: StepTable[Named] = StepTable()
    table.register(later := Named("relu-14", ("", "Relu", 14)))
    table.register(first := Named("relu-6", ("", "Relu", 6)))

    assert table.all() == [first, later]
    assert table.get(("", "Relu", 14)) is later
    assert table.get(("", "Relu", 13)) is None
    with pytest.raises(ValueError, match="relu-14 is registered twice"):
        table.register(later)


def test_a_table_imports_the_modules_of_its_package_at_the_first_question() -> None:
    table: StepTable[Named] = StepTable("onnx_migrate.no_such_package")

    table.register(Named("relu-14", ("", "Relu", 14)))
    with pytest.raises(ModuleNotFoundError):
        table.all()
    with pytest.raises(ModuleNotFoundError):  # a failed load is not taken for an empty table
        table.get(("", "Relu", 14))


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
