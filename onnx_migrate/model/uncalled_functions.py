"""The functions of a model that no node of its graph leads to."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.model.graphs import function_key, uncalled_functions
from onnx_migrate.model.legality import node_faults
from onnx_migrate.model.validity.fault import Fault

__all__ = ["uncalled_alone", "uncalled_faults"]


def uncalled_faults(proto: onnx.ModelProto) -> Iterator[Fault]:
    """Yield the faults that the schemas find in functions that no node of the graph leads to."""
    alone = uncalled_alone(proto)
    if alone.functions:
        yield from node_faults(alone)


def uncalled_alone(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of the functions that no node of the graph leads to."""
    uncalled = uncalled_functions(proto)
    alone = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)
    alone.functions.extend(function for function in proto.functions if function_key(function) in uncalled)
    return alone
