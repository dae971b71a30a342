"""Models from onnx's text format, changes to them, and their verification in this process, for the tests of verify/.

`check` verifies one model against another and asserts the verdict. `net` builds a model, `mutated` changes a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_migrate.model.model import Segment
from onnx_migrate.verdicts import DynamicProof, Kind, Verdict
from onnx_migrate.verify import Runnable, Settings, verify
from onnx_migrate.verify.dynamic.proof import prove_dynamic
from onnx_migrate.verify.equivalence.original_run import OriginalRun, run_original
from onnx_migrate.verify.evaluators import UNOPTIMIZED, open_model
from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.sizes import size_choices
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import RUNTIME

Net = str | onnx.ModelProto
"""A model, or its graph in onnx's text format, from the inputs on."""


wrong_optimiser = skip_if(
    RUNTIME >= (1, 32), "ONNX Runtime before 1.32 merges pad_maxpool_opset9 wrongly", Elsewhere.ONE_RELEASE
)

RELU = "(float[N,4] x) => (float[N,4] y) { y = Relu (x) }"
CONSTANT = "(float[1,4] x) => (float[1,4] y) { a = Relu(x) z = Sub(a, a) y = Softmax(z) }"
RENAMED = CONSTANT.replace("a = ", "b = ").replace("(a, a)", "(b, b)")
ULP = 2.0**-23
"""The distance from 1 to the next larger float32."""


def net(graph: Net, *, opset: int = 17, ir: int = 8, **tensors: Any) -> onnx.ModelProto:
    """Return a copy of a model, or the model of a graph in text format; `tensors` become float32 initializers.

    An integer array stays one: int64.
    """
    model = onnx.ModelProto()
    if isinstance(graph, str):
        graph = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {graph}')
    model.CopyFrom(graph)
    for name, value in tensors.items():
        array = np.asarray(value)
        dtype = np.int64 if array.dtype.kind == "i" else np.float32
        model.graph.initializer.append(numpy_helper.from_array(array.astype(dtype), name))
    return model


def runnable(graph: Net | Runnable, **tensors: Any) -> Runnable:
    """Return a model in the form that verify runs."""
    if isinstance(graph, Runnable):
        return graph
    return Runnable(structure=net(graph, **tensors).SerializeToString())


def mutated(
    graph: Net,
    *,
    operators: Mapping[str, str] | None = None,
    tensors: Mapping[str, Callable[[np.ndarray[Any, Any]], Any]] | None = None,
) -> onnx.ModelProto:
    """Return a copy with operators replaced by others, and initializers by a function of their values."""
    model = net(graph)
    for node in model.graph.node:
        node.op_type = (operators or {}).get(node.op_type, node.op_type)
    for tensor in model.graph.initializer:
        if tensors and tensor.name in tensors:
            values = numpy_helper.to_array(tensor)
            changed = np.asarray(tensors[tensor.name](values.copy()), values.dtype)
            tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
    return model


def verdict(
    before: Net | Runnable,
    after: Net | Runnable,
    *,
    exact: Net | Runnable | None = None,
    unsimplified: Net | Runnable | None = None,
    other: Net | Runnable | None = None,
    strict: bool = False,
    by_value: bool = False,
    **settings: Any,
) -> Verdict:
    """Verify `after` against `before`, in this process unless `isolated`; `exact` is the model with the original's bits."""
    models = (before, after, unsimplified if exact is None else exact, other)
    original, result, between, further = (None if model is None else runnable(model) for model in models)
    segment = Segment(original, result, between, exact is not None, other=further)
    return verify(segment, Settings(**({"isolated": False} | settings)), strict=strict, by_value=by_value)


def check(
    before: Net | Runnable,
    after: Net | Runnable,
    kind: Kind,
    reason: Iterable[str] | str = (),
    **options: Any,
) -> Verdict:
    """Verify, and assert the kind of the verdict and what its reason must contain; returns the verdict."""
    found = verdict(before, after, **options)
    assert found.kind is kind, f"{found.kind.value}, not {kind.value}: {found.reason or found.comparisons}"
    for part in [reason] if isinstance(reason, str) else reason:
        assert part in found.reason
    return found


def original_run(graph: Net, **settings: Any) -> OriginalRun:
    """Run a model as the original of a verification is run."""
    model = runnable(graph)
    return run_original(model, model, Settings(**settings))


def random_inputs(graph: Net, choice: int = 0, seed: int = 0) -> RandomInputs:
    """Return the random inputs of a model, at one of the choices of sizes."""
    model = net(graph)
    return RandomInputs(model, None, size_choices(model)[choice], seed)


def outputs(graph: Net, feed: Mapping[str, Any]) -> dict[str, Any]:
    """Run a model once in ONNX Runtime, without optimisation."""
    return open_model(runnable(graph), UNOPTIMIZED).run(feed)


def prove(
    graph: Net, symbols: Mapping[str, int], batch: Iterable[str] = ("N",), **options: Any
) -> DynamicProof:
    """Prove in this process that symbols of a model, each with its frozen size, are free."""
    return prove_dynamic(runnable(graph), symbols, set(batch), Settings(isolated=False, **options))
