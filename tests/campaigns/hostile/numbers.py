"""Where a large number of a generated model comes from: stored, computed, from a function, or from the length of an input."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tests.campaigns.hostile.building import function, model, node

__all__ = ["constant", "reading"]


def constant(name: str, array: object) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


Source = Callable[[str, np.ndarray], tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]]
"""Returns what gives a value of this name these int64 numbers."""


def _stored(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    return [], [constant(name, numbers)], []


def _constant_node(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    return [node("Constant", [], [name], value=numpy_helper.from_array(numbers))], [], []


def _computed(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    """The numbers are the sum of their halves."""
    half = numbers // 2
    return (
        [node("Identity", [f"{name}_a"], [f"{name}_i"]), node("Add", [f"{name}_i", f"{name}_b"], [name])],
        [constant(f"{name}_a", half), constant(f"{name}_b", numbers - half)],
        [],
    )


def _of_function(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    """A function adds a number to itself."""
    twice = function("Twice", [node("Add", ["a", "a"], ["b"])])
    return (
        [node("Twice", [f"{name}_h"], [f"{name}_t"], "f"), node("Add", [f"{name}_t", f"{name}_r"], [name])],
        [constant(f"{name}_h", numbers // 2), constant(f"{name}_r", numbers % 2)],
        [twice],
    )


def _of_shape(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    """The length of the input, 2, is divided by itself and multiplied."""
    return (
        [
            node("Shape", ["x"], [f"{name}_s"]),
            node("Div", [f"{name}_s", f"{name}_two"], [f"{name}_one"]),
            node("Mul", [f"{name}_one", f"{name}_n"], [f"{name}_m"]),
            node("Reshape", [f"{name}_m", f"{name}_shape"], [name]),
        ],
        [
            constant(f"{name}_two", np.array([2])),
            constant(f"{name}_n", numbers.reshape(-1)),
            constant(f"{name}_shape", np.array(numbers.shape, np.int64)),
        ],
        [],
    )


SOURCES: dict[str, Source] = {
    "stored": _stored,
    "constant": _constant_node,
    "computed": _computed,
    "function": _of_function,
    "shape": _of_shape,
}


def reading(
    source: str, name: str, numbers: object, nodes: list[NodeProto], constants: list[TensorProto]
) -> ModelProto:
    """Return a model in which `nodes` read the numbers and give "big", which is added up and added to the input."""
    made, stored, functions = SOURCES[source](name, np.asarray(numbers, np.int64))
    end = [
        node("ReduceMax", ["big"], ["r"], keepdims=0),
        node("Cast", ["r"], ["c"], to=1),
        node("Add", ["x", "c"], ["y"]),
    ]
    return model([*made, *nodes, *end], initializers=[*stored, *constants], functions=functions)
