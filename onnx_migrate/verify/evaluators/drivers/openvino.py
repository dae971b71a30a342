"""OpenVINO's CPU plugin, set to float32: by default it computes in bfloat16 or float16 if the machine has those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openvino

try:
    from openvino import Core
except ImportError:  # before 2023.1
    from openvino.runtime import Core

__all__ = ["load", "version"]

TITLE = "OpenVINO"
ALIASES = ("openvino-runtime",)
FLOOR = 64.0


def version() -> str:
    """Return the name of the runtime and its version."""
    full_version = getattr(openvino, "__version__", "") or openvino.runtime.get_version()
    return f"OpenVINO {full_version.split('-')[0]}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Load and compile a model."""
    core = Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    input_names = [name for port in compiled.inputs for name in port.get_names() if name in example]

    def run(feed: dict[str, Any]) -> list[Any]:
        results = request.infer({name: feed[name] for name in input_names})
        values = [results[port] for port in compiled.outputs]
        if len(values) != len(outputs):
            raise RuntimeError(f"OpenVINO returns {len(values)} outputs in place of {len(outputs)}")
        return [value.copy() for value in values]

    return run
