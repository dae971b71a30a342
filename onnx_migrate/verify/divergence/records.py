"""Runs a model once and records the values of its main graph, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import fed_inputs, producers
from onnx_migrate.process import mark
from onnx_migrate.verify.equivalence.common_values import ValueTypes, shapes_of
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.kernel.arrays import Array
from onnx_migrate.verify.model_traits import FIXED, dependents

from .samples import Sample, sample_of

__all__ = ["Layout", "Recorded", "record"]

_MEMORY = 1 << 27
"""Bytes of values that one run returns, by the sizes that inference finds."""

_UNKNOWN = 8
"""Values whose size inference does not find that the first run returns."""

_WHOLE = 1 << 22
"""Elements up to which a constant is kept whole, so that two of them can be compared element by element."""


_PERMUTATIONS = {3: ((0, 2, 1),), 4: ((0, 3, 1, 2), (0, 2, 3, 1))}
"""By rank, the permutations between layouts with the channels last and second, between which optimisers move Transposes."""


@dataclass(frozen=True)
class Layout:
    """A value with its axes in another order."""

    value: str
    permutation: tuple[int, ...]


@dataclass(frozen=True)
class Recorded:
    """A model and the values that it computes on one input: samples of those that depend on the input, and its constants."""

    runnable: Runnable
    feed: Mapping[str, Any]
    samples: Mapping[str, Sample]
    constants: Mapping[str, Array]
    """Initializers and values that are computed from constants alone."""
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    """Values in another layout, for example NHWC in NCHW. Their names are in `samples` too."""
    drawn: Mapping[str, onnx.NodeProto] = field(default_factory=dict)
    """The random nodes by their outputs, for which nodes with fixed numbers stand in the model that ran."""

    def value_of(self, name: str) -> str:
        """Return the name of the value in the model that a sample belongs to, in any layout."""
        return self.layouts[name].value if name in self.layouts else name

    def maker(self, value: str) -> onnx.NodeProto:
        """Return the node of the user's model that computes a value: a random one for values of its stand-ins."""
        return self.drawn.get(value.partition(FIXED)[0], self.producers[value])

    @property
    def model(self) -> onnx.ModelProto:
        """Return the structure of the model."""
        return self.runnable.model

    @cached_property
    def producers(self) -> dict[str, onnx.NodeProto]:
        """The node that computes each value of the main graph."""
        return producers(self.model.graph)

    @cached_property
    def varying(self) -> list[str]:
        """The values that depend on an input, in the order of the nodes."""
        reached = dependents(self.model, {value.name for value in fed_inputs(self.model.graph)})
        return [name for node in self.model.graph.node for name in node.output if name in reached]

    @cached_property
    def turned(self) -> dict[str, list[str]]:
        """For each value, the names of its samples in other layouts."""
        samples_by_value: dict[str, list[str]] = {}
        for name, layout in self.layouts.items():
            samples_by_value.setdefault(layout.value, []).append(name)
        return samples_by_value

    def values(self, names: Sequence[str]) -> dict[str, Array]:
        """Return tensors whole, those of other layouts too, from a further run. Raises EvaluationError."""
        run = open_model(self.runnable, UNOPTIMIZED, dict.fromkeys(map(self.value_of, names))).run(self.feed)
        tensors: dict[str, Array] = {}
        for name in names:
            array = run[self.value_of(name)]
            if isinstance(array, np.ndarray):
                layout = self.layouts.get(name)
                tensors[name] = array if layout is None else array.transpose(layout.permutation)
        return tensors


def record(
    runnable: Runnable,
    feed: Mapping[str, Any],
    which: str,
    drawn: Mapping[str, onnx.NodeProto],
    *,
    in_layouts: bool = False,
) -> Recorded:
    """Run a model on one input and return samples of all its values, with `in_layouts` in other layouts too.

    `which` is "original" or "result", for the step that is reported. Values that ONNX Runtime cannot return are missing. Raises
    EvaluationError.
    """
    model = runnable.model
    types = ValueTypes(model, shapes_of(feed))
    fed = {value.name for value in fed_inputs(model.graph)}
    # Values that no input reaches are constants.
    reached = dependents(model, fed)
    names = [name for node in model.graph.node for name in node.output if name]
    samples: dict[str, Sample] = {}
    layouts: dict[str, Layout] = {}
    constants: dict[str, Array] = {}
    for name in fed:
        sample = sample_of(feed.get(name))
        if sample is not None:
            samples[name] = sample
    for name, value in _all_values(runnable, feed, names, types.sizes, which):
        if name in reached:
            sample = sample_of(value)
            if sample is not None:
                samples[name] = sample
            for permutation in _PERMUTATIONS.get(value.ndim, ()) if in_layouts and sample else ():
                turned = sample_of(value.transpose(permutation))
                # A permutation that keeps the shape looks like the original.
                if turned is not None and turned.shape != value.shape:
                    layouts[f"{name} {permutation}"] = Layout(name, permutation)
                    samples[f"{name} {permutation}"] = turned
        elif isinstance(value, np.ndarray) and value.size <= _WHOLE:
            constants[name] = value
    for tensor in model.graph.initializer:
        if tensor.name not in fed and int(np.prod(tensor.dims, dtype=np.int64)) <= _WHOLE:
            constants[tensor.name] = onnx.numpy_helper.to_array(runnable.inlined(tensor))
    return Recorded(runnable, feed, samples, constants, layouts, drawn)


def _all_values(
    runnable: Runnable, feed: Mapping[str, Any], names: Sequence[str], sizes: Mapping[str, int], which: str
) -> Iterator[tuple[str, Any]]:
    """Yield values in few runs. After a run that returned little, the next one returns twice as many values of unknown size."""
    unknown = _UNKNOWN
    while names:
        count = _fitting(names, sizes, unknown)
        mark(f"{which}: running, recording values")
        values = _run(runnable, feed, names[:count])
        size = sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray))
        unknown = unknown * 2 if size < _MEMORY // 4 else max(1, unknown // 2)
        yield from values.items()
        names = names[count:]


def _fitting(names: Sequence[str], sizes: Mapping[str, int], unknown: int) -> int:
    """Return how many of the first names one run may return: so many of unknown size, and the others by their size."""
    memory_left = _MEMORY
    for index, name in enumerate(names):
        memory_left -= sizes.get(name, 0)
        unknown -= name not in sizes
        if index and (memory_left < 0 or unknown < 0):
            return index
    return len(names)


def _run(runnable: Runnable, feed: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the values of one part; if ONNX Runtime cannot return one of them, run each half separately."""
    try:
        run = open_model(runnable, UNOPTIMIZED, names).run(feed)
        return {name: run[name] for name in names if name in run}
    except EvaluationError:
        if len(names) == 1:
            return {}
        half = len(names) // 2
        return {**_run(runnable, feed, names[:half]), **_run(runnable, feed, names[half:])}
