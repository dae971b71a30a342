"""Checks that each cell of a feature map gives the same numbers at other sizes, if the model computes it from the same features.

The last part of a detector decodes each cell separately: from the features of the cell and the cell's place in a grid. So this
check cuts that part out. It runs the part on random features at a larger size, and on their first rows and columns at the
original size. The original size is known to be right, so every row of its outputs must be among those of the larger size. A
grid with rows and columns exchanged, or in another order of feature maps, does not pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.model.graphs import initializer_names, output_names, subgraphs
from onnx_migrate.process import mark
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.dynamic.sized_runs import RequirementViolated, SizedRunner, Values
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["require_same_cells"]

_BY_CELL = frozenset(
    {
        "Abs", "Add", "Cast", "Clip", "Concat", "Constant", "ConstantOfShape", "Div", "Equal", "Exp", "Expand", "Flatten",
        "Floor", "Gather", "Greater", "Identity", "Less", "Log", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Pow",
        "Range", "ReduceSum", "ReduceMax", "ReduceMean", "Relu", "Reshape", "ScatterND", "Shape", "Sigmoid", "Slice", "Softmax",
        "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Unsqueeze", "Where", "MatMul",
    }
)  # fmt: skip
"""Operators of decoders, which compute each cell separately unless they reduce the axis of the cells."""
_REDUCING = frozenset({"ReduceSum", "ReduceMax", "ReduceMean", "Softmax", "MatMul"})
_MOST_VALUES = 64
"""Values at which the part may begin; a detector has a few for each feature map."""
_NEAR = 1e-4
"""The largest difference of a cell, as a share of the output's largest number: the runtime rounds other blocks differently."""


def require_same_cells(runner: SizedRunner, sizes: Mapping[str, int]) -> None:
    """Require that cells keep their numbers at these larger sizes. Raises RequirementViolated.

    Notes that they were not compared if the last part of the model does not compute each cell separately.
    """
    mark("result: comparing cells at other sizes")
    try:
        why = _compared(runner, {**runner.symbols, **_unequal(runner, sizes)})
    except EvaluationError as error:
        why = f"the part that decodes them does not run alone: {error}"
    if why:
        runner.notes.append(f"the numbers of single cells were not compared at other sizes: {why}")


def _unequal(runner: SizedRunner, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return larger sizes, in other steps for each symbol, so that no image is square or a multiple of the original one.

    At a multiple, a width that did not change divides the numbers of the first cells without a rest.
    """
    unequal_sizes: dict[str, int] = {}
    for symbol, size in sizes.items():
        original = runner.symbols[symbol]
        steps = [original + count * (size - original) for count in range(1, 6)]
        unequal = [each for each in steps if each not in unequal_sizes.values()]
        unequal_sizes[symbol] = next((each for each in unequal if each % original), unequal[0])
    return unequal_sizes


def _compared(runner: SizedRunner, sizes: Mapping[str, int]) -> str:
    """Compare the cells of all outputs that have them; return why none were compared, else ""."""
    graph = runner.model.graph
    part = _last_part(graph)
    values = _first_values(graph, part)
    if not part or not 0 < len(values) <= _MOST_VALUES:
        return "the last part of the model does not compute each cell separately"
    try:
        feeds = [runner.feed({}), runner.feed(sizes)]
    except RequirementViolated as violation:  # this check chose the sizes, so the model has no fault
        return f"at {_text(sizes)}, {violation}"
    exposed = open_model(runner.runnable, UNOPTIMIZED, [name for name in values if name not in feeds[0]])
    few, many = ({**feed, **exposed.run(feed)} for feed in feeds)
    rng = np.random.default_rng(0)
    large = {name: _random(many[name], rng) for name in values}
    small = {name: _first_cells(large[name], np.shape(few[name])) for name in values}
    if any(array is None for array in small.values()):
        return "features have no axes for rows and columns"
    # The shapes of these values show later whether a node reduces the axis of the cells.
    reduced = [name for node in part if node.op_type in _REDUCING for name in node.input if name]
    alone = open_model(_model_of(runner.runnable, part, large), UNOPTIMIZED, _computed(part, reduced))
    first, second = alone.run(small), alone.run(large)
    if any(_reduces_cells(node, first, second) for node in part if node.op_type in _REDUCING):
        return "a node computes across cells"
    compared = False
    for name in output_names(graph):
        if name in first and np.shape(first[name]) != np.shape(second[name]):
            _require_rows(name, first[name], second[name], sizes, runner)
            compared = True
    return "" if compared else "no output has a row for each cell"


def _last_part(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes whose results, up to the outputs, only operators that compute cell by cell read."""
    outside = set[str]()
    part: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if _is_by_cell(node, graph) and not any(name in outside for name in node.output):
            part.append(node)
        else:
            outside.update(node.input)
    return part[::-1]


def _is_by_cell(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    if not is_onnx(node.domain) or any(subgraphs(node)):
        return False
    if node.op_type != "Conv":
        return node.op_type in _BY_CELL
    kernel = attributes_of(node).get("kernel_shape", [])
    weight = next((tensor for tensor in graph.initializer if tensor.name == node.input[1]), None)
    sizes = kernel or (list(weight.dims[2:]) if weight is not None else [])
    # The convolution of a distribution over distances has a weight for each of its bins, and one output.
    return bool(sizes) and set(sizes) == {1} and weight is not None and weight.dims[0] == 1


def _first_values(graph: onnx.GraphProto, part: Sequence[onnx.NodeProto]) -> list[str]:
    computed_names = {name for node in part for name in node.output}
    constants = {*initializer_names(graph), ""}
    return list(
        dict.fromkeys(name for node in part for name in node.input if name not in computed_names | constants)
    )


def _computed(part: Sequence[onnx.NodeProto], names: Sequence[str]) -> list[str]:
    computed_names = {name for node in part if node.op_type != "Constant" for name in node.output}
    return [name for name in dict.fromkeys(names) if name in computed_names]


def _random(like: object, rng: np.random.Generator) -> Array:
    array = np.asarray(like)
    return rng.standard_normal(array.shape).astype(array.dtype) if array.dtype.kind == "f" else array


def _first_cells(large: Array, shape: tuple[int, ...]) -> Array | None:
    """Return the first rows and columns of features; None if these are no map of at least two axes."""
    if large.shape == shape:
        return large
    if (
        large.ndim != len(shape)
        or large.ndim < 3
        or any(a < b for a, b in zip(large.shape, shape, strict=True))
    ):
        return None
    return np.ascontiguousarray(large[tuple(slice(size) for size in shape)])


def _model_of(runnable: Runnable, part: Sequence[onnx.NodeProto], values: Mapping[str, Array]) -> Runnable:
    model = runnable.proto()
    graph = model.graph
    read = {name for node in part for name in node.input}
    computed_names = {name for node in part for name in node.output}
    read_weights = [tensor for tensor in graph.initializer if tensor.name in read]
    read_sparse = [sparse for sparse in graph.sparse_initializer if sparse.values.name in read]
    outputs = [value for value in graph.output if value.name in computed_names]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim)
        for name, value in values.items()
    ]
    nodes = list(part)
    del graph.node[:], graph.initializer[:], graph.output[:], graph.input[:], graph.value_info[:]
    del graph.sparse_initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(read_weights)
    graph.sparse_initializer.extend(read_sparse)
    graph.output.extend(outputs)
    graph.input.extend(inputs)
    return Runnable(structure=model.SerializeToString(), weights=runnable.weights)


def _reduces_cells(node: onnx.NodeProto, first: Values, second: Values) -> bool:
    """Return whether a node reduces an axis whose length changes with the sizes."""
    shapes = [(np.shape(first[name]), np.shape(second[name])) for name in node.input if name in first]
    if not shapes:
        return False
    a, b = shapes[0]
    changing = {axis for axis, (x, y) in enumerate(zip(a, b, strict=False)) if x != y}
    if not changing:
        return False
    if node.op_type == "MatMul":
        return len(a) - 1 in changing
    attributes = attributes_of(node)
    axes, axis = attributes.get("axes"), attributes.get("axis", -1)
    if node.op_type != "Softmax" and axes is None:
        return True  # the axes are an input, which is not read here
    return any(each % len(a) in changing for each in (axes if axes is not None else [axis]))


def _require_rows(name: str, few: Array, many: Array, sizes: Mapping[str, int], runner: SizedRunner) -> None:
    """Require that each row of an output for the first cells is a row of the output for all. Raises RequirementViolated."""
    changing = [axis for axis, (a, b) in enumerate(zip(few.shape, many.shape, strict=True)) if a != b]
    rows, every = (_rows(array, changing) for array in (few, many))
    rng = np.random.default_rng(1)
    # A random projection sorts the rows, because a comparison of all pairs would take too long.
    key = rng.standard_normal(rows.shape[1])
    order = np.argsort(every @ key, kind="stable")
    every = every[order]
    at = np.searchsorted(every @ key, rows @ key)
    limit = _NEAR * float(np.abs(rows).max(initial=1e-6))
    nearest = np.full(len(rows), np.inf)
    # Rounding may move a row by some places in this order, so its neighbours count too.
    for step in range(-3, 3):
        other = every[np.clip(at + step, 0, len(every) - 1)]
        nearest = np.minimum(nearest, np.abs(other - rows).max(axis=1))
    wrong = int((nearest > limit).sum())
    if wrong:
        raise RequirementViolated(
            f"{wrong} of {len(rows)} cells of output {name!r} have other numbers at {_text(sizes)}, although their features are"
            " the same",
            name,
            varied=set(sizes),
        )


def _text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())


def _rows(array: Array, axes: Sequence[int]) -> Array:
    """Return the numbers of each cell as one row; cells lie along these axes."""
    moved = np.moveaxis(np.asarray(array, np.float64), axes, range(len(axes)))
    cells = int(np.prod(moved.shape[: len(axes)]))
    # One NaN would make the distance to every other row NaN.
    return np.nan_to_num(moved.reshape(cells, -1))
