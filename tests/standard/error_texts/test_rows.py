from __future__ import annotations

from onnx_migrate.standard.error_texts.rows import Mend, Sentence


def test_a_remedy_needs_the_values_of_its_command_and_its_words() -> None:
    mend = Mend(Sentence("first with {op}"), "onnx-migrate {model} out.onnx --opset {opset}")
    assert mend.placeholders == {"op", "model", "opset"}
