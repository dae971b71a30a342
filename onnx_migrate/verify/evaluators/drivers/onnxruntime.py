"""Any release of ONNX Runtime on the CPU, with all optimisations, which users have by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxruntime

__all__ = ["load", "version"]

TITLE = "ONNX Runtime"
ALIASES = ("ort",)
FLOOR = 16.0
DOUBLES = True


def version() -> str:
    """Return the name of the runtime and its version."""
    return f"ONNX Runtime {onnxruntime.__version__}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Load a model."""
    if hasattr(onnxruntime, "set_default_logger_severity"):
        # The messages would mix with the answers.
        onnxruntime.set_default_logger_severity(4)
    options: dict[str, Any] = {}
    if hasattr(onnxruntime, "get_available_providers"):
        options["providers"] = ["CPUExecutionProvider"]
    try:
        session = onnxruntime.InferenceSession(path, **options)
    except TypeError:  # ONNX Runtime before 1.3 does not know providers
        session = onnxruntime.InferenceSession(path)
    input_names = {value.name for value in session.get_inputs()}

    def run(feed: dict[str, Any]) -> list[Any]:
        fed_values = {name: value for name, value in feed.items() if name in input_names}
        results: list[Any] = session.run(outputs, fed_values)
        return results

    return run
