"""The texts of a drawing, and when two drawings are equal."""

from __future__ import annotations

from onnx_migrate.report.html.diagram_parts import Texts


def test_a_key_has_one_text_however_often_it_is_asked_for() -> None:
    texts = Texts()

    first = texts.index(("value", "x"), "x", "input")
    again = texts.index(("value", "x"), "another text", "data")
    other = texts.index(("kept", "x"), "x", "axis")

    assert (first, again, other) == (0, 0, 1)
    assert (texts.texts, texts.labels) == (["x", "x"], ["input", "axis"])
