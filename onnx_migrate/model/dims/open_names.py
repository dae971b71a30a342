"""The names that open dims get while passes run, and the name or number that the model has for each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx

__all__ = ["OpenNames"]


@dataclass(frozen=True)
class OpenNames:
    """The fact that dims of inputs and outputs have names of their own while passes run.

    `own` has the model's name of each, or its number, for example -1.
    """

    own: Mapping[str, str | int]

    def put_back(self, graph: onnx.GraphProto) -> None:
        """Give dims of inputs and outputs the names and numbers that the model has for them, in place.

        A name that an expression contains stays, as the expression would mean something else.
        """
        # Most models have no names that inference replaced.
        dims = list(_dims(graph)) if self.own else []
        words = {
            word
            for _, dim in dims
            if dim.dim_param not in self.own
            for word in re.findall(r"[^\s+*/()-]+", dim.dim_param)
        }
        for first, dim in dims:
            if dim.dim_param in self.own and dim.dim_param not in words:
                _declare(dim, self.own.get(first, self.own[dim.dim_param]))


def _declare(dim: onnx.TensorShapeProto.Dimension, own: str | int) -> None:
    if isinstance(own, int):
        dim.dim_value = own
    else:
        dim.dim_param = own


def _dims(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorShapeProto.Dimension]]:
    """Yield the dims of inputs and outputs, each with the name that it had first: another pass may know that two are equal."""
    for value in (*graph.input, *graph.output):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            yield f"{value.name}_dim_{axis}", dim
