"""Names that terminals would obey, that are not UTF-8, and that are very long."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.printable import markup_of, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain → text, naïve 模型", "plain → text, naïve 模型"),
        ("\x1b[2Jgone\x07", r"\x1b[2Jgone\x07"),
        ("one\nonnx-migrate: verified", r"one\nonnx-migrate: verified"),
        ("\x9b31m", r"\x9b31m"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("name\udcff", r"name\udcff"),
    ],
)
def test_what_a_terminal_obeys_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert str(CannotMigrate("no", where=Where("graph", text, "Relu"))).isprintable()


def test_a_long_name_is_cut_and_a_long_text_is_not() -> None:
    assert printable("x" * 8_000_000) == f"{'x' * 200}…{'x' * 50} (8,000,000 characters)"
    assert printable("x" * 1000) == "x" * 1000
    assert printable("word " * 1000) == "word " * 1000
    error = CannotMigrate("no", where=Where("graph", "y" * 8_000_000, "Relu"))
    assert len(str(error)) < 1000


def test_an_error_is_one_line() -> None:
    assert str(CannotMigrate("first\n  second")) == "first second"


def test_markup_shows_brackets() -> None:
    assert markup_of("[bold]\x1b") == r"\[bold]\x1b"
