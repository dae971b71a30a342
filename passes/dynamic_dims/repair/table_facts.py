"""Facts about the tables that one interpretation computes, in all bodies of the model together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import lcm

from .domain import Array, Dim

__all__ = ["TableFacts"]


@dataclass
class TableFacts:
    """Facts that computed tables show. The graph, its sub-graphs and the functions share them, and the proof relies on them."""

    names: set[str] = field(default_factory=set)
    """The name "grid" is for a grid in pixels, and "sized" for numbers that change with the size of the image.

    "pixels" and "clipped" are facts of proportions (`grids.laws`). With "map lengths", the model divides coordinates by the
    lengths of a feature map.
    """
    steps: set[tuple[int, int]] = field(default_factory=set)
    """The step and the least length of images for each table (`grids.laws.Law`)."""
    image_axes: dict[int, Dim] = field(default_factory=dict)
    """The lengths of the image along its rows and its columns, which grids of the model follow."""

    marks: dict[str, Array] = field(default_factory=dict)
    """The marks of the columns of each table that was written (`tracked.Tracked`), by its name, which is unique in the model."""
    index_axes: dict[str, tuple[Dim, ...]] = field(default_factory=dict)
    """The axes whose length is a value that was written to divide or multiply an index of cells, by its name."""
    replaced: int = 0
    """How many constants were replaced because they hold a size beside coordinates or indices of cells."""

    tables: int = 0
    """How many tables were written."""

    @property
    def bounds(self) -> tuple[int, int]:
        """Return the step and the least length of images that all tables allow; 0 for any."""
        steps, least = zip((0, 0), *self.steps, strict=True)
        nonzero = [step for step in steps if step]
        return lcm(*nonzero) if nonzero else 0, max(least)

    @property
    def keeps_cells(self) -> bool:
        """Whether grids were computed, and all of them count pixels or are strides, so that no cell depends on the sizes."""
        return self.names == {"grid"}

    def copy(self) -> TableFacts:
        """Return the same facts, which stay as they are when later tables add others."""
        return replace(
            self,
            names={*self.names},
            steps={*self.steps},
            image_axes={**self.image_axes},
            marks={**self.marks},
            index_axes={**self.index_axes},
        )

    def restore(self, earlier: TableFacts) -> None:
        """Have the facts of an earlier copy alone, for a body whose tables are not written after all."""
        # All bodies of the interpretation hold this object, so it must stay the same one.
        vars(self).update(vars(earlier.copy()))
