"""Whether a run of a model can end within its limits: values that fit no memory, and loops of hours, found without a run.

Only what follows from the file counts, and the sizes of inputs. Each symbol of an input counts as 1 unless its size is given, and
sizes that depend on data as nothing, so that the estimate is a lower bound. Reads no weights.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import onnx
from onnx import GraphProto, TensorProto

from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes, skeleton
from onnx_migrate.facts.running_cost.bodies import Bodies, Exhausted
from onnx_migrate.facts.running_cost.tally import Tally
from onnx_migrate.facts.running_cost.value_estimate import Dims, ValueEstimate
from onnx_migrate.model.graphs import function_key, initializer_types, nested_bodies
from onnx_migrate.model.payloads import byte_size

__all__ = ["Estimate", "estimate", "folds_for_long", "why_not_run"]

_MOST_RUNS = 10**8
"""Runs of nodes, over all rounds of loops, above which a verification takes minutes at the least."""

_COPIES = 4
"""Runs of which a verification has the outputs at the same time: of two models, on two inputs."""

_LEAST_RUNS = 2
"""Runs of a verification: one of each model."""

_MOST_NODES = 20_000
"""Nodes above which nothing is inferred for this question: it would take a second, and a run has limits all the same."""

_MOST_BYTES = 1 << 50
"""Bytes of a value beyond which nothing else of the model matters, on any machine."""

_FACTOR = 256
"""A value may take so many times the bytes of the file, its weights and its inputs. Of public models none takes 64 times."""

_PLAIN_VALUE = 1 << 29
"""Bytes up to which any value may be, however small the file."""

_PLAIN_NODE = 1 << 30
"""Bytes up to which any node may read and write at once."""

_PLAIN_OUTPUTS = 1 << 28
"""Bytes up to which the outputs may be, of which a comparison makes several copies."""

_PLAIN_INPUTS, _INPUTS_FACTOR = 1 << 30, 4
"""Bytes up to which inputs may be, and how many times the file's bytes they may be otherwise."""

_OPERATIONS_OF_CONSTANTS, _PER_BYTE = 10**11, 1000
"""Multiplications that no input changes: so many may be in any file, and so many more for each byte of it. They take seconds."""

_BYTES_OF_CONSTANTS = 1 << 30
"""Bytes that nodes may write, over all rounds of loops, and that no input changes; they take a second."""

_FOLDED = 1 << 28
"""Bytes that no input changes, above which ONNX Runtime does not compute them only to see whether a model loads."""

_RUNS_OF_CONSTANTS = 10**6
"""Runs of nodes that no input changes, as in a Loop that builds a table; they take a second."""


@dataclass(frozen=True)
class Estimate:
    """What one run takes. `file` is the bytes of the model with its weights, `inputs` and `outputs` those of these."""

    tally: Tally
    file: int
    inputs: int
    outputs: int


def estimate(
    proto: onnx.ModelProto, fed: Mapping[str, Dims] | None = None, memory: int | None = None
) -> Estimate:
    """Return what one run of a model takes at the least; `fed` are the sizes of inputs that a caller gives.

    Nothing is counted behind a value of more than `memory` bytes.
    """
    fed = fed or {}
    graph = proto.graph
    functions = {function_key(function): function for function in proto.functions}
    bodies = Bodies(functions, lambda: _inferred(proto), memory or _MOST_BYTES)
    env = ChainMap({value.name: _of_input(value, fed) for value in graph.input})
    overridden = {name: value for name, value in env.items() if name in fed}
    inputs = sum(value.bytes for value in env.values())
    outputs: list[ValueEstimate] = []
    with suppress(Exhausted, RecursionError):
        outputs = bodies.main(graph, env, overridden)
    stored = sum(byte_size(dims, dtype) or 0 for _, dtype, dims in initializer_types(graph))
    return Estimate(bodies.tally, proto.ByteSize() + stored, inputs, sum(value.bytes for value in outputs))


def why_not_run(
    proto: onnx.ModelProto,
    memory: int | None,
    seconds: float | None = None,
    fed: Mapping[str, Dims] | None = None,
) -> str:
    """Return why a run would not end within these bytes of memory and seconds; "" where nothing says so.

    With `fed`, the sizes of inputs that a user gives for it, a model may take as much as its limits allow. Without, a small file
    that makes much work of nothing is no model that anybody uses, and not run either.
    """
    cost = estimate(proto, fed, memory)
    reason = _beyond_limits(cost, memory, seconds)
    return reason or ("" if fed is not None else _out_of_proportion(cost))


def folds_for_long(proto: onnx.ModelProto, memory: int | None) -> bool:
    """Return whether ONNX Runtime takes long to load a model with optimisation: it computes what no input changes then."""
    cost = estimate(proto, memory=memory)
    work = cost.tally.of_constants
    return work.written > _FOLDED or work.operations > _OPERATIONS_OF_CONSTANTS + _PER_BYTE * cost.file


def _beyond_limits(cost: Estimate, memory: int | None, seconds: float | None) -> str:
    tally = cost.tally
    if tally.endless:
        return f"the {tally.endless} has no end: its condition stays true"
    size, name = tally.value
    if memory is not None and size > memory:
        return f"value {name!r} takes {size:,} bytes, and the memory limit is {memory:,}"
    if memory is not None and _COPIES * cost.outputs > memory:
        return f"its outputs take {cost.outputs:,} bytes, {_COPIES} runs are compared, and the memory limit is {memory:,}"
    least, cause = _LEAST_RUNS * tally.work.seconds, tally.costliest[1]
    if seconds is not None and least > seconds:
        return f"{cause} takes {_time(least)} at the least in {_LEAST_RUNS} runs, and the time limit is {seconds:g} s"
    if tally.work.runs > _MOST_RUNS:
        return f"{cause} takes {_time(least)} at the least in {_LEAST_RUNS} runs"
    return ""


def _out_of_proportion(cost: Estimate) -> str:
    """Return what a small file takes too much of."""
    tally, plain = cost.tally, _FACTOR * (cost.file + cost.inputs)
    for what, size, allowed in (
        (f"value {tally.value.name!r} takes", tally.value.bytes, max(_PLAIN_VALUE, plain)),
        (tally.node.name, tally.node.bytes, max(_PLAIN_NODE, plain)),
        ("its outputs take", cost.outputs, max(_PLAIN_OUTPUTS, plain)),
        ("its inputs take", cost.inputs, max(_PLAIN_INPUTS, _INPUTS_FACTOR * cost.file)),
    ):
        if size > allowed:
            return f"{what} {size:,} bytes, and the file has {cost.file:,}; {_WAY_OUT}"
    work = tally.of_constants
    if work.operations > _OPERATIONS_OF_CONSTANTS + _PER_BYTE * cost.file:
        return f"{work.operations:,} multiplications depend on no input, most of them in {tally.costliest[1]}; {_WAY_OUT}"
    if work.written > max(_BYTES_OF_CONSTANTS, plain):
        return f"nodes write {work.written:,} bytes that depend on no input, and the file has {cost.file:,}; {_WAY_OUT}"
    if work.runs > _RUNS_OF_CONSTANTS + cost.file:
        return (
            f"nodes run {work.runs:,} times and depend on no input, most in {tally.costliest[1]}; {_WAY_OUT}"
        )
    return ""


_WAY_OUT = "--input-data runs it all the same"


def _time(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 3600:,.1f} hours" if seconds < 1e7 else f"{seconds / 31_557_600:,.0f} years"


def _of_input(value: onnx.ValueInfoProto, fed: Mapping[str, Dims]) -> ValueEstimate:
    """Return what is known of an input of the model; a symbol and a dim that is not declared count as 1."""
    tensor = value.type.tensor_type
    dtype, text = tensor.elem_type, int(tensor.elem_type == TensorProto.STRING)
    if value.name in fed:
        return ValueEstimate(tuple(fed[value.name]), dtype, text_bytes=text)
    if not tensor.HasField("shape"):
        return ValueEstimate(None, dtype, text_bytes=text)
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else 1 for dim in tensor.shape.dim)
    return ValueEstimate(dims if min(dims, default=0) >= 0 else None, dtype, text_bytes=text)


def _inferred(proto: onnx.ModelProto) -> dict[str, ValueEstimate]:
    """Return the values of which onnx's inference finds all sizes as numbers."""
    if sum(len(body.node) for _, body in nested_bodies(proto.graph)) > _MOST_NODES:
        return {}
    try:
        inferred = infer_shapes(skeleton(proto))
    except InferenceError:
        return {}
    values: dict[str, ValueEstimate] = {}
    for _, body in nested_bodies(inferred.graph):
        assert isinstance(body, GraphProto)
        for value in (*body.value_info, *body.output):
            tensor = value.type.tensor_type
            dims = tuple(dim.dim_value for dim in tensor.shape.dim)
            if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
                values[value.name] = ValueEstimate(
                    dims if min(dims, default=0) >= 0 else None, tensor.elem_type
                )
    return values
