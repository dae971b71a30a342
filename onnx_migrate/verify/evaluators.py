"""What runs a model: ONNX Runtime on the CPU, and onnx.reference for what that cannot load."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

__all__ = ["EvaluationError", "Evaluator", "OnnxRuntime", "Reference", "Runnable", "open_model"]

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


@dataclass(frozen=True)
class Runnable:
    """A model to run: a file, or a serialised ModelProto whose large tensors are external data in `folder`.

    With both, it is run from the file and looked at in `structure`, which saves reading the weights.
    """

    path: Path | None = None
    structure: bytes | None = None
    folder: Path | None = None

    def proto(self) -> onnx.ModelProto:
        """Return the structure; weights outside of it are not read."""
        if self.structure is not None:
            parsed: onnx.ModelProto = onnx.ModelProto.FromString(self.structure)
            return parsed
        if self.path is None:
            raise ValueError("a Runnable needs a path or a structure")
        model: onnx.ModelProto = onnx.load(self.path, load_external_data=False)
        return model

    @property
    def home(self) -> Path | None:
        """The folder that external data is looked for in."""
        return self.folder or (self.path.parent if self.path else None)

    def rewritten(self, model: onnx.ModelProto) -> Runnable:
        """Return another structure over the same weights."""
        return Runnable(structure=model.SerializeToString(), folder=self.home)


class EvaluationError(Exception):
    """A model that does not load or run; `node` is the name of the node that was blamed, "" if none.

    `limit` says that the model may well be right, and that it is the runtime that lacks the opset or a
    kernel.
    """

    def __init__(self, message: str, node: str = "", *, loading: bool = False, limit: bool = False) -> None:
        super().__init__(message)
        self.node = node
        self.loading = loading
        self.limit = limit


class Evaluator:
    """A loaded model. `run` takes values by input name and gives values by output name."""

    name = ""

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once. Raises EvaluationError."""
        raise NotImplementedError


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


class Reference(Evaluator):
    """onnx.reference: slow, and wrong for Upsample and Resize, so never asked about them (traits.resizes)."""

    def __init__(self, runnable: Runnable) -> None:
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator

        self.name = f"onnx.reference {onnx.__version__}"
        proto = runnable.proto()
        try:
            if runnable.home is not None:
                load_external_data_for_model(proto, str(runnable.home))
            self._evaluator = ReferenceEvaluator(proto)
        except Exception as error:
            raise EvaluationError(_line(str(error)), loading=True) from error

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once. Raises EvaluationError."""
        try:
            values = self._evaluator.run(None, dict(inputs))
        except Exception as error:
            raise EvaluationError(_line(f"{type(error).__name__}: {error}")) from error
        return dict(zip(self._evaluator.output_names, values, strict=True))


def open_model(runnable: Runnable, kind: str) -> Evaluator:
    """Load a model with the evaluator named: "off" and "on" are ONNX Runtime's levels, else "reference"."""
    return Reference(runnable) if kind == "reference" else OnnxRuntime(runnable, kind)


def _explained(error: Exception, *, loading: bool) -> EvaluationError:
    text = str(error)
    found = _NODE.search(text)
    node = (found["name"] or found["other"] or "") if found else ""
    return EvaluationError(_line(text), node, loading=loading, limit=loading and _limited(text))


def _limited(text: str) -> bool:
    found = _LIMIT.search(text)
    if found is None or found["op"] is None:
        return found is not None
    try:  # an operator that ONNX has at this opset is lacking in the runtime, any other in the model
        onnx.defs.get_schema(found["op"], int(found["opset"]))
    except onnx.defs.SchemaError:
        return False
    return True


def _line(text: str) -> str:
    """Return the part of a runtime's message that tells, in one line."""
    if (found := _NEWEST.search(text)) is not None:
        return f"its newest opset is {found[1]}"
    text = _STATUS.sub(r"\1 \2: ", " ".join(_NOISE.sub("", text).split()))
    return text if len(text) <= 400 else text[:397] + "..."
