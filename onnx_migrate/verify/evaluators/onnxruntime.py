"""ONNX Runtime on the CPU."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import onnx

from onnx_migrate.verify.evaluators.interface import EvaluationError, Evaluator, Runnable, one_line

__all__ = ["LEVELS", "OnnxRuntime"]

LEVELS = ("off", "on")
"""The optimisation levels of ONNX Runtime that are run: DISABLE_ALL and ENABLE_ALL."""

_NODE = re.compile(
    r"(?:while running|Node:?) ?(?P<op>\w*) node\. Name:'(?P<name>[^']*)'|Node \((?P<other>[^)]+)\)"
)
_NOISE = re.compile(  # the code, and the place in the source with its function's signature
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : |\S*/onnxruntime/\S+:\d+ (?:[^()]*?\((?:[^()]|\([^()]*\))*\) )?"
)
_STATUS = re.compile(
    r"Non-zero status code returned while running (\w+) node\. Name:('[^']*') Status Message: "
)
_NEWEST = re.compile(r"only \*guarantees\* .* for domain ai\.onnx is till opset (\d+)", re.DOTALL)
_LIMIT = re.compile(
    r"only \*guarantees\* support for models stamped with official"
    r"|Unsupported model IR version"
    r"|Could not find an implementation for "
    r"|No Op registered for (?P<op>\w+) with domain_version of (?P<opset>\d+)"
)


class OnnxRuntime(Evaluator):
    """ONNX Runtime's CPU provider; deterministic, few threads, without memory patterns."""

    def __init__(self, runnable: Runnable, level: str = "off") -> None:
        import onnxruntime

        self.name = f"onnxruntime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_ENABLE_ALL if level == "on" else levels.ORT_DISABLE_ALL
        options.intra_op_num_threads = min(4, os.cpu_count() or 1)
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        options.log_severity_level = 2
        source: str | bytes
        if runnable.path is not None:
            source = str(runnable.path)
        else:
            source = runnable.structure or b""
            if runnable.folder is not None:
                key = "session.model_external_initializers_file_folder_path"
                options.add_session_config_entry(key, str(runnable.folder))
        try:
            self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # pybind raises a dozen unrelated kinds
            raise _explained(error, loading=True) from error
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once. Raises EvaluationError."""
        try:
            values = self._session.run(self._outputs, dict(inputs))
        except Exception as error:
            raise _explained(error, loading=False) from error
        return dict(zip(self._outputs, values, strict=True))


def _explained(error: Exception, *, loading: bool) -> EvaluationError:
    text = str(error)
    found = _NODE.search(text)
    node = (found["name"] or found["other"] or "") if found else ""
    return EvaluationError(_plain(text), node, loading=loading, limit=loading and _limited(text))


def _limited(text: str) -> bool:
    found = _LIMIT.search(text)
    if found is None or found["op"] is None:
        return found is not None
    try:  # an operator that ONNX has at this opset is lacking in the runtime, any other in the model
        onnx.defs.get_schema(found["op"], int(found["opset"]))
    except onnx.defs.SchemaError:
        return False
    return True


def _plain(text: str) -> str:
    """Return what the runtime says without its status codes and places in its source."""
    if (found := _NEWEST.search(text)) is not None:
        return f"its newest opset is {found[1]}"
    return one_line(_STATUS.sub(r"\1 \2: ", " ".join(_NOISE.sub("", text).split())))
