"""The names that dims get while passes run, as a model calls several lengths by one name, and their own names afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx

__all__ = ["OpenNames"]


@dataclass(frozen=True)
class OpenNames:
    """The fact that dims of inputs and outputs have names of their own while passes run; `own` has the model's names of them."""

    own: Mapping[str, str]

    def put_back(self, graph: onnx.GraphProto) -> None:
        """Give dims of inputs and outputs the names that the model has for them, in place.

        A name that an expression contains stays, as the expression would mean something else.
        """
        dims = list(_dims(graph)) if self.own else []
        words = {
            word
            for dim in dims
            if dim.dim_param not in self.own
            for word in re.findall(r"[^\s+*/()-]+", dim.dim_param)
        }
        for dim in dims:
            if dim.dim_param in self.own and dim.dim_param not in words:
                dim.dim_param = self.own[dim.dim_param]


def _dims(graph: onnx.GraphProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    for value in (*graph.input, *graph.output):
        yield from value.type.tensor_type.shape.dim
