"""Fourier transforms as the products that they stand for, because ONNX Runtime's kernels lose digits of some.

Some lengths are no power of two, for example the 400 of Whisper. DFT and STFT then go through a chirp of the signal's type
(dft.cc in onnxruntime/core/providers/cpu/signal). With 400 elements, the error of the result is 3e-5 of the largest number. The
product with a matrix of cosines and sines has an error of 6e-7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.cached import cached_property
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import Body, LocatedBody
from onnx_migrate.model.names import Names
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.evaluators.written_nodes import Written, WrittenNodes

__all__ = ["TRANSFORM_NOTE", "Transforms"]

TRANSFORM_NOTE = (
    "DFT and STFT ran as products with cosines and sines. ONNX Runtime's own kernels have an error of 0.001 % to 0.01 % of the"
    " largest number for lengths that are no power of two"
)

_LONGEST = 4096
"""Largest number of elements of a transform; its matrix would take more than 128 MB above it."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Transforms:
    """The transforms of one model."""

    model: onnx.ModelProto

    @cached_property
    def types(self) -> TypeTable:
        """Return the types of the model's values."""
        return TypeTable(self.model)

    def products(self, located: LocatedBody) -> dict[int, Written]:
        """Return for the places of the transforms of a body that lose digits, and whose sizes are known, how they are written."""
        if not any(node.op_type in ("DFT", "STFT") and is_onnx(node.domain) for node in located.body.node):
            return {}
        return dict(self._found(located, _stored(located.body)))

    def _found(
        self, located: LocatedBody, stored: Mapping[str, TensorProto]
    ) -> Iterator[tuple[int, Written]]:
        for node_index, node in enumerate(located.body.node):
            settings = {attribute.name: attribute.i for attribute in node.attribute}
            inputs = [*node.input, "", "", ""]
            if node.op_type == "STFT" and settings.get("onesided", 1):
                window = stored.get(inputs[2])
                length = _number(stored.get(inputs[3])) or (window.dims[0] if window is not None else 0)
                if _loses_digits(length):
                    yield node_index, partial(_stft, length=length)
            elif node.op_type == "DFT" and located.owner is self.model:
                shape = self.types.lookup(None, located.key, inputs[0]).shape or ()
                axis = settings.get("axis", 1)
                if "axis" not in settings and len(node.input) > 2 and inputs[2]:
                    number = _number(stored.get(inputs[2]))
                    axis = len(shape) if number is None else number  # which none has
                elif _opset(self.model) >= 20:
                    axis = -2
                # The last axis holds real and imaginary parts.
                if not -len(shape) <= axis < len(shape) - 1:
                    continue
                size, parts = shape[axis], shape[-1]
                length = (_number(stored.get(inputs[1])) if inputs[1] else size) or 0
                if (
                    size
                    and parts
                    and _loses_digits(length)
                    and not (settings.get("inverse") and settings.get("onesided"))
                ):
                    yield (
                        node_index,
                        partial(_dft, shape=(len(shape), axis % len(shape), size, parts), length=length),
                    )


def _stored(body: Body) -> dict[str, TensorProto]:
    tensors_by_name = {tensor.name: tensor for tensor in getattr(body, "initializer", ())}
    for node in body.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensors_by_name[node.output[0]] = node.attribute[0].t
    return tensors_by_name


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if is_onnx(entry.domain)), default=0)


def _number(tensor: TensorProto | None) -> int | None:
    return None if tensor is None else int(numpy_helper.to_array(tensor).reshape(-1)[0])


def _loses_digits(length: int) -> bool:
    return bool(length & (length - 1)) and 0 < length <= _LONGEST


def _waves(rows: int, columns: int, length: int) -> Array:
    """Return the complex exponential of minus i times the angles; rows from `length` on are zero."""
    row_numbers = np.arange(rows)
    # Angles repeat after a whole turn, and small angles keep their digits.
    angles = np.outer(row_numbers, np.arange(columns)) % length * (2 * np.pi / length)
    return np.asarray(np.exp(-1j * angles) * (row_numbers < length)[:, None])


def _stft(node: onnx.NodeProto, names: Names, length: int) -> list[onnx.NodeProto]:
    """Gather the frames of a real signal, and multiply them with the window and with the waves of half of the frequencies."""
    signal, step, window = [*node.input, ""][:3]
    write = WrittenNodes(node.output[0], names)
    put, constant = write.put, write.constant
    waves = _waves(length, length // 2 + 1, length)
    flat, step = put("Reshape", signal, constant([0, -1])), put("Cast", step, to=TensorProto.INT64)
    room = put("Sub", put("Squeeze", put("Shape", flat, start=1)), constant(length))
    count = put("Add", put("Div", room, step), constant(1))
    count = put(
        "Max", count, constant(1)
    )  # of a signal that is too short, the Gather fails as the kernel does
    starts = put("Mul", put("Range", constant(0), count, constant(1)), step)
    sample_indices = put("Add", put("Unsqueeze", starts, constant([1])), constant(np.arange(length)[None]))
    frames = put("Gather", flat, sample_indices, axis=1)
    frames = put("Mul", frames, window) if window else frames
    matrix = constant(np.stack([waves.real, waves.imag], -1).reshape(length, -1))
    product = put("MatMul", frames, put("CastLike", matrix, frames))
    return write.end(put("Reshape", product, constant([0, 0, length // 2 + 1, 2])))


def _dft(
    node: onnx.NodeProto, names: Names, shape: tuple[int, int, int, int], length: int
) -> list[onnx.NodeProto]:
    """Multiply the axis of a signal with the waves; `shape` is the rank, the axis, its size, and the parts of a number."""
    rank, axis, size, parts = shape
    settings = {attribute.name: attribute.i for attribute in node.attribute}
    count = length // 2 + 1 if settings.get("onesided") else length
    write = WrittenNodes(node.output[0], names)
    put, constant = write.put, write.constant
    waves = _waves(size, count, length)
    # The inverse transform turns the other way, and divides by the length.
    waves = waves.conj() / length if settings.get("inverse") else waves
    # Real and imaginary parts stand side by side: those of the signal in rows, those of the result in columns.
    table = np.stack([np.stack([waves.real, waves.imag], -1), np.stack([-waves.imag, waves.real], -1)], 1)[
        :, :parts
    ]
    matrix = constant(table.reshape(size * parts, count * 2))
    order = [*(other_axis for other_axis in range(rank - 1) if other_axis != axis), axis, rank - 1]
    # A 0 in Reshape copies the length, which may be open.
    copied_lengths = [0] * (rank - 2)
    value = put(
        "Reshape", put("Transpose", node.input[0], perm=order), constant([*copied_lengths, size * parts])
    )
    value = put("MatMul", value, put("CastLike", matrix, value))
    value = put("Reshape", value, constant([*copied_lengths, count, 2]))
    return write.end(put("Transpose", value, perm=[order.index(other_axis) for other_axis in range(rank)]))
