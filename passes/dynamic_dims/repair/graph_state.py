"""The knowledge about the values of one graph during the interpretation, and how nodes read lengths at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
import onnx

from onnx_migrate.facts.scope import Scope
from onnx_migrate.rewrite.rewriter import Rewriter

from .domain import Array, Assignments, Dim, SampledValue, Sizes
from .domain.values import linear_formula
from .table_facts import TableFacts
from .tracked import CellIndex, Tracked

__all__ = ["GraphState", "Length", "LoopState", "UnknownLength", "upstream"]


class UnknownLength(Exception):
    """An error: no value that is computed earlier has an axis that gives a needed length."""


@dataclass(frozen=True)
class Length:
    """A formula for a length: an axis of a value, multiplied, then divided, then added to."""

    value: str
    axis: int
    multiplier: int = 1
    divisor: int = 1
    offset: int = 0


@dataclass(frozen=True)
class LoopState:
    """A loop-carried value: the label of its Loop or Scan node and its index among that node's states."""

    node: str
    index: int


@dataclass
class GraphState:
    """The values of one graph, sub-graph or function body; names it does not hold are looked up in `parent`."""

    scope: Scope
    assignments: Assignments
    parent: GraphState | None = None
    imports: Mapping[str, int] = field(default_factory=dict)
    """The opset version of each domain that the body imports."""
    ir_version: int = onnx.IR_VERSION
    values: dict[str, SampledValue] = field(default_factory=dict)
    sources: dict[Sizes, tuple[str, int]] = field(default_factory=dict)
    """For each varying length, the first value and axis that have it."""
    producers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    consumers: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)
    initializers: frozenset[str] = frozenset()
    loop_states: Mapping[str, LoopState] = field(default_factory=dict)
    """The inputs of this graph that are loop-carried."""
    tables: dict[tuple[str, tuple[tuple[int, Sizes], ...]], tuple[str, str, bool]] = field(
        default_factory=dict
    )
    """The tables written so far, by the constant and the new lengths of its axes: the name, and the text of the report."""
    computed_constants: dict[str, Array | None] = field(default_factory=dict)
    """The elements of values that depend on constants alone, None for other values (`grids.constants`).

    For inputs of a function, these are the elements in the current call.
    """
    table_facts: TableFacts = field(default_factory=TableFacts)
    """Facts that computed tables show; all bodies of an interpretation have the same ones."""
    coordinates: dict[str, Array] = field(default_factory=dict)
    """The values that are coordinates in the image, with a mark for each of their columns (`grids.coordinates`)."""
    cell_indices: dict[str, CellIndex] = field(default_factory=dict)
    """The values that are indices of cells of a feature map (`grids.indices`)."""
    _gathers: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)
    """The outputs of the Shape-Gather pairs written so far, by the value and the axes they read."""

    def enclosing(self) -> Iterator[GraphState]:
        """Yield this graph and those around it, innermost first."""
        graph: GraphState | None = self
        while graph is not None:
            yield graph
            graph = graph.parent

    def value(self, name: str) -> SampledValue:
        """Return the knowledge about a value."""
        for graph in self.enclosing():
            known_state = graph.values.get(name)
            if known_state is not None:
                return known_state
        return SampledValue()

    def owner(self, name: str) -> GraphState | None:
        """Return the graph whose node computes a value, or that knows its elements (`computed_constants`); None for others."""
        for graph in self.enclosing():
            if name in graph.producers or name in graph.computed_constants:
                return graph
            # An inner value hides an outer one of the same name.
            if name in graph.values:
                break
        return None

    def tracked(self, name: str) -> Tracked:
        """Return whether a value holds coordinates or indices of cells."""
        if name in self.table_facts.marks:
            return Tracked(self.table_facts.marks[name])
        for graph in self.enclosing():
            if name in graph.coordinates or name in graph.cell_indices:
                return Tracked(graph.coordinates.get(name), graph.cell_indices.get(name))
            if name in graph.values:
                break
        return Tracked()

    def track(self, name: str, known: Tracked) -> None:
        """Follow a value that another body computes; "" is an output that nothing reads."""
        if name and known.marks is not None:
            self.coordinates[name] = known.marks
        if name and known.index is not None:
            self.cell_indices[name] = known.index

    def is_constant(self, name: str) -> bool:
        """Return whether a value is an initializer or the output of a Constant node."""
        for graph in self.enclosing():
            if name in graph.producers:
                return graph.producers[name].op_type == "Constant"
            if name in graph.values:
                return name in graph.initializers
        return False

    def loop_state(self, name: str) -> LoopState | None:
        """Return which loop-carried value a name stands for, None if for none."""
        return next(
            (graph.loop_states[name] for graph in self.enclosing() if name in graph.loop_states), None
        )

    def record(self, name: str, value: SampledValue) -> None:
        """Store the knowledge about a value; its varying axes become sources of lengths."""
        self.values[name] = value
        marks = self.coordinates.get(name)
        if marks is not None and (value.dims is None or len(value.dims) != marks.ndim):
            del self.coordinates[name]  # nothing tells which columns they are
        for axis, dim in enumerate(value.dims or ()):
            if dim is not None and dim.varies:
                # The first value with a length exists before any node that may need this length.
                self.sources.setdefault(dim.sizes, (name, axis))

    def first_dim(self, dim: Dim) -> Dim:
        """Return the axis that first had the lengths of an axis: its factors show the rows and columns of a feature map."""
        for graph in self.enclosing():
            if dim.sizes in graph.sources:
                name, axis = graph.sources[dim.sizes]
                dims = graph.value(name).dims
                return (dims[axis] if dims is not None else None) or dim
        return dim

    def varying_dims(self, frozen: int) -> list[Dim]:
        """Return the varying lengths that are `frozen` in the source model, in the order they were found."""
        graphs = reversed(list(self.enclosing()))
        matching_sizes = [sizes for graph in graphs for sizes in graph.sources if sizes[0] == frozen]
        return list(map(Dim, dict.fromkeys(matching_sizes)))

    def lengths(self, dim: Dim, prefer: Sequence[str] = ()) -> list[Length]:
        """Return formulas whose product is the length of `dim`, from the values in `prefer` if one has that length.

        Raises UnknownLength.
        """
        for name in prefer:
            for axis, other in enumerate(self.value(name).dims or ()):
                if other is not None and other.sizes == dim.sizes:
                    return [Length(name, axis)]
        # One axis that has the whole length needs no arithmetic, unlike its factors.
        for graph in self.enclosing():
            if dim.sizes in graph.sources:
                return [Length(*graph.sources[dim.sizes])]
        if dim.factors:
            rest = dim.frozen
            factor_lengths: list[Length] = []
            for factor in dim.flat_factors():
                if factor.varies:
                    factor_lengths.extend(self.lengths(factor, prefer))
                    rest //= factor.frozen
            factor_lengths[0] = replace(factor_lengths[0], multiplier=factor_lengths[0].multiplier * rest)
            return factor_lengths
        for graph in self.enclosing():
            for sizes, (name, axis) in graph.sources.items():
                formula = linear_formula(sizes, dim.sizes)
                if formula is not None:
                    return [Length(name, axis, *formula)]
        raise UnknownLength

    def emit_shape(self, rw: Rewriter, entries: Sequence[int | Dim], prefer: Sequence[str] = ()) -> str:
        """Write nodes before the current one that compute a vector of lengths (int64); return its name.

        It is a constant if all entries are numbers; else Shape, Gather and Concat. Raises UnknownLength.
        """
        if all(isinstance(entry, int) for entry in entries):
            return rw.constant(np.array(entries, np.int64), "shape")
        entry_lengths = [
            entry if isinstance(entry, int) else self.lengths(entry, prefer) for entry in entries
        ]
        parts: list[str] = []
        for value, group in groupby(entry_lengths, _value_read):
            group_entries = list(group)
            lengths = [size for size in group_entries if not isinstance(size, int)]
            if not lengths:
                parts.append(rw.constant(np.array(group_entries, np.int64), "sizes"))
            elif value:
                parts.append(self._emit_gather(rw, value, tuple(length.axis for (length,) in lengths)))
            else:
                parts += [self._emit_product(rw, factors) for factors in lengths]
        return parts[0] if len(parts) == 1 else rw.before("Concat", parts, hint="shape", axis=0)

    def _emit_gather(self, rw: Rewriter, value: str, axes: tuple[int, ...]) -> str:
        for graph in self.enclosing():
            if (value, axes) in graph._gathers:
                return graph._gathers[value, axes]
        shape = rw.before("Shape", [value])
        name = rw.before("Gather", [shape, rw.constant(np.array(axes, np.int64), "axes")], hint="sizes")
        self._gathers[value, axes] = name
        return name

    def _emit_product(self, rw: Rewriter, lengths: list[Length]) -> str:
        product = ""
        for length in lengths:
            name = self._emit_gather(rw, length.value, (length.axis,))
            for operator, number, neutral in (
                ("Mul", length.multiplier, 1),
                ("Div", length.divisor, 1),
                ("Add", length.offset, 0),
            ):
                if number != neutral:
                    name = rw.before(
                        operator, [name, rw.constant(np.array([number], np.int64), "by")], hint="length"
                    )
            product = rw.before("Mul", [product, name], hint="length") if product else name
        return product


def _value_read(entry: int | list[Length]) -> str | None:
    """Return the value whose axis gives this entry of a shape unchanged; None for a number, "" for a computed length."""
    if isinstance(entry, int):
        return None
    first = entry[0]
    return first.value if entry == [Length(first.value, first.axis)] else ""


def upstream(name: str, producers: Mapping[str, onnx.NodeProto]) -> Iterator[str]:
    """Yield a value, and the values of the same body that it is computed from."""
    seen, queue = set[str](), [name]
    while queue:
        name = queue.pop()
        if name not in seen:
            seen.add(name)
            yield name
            queue.extend(producers[name].input if name in producers else ())
