"""A check that is a function of the model, and models that fail it, for tests of the search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_migrate import files
from onnx_migrate.model.model import Model
from onnx_migrate.process import Limits
from onnx_migrate.reduction.bench import Bench
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.failures import Failure, KeptFailure
from onnx_migrate.reduction.search import smallest
from onnx_migrate.reduction.trials import TimeOver, Trials
from onnx_migrate.verify import Settings

__all__ = ["HERE", "FunctionCheck", "operators", "reduced", "with_weights"]

HERE = Settings(limits=Limits(20), isolated=False)


@dataclass
class FunctionCheck:
    """A model fails if the function says so; it gets the model with its weights, and the inputs."""

    fails: Callable[[onnx.ModelProto, Mapping[str, Any]], bool]
    text: str = "it fails"
    needs_values = True
    runs = 0

    def runner(self) -> FunctionCheck:
        return self

    def close(self) -> None:
        pass

    def command(self, model: str, inputs: str) -> str:
        return f"check {model} {inputs}"

    def failure(self, candidate: Candidate) -> Failure | None:
        self.runs += 1
        proto = files.inline(candidate.model)
        onnx.checker.check_model(proto, full_check=True)
        feed = candidate.complete_feed()
        assert feed.keys() == {value.name for value in candidate.proto.graph.input}
        return Failure("exit", "1", self.text) if self.fails(proto, feed) else None


def reduced(
    proto: onnx.ModelProto,
    check: FunctionCheck,
    feed: Mapping[str, Any] | None = None,
    jobs: int = 1,
    **more: Any,
) -> Candidate:
    """Return the smallest model that fails a check; inputs are ones by default."""
    rng = np.random.default_rng(0)
    dims = {
        value.name: [dim.dim_value or 3 for dim in value.type.tensor_type.shape.dim]
        for value in proto.graph.input
    }
    types = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
    drawn = {
        name: rng.random(shape).astype(onnx.helper.tensor_dtype_to_np_dtype(types[name]))
        for name, shape in dims.items()
    }
    candidate = Candidate(Model(proto), drawn if feed is None else feed)
    with Trials(check, jobs) as trials:
        trials.kept = KeptFailure(Failure("exit", "1", check.text), **more)
        try:
            return smallest(candidate, Bench(trials, HERE, runs_here=True))
        except TimeOver:
            assert trials.best is not None
            return trials.best


def operators(candidate: Candidate | onnx.ModelProto) -> list[str]:
    """Return the operators of a valid model, in order."""
    proto = candidate.proto if isinstance(candidate, Candidate) else candidate
    onnx.checker.check_model(proto, full_check=True)
    return [node.op_type for node in proto.graph.node]


def with_weights(proto: onnx.ModelProto, **arrays: np.ndarray) -> onnx.ModelProto:
    """Return a model with further initializers, in place."""
    proto.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()
    )
    return proto
