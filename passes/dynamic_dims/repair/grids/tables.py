"""Decides whether a constant is a table that follows from the sizes of feature maps, and replaces it by nodes if it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from onnx_migrate.rewrite.change_log import Exactness

from ..domain import Array, Dim, SampledValue, fixed
from ..domain.values import dtype_of
from ..node_context import NodeContext
from ..tracked import ACROSS, BOTH, DOWN
from .columns import Columns, columns_in
from .constants import LARGEST, constant_array
from .formula import columns_of
from .laws import AmbiguousSizes, Law, grid_law
from .logits import logit_law, valid_mask_law
from .structure import Segment, image_length, segments
from .waves import wave_law
from .windows import WindowMasks, window_masks
from .writer import TableWriter

__all__ = ["computed_table"]

_SMALLEST_STRIDE = 8
"""Sample sizes that are less apart round to the same lengths of feature maps, for height and for width."""


@dataclass(frozen=True)
class _Table:
    """A constant and the axes that change, with their dims."""

    array: Array
    lengths: Mapping[int, Dim]

    @property
    def shape(self) -> list[int | Dim]:
        """Return the shape that the table has at any size."""
        return [self.lengths.get(axis, size) for axis, size in enumerate(self.array.shape)]

    @property
    def joined(self) -> int:
        """Return the axis along which the feature maps lie one after the other."""
        several = [axis for axis, dim in self.lengths.items() if len(dim.flat_terms()) > 1]
        return several[0] if several else next(iter(self.lengths))


def computed_table(context: NodeContext, index: int, lengths: Mapping[int, Dim]) -> bool:
    """Replace a constant input whose axes must have these lengths by nodes that compute it; return whether it is done.

    Nothing is done for a value that is no constant, and for axes that are a batch. Raises UnrepairableNode for a constant
    that follows no known law, since its numbers at other sizes are unknown.
    """
    if any(dim.of_batch for dim in lengths.values()) or not _tells_axes_apart(context, lengths):
        return False
    name = context.rw.input(index)
    array = constant_array(context.graph_state, name)
    if array is None or array.size > LARGEST or array.dtype.kind not in "fiub":
        return False
    if context.rw.constant_value(name) is None and _is_plain(array, lengths):
        # The constants behind a single row of numbers are positions, which have rules of their own.
        return False
    table = _Table(array, lengths)
    cache = context.graph_state.tables
    key = (name, tuple((axis, dim.sizes) for axis, dim in lengths.items()))
    written = cache.get(key)
    if written is None:
        try:
            law = _law(context, table)
        except AmbiguousSizes:
            context.refuse(_ambiguous(name, table), index)
        if law is None:
            context.refuse(_learned(context, name, table), index)
        written = cache[key] = _write(context, index, table, law)
        context.graph_state.table_facts.tables += 1
        if isinstance(law, Law):
            facts = {
                "pixels": law.pixels,
                "clipped": law.clipped,
                "grid": law.keeps_cells,
                "sized": not law.keeps_cells,
            }
            context.graph_state.table_facts.steps.add((law.step, law.least))
            context.graph_state.table_facts.names.update(fact for fact, holds in facts.items() if holds)
        else:
            context.graph_state.table_facts.names.add("sized")
        if isinstance(law, Law) and law.is_grid:
            _mark(context, written[0], table, law)
    new, text, exact = written
    dims = tuple(fixed(dim) if isinstance(dim, int) else dim for dim in table.shape)
    context.replace_input(index, new, SampledValue(dtype_of(array), dims), f"{name!r}: {text}")
    if not exact:
        context.rw.exactness = Exactness.EQUIVALENT
    return True


def _tells_axes_apart(context: NodeContext, lengths: Mapping[int, Dim]) -> bool:
    """Return whether the sample sizes are whole strides apart, and no two axes of a feature map are equal at all of them.

    Otherwise the rows and the columns of a feature map look alike, and the table would get the wrong lengths.
    """
    assignments = context.assignments
    free = [sizes for name, sizes in assignments.sizes.items() if name not in assignments.batch]
    if any(sizes[1] - sizes[0] < _SMALLEST_STRIDE for sizes in free):
        return False
    for term in (term for dim in lengths.values() for term in dim.flat_terms()):
        axes = [factor.sizes for factor in term.flat_factors() if factor.varies]
        if len(free) > 1 and len(set(axes)) < len(axes):
            return False
    plain = [dim.sizes for dim in lengths.values() if len(dim.flat_terms()) == 1]
    return len(free) == 1 or len(set(plain)) == len(plain)


def _is_plain(array: Array, lengths: Mapping[int, Dim]) -> bool:
    """Return whether a constant is a single row of numbers along an axis that no Reshape or Concat made."""
    return any(array.size == dim.frozen and not dim.factors and not dim.terms for dim in lengths.values())


def _mark(context: NodeContext, name: str, table: _Table, law: Law) -> None:
    """Record which columns of a grid are coordinates along the rows and the columns of the image."""
    formula, parts = law.formulas[0], segments(table.array, table.lengths)
    assert parts, "a law has a segment for each formula"
    own = parts[0].own
    shape = [size if axis not in table.lengths else 1 for axis, size in enumerate(table.array.shape)]
    marks = np.zeros(shape, np.int64)
    for selector in formula.selectors:
        dim = formula.axes[selector.axis]
        image = image_length(context.assignments, dim) if isinstance(dim, Dim) else None
        role = _role(context, image)
        if image is not None and role != BOTH:
            context.graph_state.table_facts.image_axes.setdefault(role, image)
        columns = np.broadcast_to(selector.factor, columns_of(formula.axes))
        anchors = tuple(axis for axis in range(columns.ndim) if axis not in own)
        marks = np.where(columns.any(axis=anchors).reshape(shape), role, marks)
    context.graph_state.table_facts.marks[name] = marks


def _role(context: NodeContext, image: Dim | None) -> int:
    """Return the mark of coordinates along an axis of the image: height comes before width in all layouts."""
    assignments = context.assignments
    free = [sizes for name, sizes in assignments.sizes.items() if name not in assignments.batch]
    if image is None or len(free) > 2 or image.sizes not in free:
        return BOTH
    return (DOWN, ACROSS)[free.index(image.sizes)]


def _law(context: NodeContext, table: _Table) -> Law | WindowMasks | None:
    for turned in (False, True):
        parts = segments(table.array, table.lengths, turned=turned)
        law = _law_of(context, table, parts) if parts else None
        if law is not None:
            return law
    return None


def _law_of(context: NodeContext, table: _Table, parts: Sequence[Segment]) -> Law | WindowMasks | None:
    masks = window_masks(parts)
    if masks is not None:
        return masks
    if table.array.dtype.kind == "b" or set(np.unique(table.array).tolist()) == {0.0, 1.0}:
        return valid_mask_law(parts)
    columns = columns_in(parts)
    if columns is None:
        return logit_law(parts)
    images = [image_length(context.assignments, parts[0].dim(axis)) for axis in parts[0].map_axes]
    facts = context.graph_state.table_facts.names
    return (
        grid_law(columns, images, pixels="pixels" in facts, clipped="clipped" in facts)
        or wave_law(columns, _is_square(columns))
        or logit_law(parts)
    )


def _is_square(parts: Sequence[Columns]) -> bool:
    return all(len(columns.follows) == 2 and columns.length(0) == columns.length(1) for columns in parts)


def _write(context: NodeContext, index: int, table: _Table, law: Law | WindowMasks) -> tuple[str, str, bool]:
    writer = TableWriter(context, index)
    sizes = ", ".join(f"axis {axis} is {context.name_of(dim)}" for axis, dim in table.lengths.items())
    if isinstance(law, WindowMasks):
        shape: list[int | Dim] = list(table.shape)
        shape[table.joined] = -1
        name = writer.masks(law, shape)
        return name, f"masks of shifted windows are computed from the sizes: {sizes}", True
    name = writer.table(law.formulas, table.shape, table.joined, dtype_of(table.array))
    maps = len(law.formulas)
    of = f"{maps} feature maps" if maps > 1 else "the feature map"
    return name, f"{law.text} is computed from the sizes of {of}: {sizes}", law.exact


def _learned(context: NodeContext, name: str, table: _Table) -> str:
    axis, dim = next(iter(table.lengths.items()))
    count = prod(table.array.shape)
    return (
        f"constant {name!r} has {count:,} numbers for a length of {dim.frozen} along axis {axis}, which changes with"
        f" {context.symbols_in(dim)}. They follow no rule of the sizes, so they are learned or were computed for this size"
    )


def _ambiguous(name: str, table: _Table) -> str:
    axis, dim = next(iter(table.lengths.items()))
    return (
        f"constant {name!r} has {dim.frozen} rows along axis {axis}, and follows two rules of the sizes. They give the same"
        " numbers for a square image: sizes are pixels or shares of the image, or rows and columns are exchanged. Export the"
        " model with a height other than the width"
    )
