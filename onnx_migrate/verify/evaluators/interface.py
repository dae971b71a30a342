"""What every runtime offers here: a model to run, an evaluator that has loaded it, and the error of either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from onnx_migrate.analysis.shapes import drop_value_info
from onnx_migrate.model.graphs import fed_inputs

__all__ = ["EvaluationError", "Evaluator", "Runnable", "one_line", "without_static_shapes"]


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


def without_static_shapes(runnable: Runnable) -> Runnable:
    """Return the model with all lengths of its inputs unknown and no shape declared elsewhere.

    It computes the same on the same inputs: kernels take lengths from what they are given. ONNX Runtime from
    1.28 on infers the length of a Resize in double precision and runs it in single; where they disagree, a
    model with fixed lengths may not load.
    """
    model = runnable.proto()
    for value in fed_inputs(model.graph):
        if value.type.WhichOneof("value") == "tensor_type":
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
    drop_value_info(model.graph)
    for value in model.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    return runnable.rewritten(model)


def one_line(text: str) -> str:
    """Return a runtime's message on one line, cut at 400 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 400 else text[:397] + "..."
