"""Runtimes that can run a model, one file for each: ONNX Runtime, and ONNX's reference evaluator.

Runtimes for proofs of results (`--run-in`) run in processes of their own: drivers/ has one file for each, and foreign.py the
evaluator.

To add a runtime, write one file here. It contains

* a subclass of `Evaluator`. It loads a `Runnable` in its constructor, sets `name` to the runtime's name and version, and
  runs the model in `run`. If loading or running fails, it raises `EvaluationError`, with the name of the node if the runtime
  names one. It passes `limit=True` if the model may be valid and the runtime lacks an opset or a kernel.
* `LOADERS`, a dict from configuration to a function that loads a `Runnable`: `{"openvino": OpenVino}`. It has one entry for
  each way in which the runtime is to run, as in onnxruntime.py.

`open_model` finds the configurations in all files of this package. Import the runtime inside functions, not at the top of the
file: it need not be installed. Add tests/verify/evaluators/test_NAME.py beside test_reference.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from onnx_migrate.installed import objects_in
from onnx_migrate.verify.evaluators.configurations import (
    COARSE,
    LEVELS,
    OPTIMIZED,
    REFERENCE,
    STRICT,
    UNOPTIMIZED,
)
from onnx_migrate.verify.evaluators.interface import (
    EvaluationError,
    Evaluator,
    Runnable,
    with_defaults_as,
    with_extra_outputs,
    without_static_shapes,
)

__all__ = [
    "COARSE",
    "LEVELS",
    "OPTIMIZED",
    "REFERENCE",
    "STRICT",
    "UNOPTIMIZED",
    "EvaluationError",
    "Evaluator",
    "Runnable",
    "open_model",
    "with_defaults_as",
    "with_extra_outputs",
    "without_static_shapes",
]


def open_model(runnable: Runnable, configuration: str, inner: Iterable[str] = ()) -> Evaluator:
    """Load a model with the runtime of this configuration, a key of some file's LOADERS.

    Its runs also return the `inner` values of the main graph. Raises EvaluationError if the runtime does not load it.
    """
    names = list(inner)
    return _loaders()[configuration](with_extra_outputs(runnable, names) if names else runnable)


@cache
def _loaders() -> Mapping[str, Callable[[Runnable], Evaluator]]:
    loaders: dict[str, Callable[[Runnable], Evaluator]] = {}
    for own in objects_in(__name__, "LOADERS"):
        loaders.update(own)
    return loaders
