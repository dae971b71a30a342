"""Models of float64 that get a narrow type: they become float32 first, and the result is compared with the original."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import TensorProto

from onnx_migrate import process
from onnx_migrate.facts.narrow_floats import names_type
from onnx_migrate.facts.typed_graph import Frame, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import weight_tensors
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.standard.retyping import FLOATS
from onnx_migrate.verify import Settings
from onnx_migrate.verify.precision.closeness import CLOSENESS, Closeness
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import interruption

from .planning import plan_of
from .stored import StoredNumbers
from .stored_narrow import SMALL
from .write import write

__all__ = ["compared_with_double", "in_float32"]

_DRAWS = 3
"""How many times inputs are drawn for the comparison with the model of float64."""


def in_float32(model: Model, *, interface: bool) -> Model:
    """Return a model of float64 in float32, `model` itself if it hardly computes in float64."""
    # Most models do not name float64 at all, which is known without the types of their values.
    if not names_type(model.proto, {TensorProto.DOUBLE}):
        return model
    result, stored = model.copy(), StoredNumbers(model.weights, TensorProto.FLOAT)
    frames = frames_of(result.proto, TypeTable(model.proto))
    if not _is_double(model, frames):
        return model
    plan = plan_of(frames, TensorProto.FLOAT, stored, sources=frozenset({TensorProto.DOUBLE}))
    write(frames, plan, Names(result.proto), stored, result.weights, interface=interface)
    result.keepalive = (model.keepalive, stored)
    return model if result.proto == model.proto else result


def _is_double(model: Model, frames: Iterable[Frame]) -> bool:
    """Return whether a model computes in float64, with weights of that, or in more nodes than in other floats.

    A few float64 nodes between Casts, for example for an index, do not count: their author chose float64.
    """
    steps = [step for frame in frames for step in frame.steps if not step.is_a("Cast", "Constant")]
    double = sum(any(value.dtype == TensorProto.DOUBLE for value in step.made) for step in steps)
    others = sum(any(value.dtype in FLOATS for value in step.made) for step in steps)
    weights = (tensor for tensor in weight_tensors(model.proto) if tensor.data_type == TensorProto.DOUBLE)
    stored = sum(byte_size(tensor.dims, tensor.data_type) or 0 for tensor in weights)
    return double > others or (double > 0 and stored > SMALL)


def compared_with_double(original: Model, result: Model, kind: int, settings: Settings) -> Closeness:
    """Return how close a result is to the model of float64 that it was made from."""
    with Prover(settings) as prover:
        models = prover.runnable(original), prover.runnable(result)
        ending = settings.call(CLOSENESS, *models, kind, settings.for_child, _DRAWS)
    if isinstance(ending, process.Returned):
        closeness: Closeness = ending.value
        return closeness
    return Closeness(reason=interruption(ending))
