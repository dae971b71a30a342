from __future__ import annotations

import os

from onnx_migrate.process.native_output import captured_output


def test_what_is_written_to_the_descriptor_is_collected() -> None:
    with captured_output() as text:
        os.write(2, b"a warning of native code")
        assert text() == "a warning of native code"
        os.write(2, b", and another")
    assert text_after(captured_output) == ""


def text_after(capture) -> str:  # type: ignore[no-untyped-def]
    with capture() as text:
        return str(text())
