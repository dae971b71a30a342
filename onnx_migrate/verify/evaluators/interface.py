"""The interface of every runtime: an evaluator that has loaded a model, the error if it fails, and the model to run."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto

from onnx_migrate.cached import cached_property
from onnx_migrate.facts.shapes import drop_value_info
from onnx_migrate.model.graphs import fed_inputs, initializer_names
from onnx_migrate.model.weights import Weights
from onnx_migrate.process.endings import names_lack_of_memory

__all__ = [
    "EvaluationError",
    "Evaluator",
    "Runnable",
    "one_line",
    "raise_if_out_of_memory",
    "with_defaults_as",
    "with_extra_outputs",
    "without_static_shapes",
]


class EvaluationError(Exception):
    """A model does not load (`loading`) or does not run; the message is the runtime's, on one line.

    `node` is the name of the node that the runtime names as the cause, "" if it names none. `limit` says that the
    model may be valid and that the runtime lacks the opset or a kernel.
    """

    def __init__(self, message: str, node: str = "", *, loading: bool = False, limit: bool = False) -> None:
        super().__init__(message)
        self.node = node
        self.loading = loading
        self.limit = limit

    @property
    def failed_to(self) -> str:
        """The failed step, as a verb: "load" or "run"."""
        return "load" if self.loading else "run"


class Evaluator:
    """A loaded model. `name` is the runtime and its version, as in "onnxruntime 1.20.0"; `notes` are for the report."""

    name = ""
    notes: tuple[str, ...] = ()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once, with a value for each input by name, and return a value for each graph output by name.

        Tensors are numpy arrays, sequences lists, an absent optional None. Raises EvaluationError, and MemoryError if the
        runtime lacks memory, which is no fault of the model.
        """
        raise NotImplementedError


def raise_if_out_of_memory(error: Exception, text: str = "") -> None:
    """Raise MemoryError if an error of a runtime says that memory ran out: such an error tells nothing of the model.

    `text` is the message, in place of the error's own.
    """
    if isinstance(error, MemoryError) or names_lack_of_memory(str(error)):
        raise MemoryError(one_line(text or str(error))) from error


def one_line(text: str) -> str:
    """Return a runtime's message on one line, cut at 400 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 400 else text[:397] + "..."


@dataclass(frozen=True)
class Runnable:
    """A model to run: a file, or a serialised ModelProto whose large tensors are external data that `weights` finds.

    With both, the runtime loads the file, and `proto` parses `structure`, which saves reading the weights. The runtime reads the
    file unchanged, with the files it refers to, so it must lie in a folder that nobody else writes to.
    """

    path: Path | None = None
    structure: bytes | None = None
    weights: Weights | None = None
    libraries: tuple[str, ...] = ()
    """Libraries with kernels of custom operators, for ONNX Runtime."""
    given: bytes | None = None
    """A repaired copy of `structure` that ONNX Runtime loads instead, over the same external data; None if none is needed."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out `model`, which another process parses for itself."""
        return {name: value for name, value in self.__dict__.items() if name != "model"}

    @cached_property
    def model(self) -> onnx.ModelProto:
        """The structure, parsed once, for those who do not change it."""
        return self.proto()

    def proto(self) -> onnx.ModelProto:
        """Return a new parse of the structure; external data is not read."""
        if self.structure is not None:
            parsed: onnx.ModelProto = onnx.ModelProto.FromString(self.structure)
            return parsed
        if self.path is None:
            raise ValueError("a Runnable needs a path or a structure")
        model: onnx.ModelProto = onnx.load(self.path, load_external_data=False)
        return model

    @property
    def external_data(self) -> Weights:
        """The object that finds external data: `weights`, or one for the folder of the file."""
        return self.weights or Weights(self.path.parent if self.path else None)

    def inlined(self, tensor: TensorProto) -> TensorProto:
        """Return a tensor with its data, which may be external. Raises LoadError."""
        return self.external_data.inlined(tensor) if tensor.data_location == TensorProto.EXTERNAL else tensor

    def with_structure(self, model: onnx.ModelProto) -> Runnable:
        """Return another structure over the same external data."""
        return Runnable(
            structure=model.SerializeToString(), weights=self.external_data, libraries=self.libraries
        )


def with_extra_outputs(runnable: Runnable, names: Iterable[str]) -> Runnable:
    """Return the model with these values of the main graph as further graph outputs, without declared types."""
    model = runnable.proto()
    present = {output.name for output in model.graph.output}
    for name in dict.fromkeys(names):
        if name not in present:
            model.graph.output.add().name = name
    return runnable.with_structure(model)


def with_defaults_as(runnable: Runnable, other: Runnable, fed: Container[str]) -> Runnable:
    """Return the model with those initializers listed as inputs that `other` lists too, and those that are `fed`.

    A listed initializer is the default of an input. An unlisted one is a constant. ONNX Runtime computes differently with
    constants, because it packs constant weights before it multiplies. So two models compute alike only with the same constants.
    """
    model = runnable.proto()
    if model.ir_version < 4:  # all initializers are constants, though listed
        return runnable
    listed = {value.name for value in model.graph.input} & initializer_names(model.graph)
    # These inputs are constants in the other model.
    constants = listed - {value.name for value in other.model.graph.input}
    if all(name in fed for name in constants):
        return runnable
    remaining_inputs = [
        value for value in model.graph.input if value.name not in constants or value.name in fed
    ]
    del model.graph.input[:]
    model.graph.input.extend(remaining_inputs)
    return runnable.with_structure(model)


def without_static_shapes(runnable: Runnable) -> Runnable:
    """Return the model with every dim of its inputs unknown and no shape declared elsewhere.

    It computes the same on the same inputs, because kernels take lengths from the tensors they read. From 1.28 on, ONNX Runtime
    infers the length of a Resize in double precision and computes it in single precision. If the two disagree, a model with fixed
    lengths may fail to load.
    """
    model = runnable.proto()
    for value in fed_inputs(model.graph):
        if value.type.WhichOneof("value") == "tensor_type":
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
    # The declarations inside hold shapes too, which would contradict the unknown ones.
    drop_value_info(model)
    for value in model.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    return runnable.with_structure(model)
