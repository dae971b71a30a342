"""Runs a model once and records the values of its main graph, a part at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import fed_inputs, names_read, producers
from onnx_migrate.process import mark
from onnx_migrate.verify.equivalence.common_values import ValueTypes, chunks, shapes_of
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.kernel.arrays import Array
from onnx_migrate.verify.model_traits import dependents

from .samples import Sample, sample_of

__all__ = ["Recorded", "record"]

_MEMORY = 1 << 27
"""Bytes of values that one run gives out, by the sizes that inference finds."""

_WHOLE = 1 << 22
"""Elements up to which a constant is kept whole, so that two of them can be compared element by element."""


@dataclass(frozen=True)
class Recorded:
    """A model and what it computes on one input: samples of the values that depend on the input, and its constants."""

    runnable: Runnable
    feed: Mapping[str, Any]
    samples: Mapping[str, Sample]
    constants: Mapping[str, Array]
    """Initializers and values that are computed from constants alone."""

    @property
    def model(self) -> onnx.ModelProto:
        """The structure of the model."""
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
    def readers(self) -> dict[str, list[onnx.NodeProto]]:
        """The nodes of the main graph that read each value, in themselves or in graphs inside."""
        found: dict[str, list[onnx.NodeProto]] = {}
        for node in self.model.graph.node:
            for name in names_read(node):
                found.setdefault(name, []).append(node)
        return found

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        """Return values whole, from a further run. Raises EvaluationError."""
        run = open_model(self.runnable, UNOPTIMIZED, names).run(self.feed)
        return {name: run[name] for name in names}


def record(runnable: Runnable, feed: Mapping[str, Any], which: str) -> Recorded:
    """Run a model on one input and return samples of all its values. Raises EvaluationError.

    `which` is "original" or "result", for the step that is reported. A value that ONNX Runtime does not give out is left out.
    """
    model = runnable.model
    types = ValueTypes(model, shapes_of(feed))
    fed = {value.name for value in fed_inputs(model.graph)}
    reached = dependents(model, fed)
    names = [name for node in model.graph.node for name in node.output if name]
    samples: dict[str, Sample] = {}
    constants: dict[str, Array] = {}
    for name in fed:
        sample = sample_of(feed.get(name))
        if sample is not None:
            samples[name] = sample
    for part in chunks(names, types, _MEMORY):
        mark(f"{which}: running, recording values")
        for name, value in _run(runnable, feed, part).items():
            if name in reached:
                sample = sample_of(value)
                if sample is not None:
                    samples[name] = sample
            elif isinstance(value, np.ndarray) and value.size <= _WHOLE:
                constants[name] = value
    for tensor in model.graph.initializer:
        if tensor.name not in fed and int(np.prod(tensor.dims, dtype=np.int64)) <= _WHOLE:
            constants[tensor.name] = onnx.numpy_helper.to_array(runnable.inlined(tensor))
    return Recorded(runnable, feed, samples, constants)


def _run(runnable: Runnable, feed: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the values of one part; where ONNX Runtime does not give one out, those of each half."""
    try:
        run = open_model(runnable, UNOPTIMIZED, names).run(feed)
        return {name: run[name] for name in names if name in run}
    except EvaluationError:
        if len(names) == 1:
            return {}
        half = len(names) // 2
        return {**_run(runnable, feed, names[:half]), **_run(runnable, feed, names[half:])}
