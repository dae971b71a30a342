"""The faults that make a model invalid, and their locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import onnx

from onnx_migrate.errors import InvalidModel, Where
from onnx_migrate.model.graphs import node_label

__all__ = ["Fault", "Problem", "where_of"]


class Problem(NamedTuple):
    """One fault before its location is known: its code and a reason."""

    code: str
    reason: str


@dataclass(frozen=True)
class Fault:
    """One fault: its code (see report/codes.py), a reason without subject, its location, and a hint."""

    code: str
    reason: str
    where: Where | None = None
    hint: str = ""

    def error(self) -> InvalidModel:
        """Return the error that refuses a source with this fault."""
        return InvalidModel(
            f"not a valid ONNX model: {self.reason}", code=self.code, where=self.where, hint=self.hint
        )


def where_of(path: str, node: onnx.NodeProto) -> Where:
    """Return the place of a node of the body at `path`; an unnamed node has the name of its first output."""
    return Where(path, node_label(node), node.op_type)
