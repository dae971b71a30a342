"""Stored numbers in another type: small tensors at once, large ones in chunks from file to file, each converted once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from onnx import TensorProto

from onnx_migrate.model.payloads import FilePayload, Payload, pieces_of
from onnx_migrate.model.tensors import numbers
from onnx_migrate.model.weights import Weights, clear_data
from onnx_migrate.process.temporary import TemporaryFolder

from .numbers import Array, Extent, converted, floats, largest

__all__ = ["StoredNumbers"]

_CHUNK = 1 << 19
"""Bytes that are converted at a time: few enough to stay in the cache of a core, which takes half the time of 16 MB."""


_THREADS, _WAITING = 2, 6
"""How many threads convert, and how many pieces are read before the first of them is written."""


@dataclass(frozen=True)
class _Converted:
    """A tensor's data in another type: here, or in a file; and the extent of its numbers."""

    data: bytes | FilePayload
    extent: Extent


@dataclass
class StoredNumbers:
    """The tensors of a model in the type `target`. Large ones lie in a file of `folder`, which lives as long as this object.

    Small tensors are found again by their content, since the same model is written several times.
    """

    weights: Weights
    target: int
    folder: TemporaryFolder | None = None
    _found: dict[bytes | tuple[str, ...], _Converted] = field(default_factory=dict, repr=False)

    def extent(self, tensor: TensorProto) -> Extent:
        """Return the extent of a tensor's numbers, which shows the loss. Raises LoadError if the data cannot be read."""
        return self._converted(tensor).extent

    def convert(self, tensor: TensorProto, weights: Weights) -> None:
        """Give a tensor the type, in place; `weights` gets the reference to its data if that is large."""
        data = self._converted(tensor).data
        tensor.data_type = self.target
        if isinstance(data, FilePayload):
            weights.keep(tensor, data)
        else:
            clear_data(tensor)
            tensor.raw_data = data

    def _converted(self, tensor: TensorProto) -> _Converted:
        external = tensor.data_location == TensorProto.EXTERNAL
        location = tuple(f"{entry.key}={entry.value}" for entry in tensor.external_data)
        key = (*location, str(tensor.data_type)) if external else tensor.SerializeToString()
        if key not in self._found:
            self._found[key] = (
                self._from_file(tensor) if external else _Converted(*self._changed(self.numbers(tensor)))
            )
        return self._found[key]

    def numbers(self, tensor: TensorProto) -> Array:
        """Return a tensor's numbers in float32, or unchanged in float64. Raises LoadError if the data cannot be read."""
        array = numbers(self.weights.array(tensor))
        return array if array.dtype == np.float64 else np.asarray(array, np.float32)

    def _changed(self, values: Array) -> tuple[bytes, Extent]:
        extent = Extent(self.target)
        extent.add(values)
        if extent.overflows:  # a mask or bound, as the plan keeps all other nodes that read such numbers
            top = largest(self.target)
            values = np.where(np.isfinite(values), np.clip(values, -top, top), values).astype(values.dtype)
        return converted(values, self.target), extent

    def _from_file(self, tensor: TensorProto) -> _Converted:
        if self.folder is None:
            self.folder = TemporaryFolder()
        path, payload = Path(self.folder.path, "weights"), self.weights.payload(tensor)
        extent = Extent(self.target)
        # All tensors share one file, in which each begins behind the one before.
        with path.open("ab") as file, ThreadPoolExecutor(_THREADS) as pool:
            start = file.tell()
            for data, part in self._pieces(payload, tensor.data_type, pool):
                file.write(data)
                extent.join(part)
            return _Converted(FilePayload(path, start, file.tell() - start), extent)

    def _pieces(
        self, payload: Payload, source: int, pool: ThreadPoolExecutor
    ) -> Iterator[tuple[bytes, Extent]]:
        """Yield the pieces of a tensor in the other type. The last piece needs no thread; most tensors have only this one."""
        waiting: deque[Future[tuple[bytes, Extent]]] = deque()
        pieces = pieces_of(payload, _CHUNK)
        last = next(pieces, b"")
        for piece in pieces:
            waiting.append(pool.submit(self._changed, floats(last, source)))
            last = piece
            if len(waiting) == _WAITING:
                yield waiting.popleft().result()
        for future in waiting:
            yield future.result()
        yield self._changed(floats(last, source))
