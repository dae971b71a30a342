"""Whether a run of a model can end within its limits: values that fit no memory, and loops of hours, found without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from onnx_migrate.advice import untried
from onnx_migrate.facts.running_cost.estimate import Estimate, estimate
from onnx_migrate.facts.running_cost.value_estimate import Dims
from onnx_migrate.model.graphs import fed_inputs

__all__ = ["Obstacle", "folds_for_long", "why_not_run"]

_MOST_RUNS = 10**8
"""The most runs of nodes, over all rounds of loops; with more, a verification needs minutes at least."""

_COPIES = 4
"""The number of runs whose outputs a verification holds at the same time: two models, each on two inputs."""

_LEAST_RUNS = 2
"""Runs of a verification: one of each model."""

_FACTOR = 256
"""The most bytes of a value, as a multiple of the bytes of file, weights and inputs; the highest of 64 models is below 14."""

_PLAIN_VALUE = 450_000_000
"""Bytes that any value may have, however small the file is: onnx's light_vgg19 computes 411 MB of weights from constants."""

_PLAIN_NODE = 1 << 30
"""Bytes that any node may read and write in total."""

_PLAIN_OUTPUTS = 1 << 28
"""Bytes that all outputs together may have; a comparison makes several copies of them."""

_PLAIN_INPUTS, _INPUTS_FACTOR = 1 << 30, 4
"""Bytes that the inputs may have in any case; larger inputs may have this many times the bytes of the file."""

_OPERATIONS_OF_CONSTANTS, _PER_BYTE = 10**11, 1000
"""Multiplications that do not depend on the inputs: the number that any file may have, and the number for each byte of it.

They need seconds.
"""

_BYTES_OF_CONSTANTS = 1 << 30
"""Bytes that nodes may write, over all rounds of loops, and that no input changes; they take a second."""

_FOLDED = 1 << 28
"""Bytes that do not depend on the inputs. Above them, ONNX Runtime does not compute them merely to check that a model loads."""

_RUNS_OF_CONSTANTS = 10**6
"""Runs of nodes that do not depend on the inputs, such as those of a Loop that builds a table; they need a second."""


@dataclass(frozen=True)
class Obstacle:
    """The reason for not starting a run, and advice for a user who wants it.

    `of_time` says whether the run would take too long.
    """

    reason: str
    advice: str
    of_time: bool = False

    def __str__(self) -> str:
        """Return both as a sentence, with the mark of advice that was not tried."""
        return f"{self.reason}; {untried(self.advice)}"


def why_not_run(
    proto: onnx.ModelProto,
    memory: int | None,
    seconds: float | None = None,
    sizes: Mapping[str, Dims] | None = None,
    *,
    asked: bool = False,
) -> Obstacle | None:
    """Return why a run would not end within these bytes of memory and seconds; None if nothing says so.

    `sizes` are those of inputs. If the user `asked` for the run by giving inputs, a model may use all that its limits
    allow. Otherwise a small file that causes very much work does not run either, because nobody uses such a model.
    """
    cost = estimate(proto, sizes, memory)
    obstacle = _beyond_limits(cost, memory, seconds)
    return obstacle if obstacle or asked else _out_of_proportion(cost)


def folds_for_long(proto: onnx.ModelProto, memory: int | None) -> bool:
    """Return whether ONNX Runtime needs long to load a model with optimisation, because it then computes all constant values."""
    if not _has_constant_work(proto):
        return False
    cost = estimate(proto, memory=memory)
    work = cost.tally.of_constants
    return work.written > _FOLDED or work.operations > _OPERATIONS_OF_CONSTANTS + _PER_BYTE * cost.file


def _has_constant_work(proto: onnx.ModelProto) -> bool:
    """Whether a node may compute something that does not depend on the inputs; True for a model with sub-graphs or functions."""
    varying = {value.name for value in fed_inputs(proto.graph)}
    # A closer look would cost more than the estimate.
    if proto.functions:
        return True
    for node in proto.graph.node:
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            return True
        if varying.isdisjoint(node.input):
            # A stored value costs nothing.
            if node.op_type != "Constant":
                return True
        else:
            varying.update(filter(None, node.output))
    return False


def _beyond_limits(cost: Estimate, memory: int | None, seconds: float | None) -> Obstacle | None:
    tally = cost.tally
    if tally.endless:
        reason = f"the {tally.endless} has no end: its condition stays true"
        return Obstacle(reason, "give it a trip count", of_time=True)
    size, name = tally.value
    if memory is not None and size > memory:
        reason = f"value {name!r} takes {size:,} bytes, and the memory limit is {memory:,}"
        return Obstacle(reason, _LESS_MEMORY)
    if memory is not None and _COPIES * cost.outputs > memory:
        reason = f"its outputs take {cost.outputs:,} bytes, {_COPIES} runs are compared, and the memory limit is {memory:,}"
        return Obstacle(reason, _LESS_MEMORY)
    least, cause = _LEAST_RUNS * tally.work.seconds, tally.costliest[1]
    if seconds is not None and least > seconds:
        reason = f"{cause} takes at least {_time(least)} in {_LEAST_RUNS} runs, and the time limit is {seconds:g} s"
        return Obstacle(reason, "--timeout allows more, and --input-data smaller inputs", of_time=True)
    return None


_LESS_MEMORY = "--memory-limit allows more, and --input-data smaller inputs"


def _out_of_proportion(cost: Estimate) -> Obstacle | None:
    """Return the first cost that is too large for such a small file."""
    tally, plain = cost.tally, _FACTOR * (cost.file + cost.inputs)
    work, cause = tally.of_constants, tally.costliest[1]
    file, least = f"and the file has {cost.file:,}", _time(_LEAST_RUNS * tally.work.seconds)
    # The first one that is exceeded is reported.
    for text, size, allowed in (
        (
            f"value {tally.value.name!r} takes {tally.value.bytes:,} bytes, {file}",
            tally.value.bytes,
            max(_PLAIN_VALUE, plain),
        ),
        (f"{tally.node.name} {tally.node.bytes:,} bytes, {file}", tally.node.bytes, max(_PLAIN_NODE, plain)),
        (f"its outputs take {cost.outputs:,} bytes, {file}", cost.outputs, max(_PLAIN_OUTPUTS, plain)),
        (
            f"its inputs take {cost.inputs:,} bytes, {file}",
            cost.inputs,
            max(_PLAIN_INPUTS, _INPUTS_FACTOR * cost.file),
        ),
        (f"{cause} takes at least {least} in {_LEAST_RUNS} runs", tally.work.runs, _MOST_RUNS),
        (
            f"{work.operations:,} multiplications depend on no input, most of them in {cause}",
            work.operations,
            _OPERATIONS_OF_CONSTANTS + _PER_BYTE * cost.file,
        ),
        (
            f"nodes write {work.written:,} bytes that depend on no input, {file}",
            work.written,
            max(_BYTES_OF_CONSTANTS, plain),
        ),
        (
            f"nodes run {work.runs:,} times and depend on no input, most in {cause}",
            work.runs,
            _RUNS_OF_CONSTANTS + cost.file,
        ),
    ):
        if size > allowed:
            return Obstacle(text, "--input-data runs it all the same", of_time=allowed == _MOST_RUNS)
    return None


def _time(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 3600:,.1f} hours" if seconds < 1e7 else f"{seconds / 31_557_600:,.0f} years"
