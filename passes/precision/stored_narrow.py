"""Constants that are stored in the narrow type though nodes read them in float32: each gets one Cast, which its readers share.

MatMul(x, w: float[512,512])        MatMul(x, Cast<to = float>(w: float16[512,512]))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.standard.element_types import type_name

from .kernels import target_of_constants
from .numbers import has_too_few_digits, largest_whole
from .plan import Plan
from .stored import StoredNumbers

__all__ = ["store_narrow"]

SMALL = 1024
"""Constants of up to this many bytes in float32 stay unchanged: a Cast would cost about as much as it saves."""

_SPENT = 0.005
"""Share of the bytes of all weights that may stay float32 to save Casts, the smallest weights first."""

_QUANTISING = ("QuantizeLinear", "DequantizeLinear")
"""Operators whose scales runtimes want as constants: TensorRT and ONNX Runtime look for them beside the node."""


def store_narrow(frames: Iterable[Frame], plan: Plan, stored: StoredNumbers) -> None:
    """Let the plan store constants narrow that nodes read in float32, and give a reason for those that stay float32.

    A node of `plan.exact` reads its constants unchanged, and therefore so do all their other readers.
    """
    target = None if plan.runtimes is None else target_of_constants(plan)
    values = [value for value in _constants(frames) if value.dtype == TensorProto.FLOAT]
    for value in values:
        readers = [reader for reader in value.readers if plan.wanted(*reader) == TensorProto.FLOAT]
        if not readers and not value.is_output:  # every reader takes it in the new type
            continue
        reason = f"{target} may want it as a constant" if target is not None and readers else ""
        reason = reason or _why_wide(value, readers, plan, stored)
        if reason:
            plan.wide_constants[value] = reason
        else:
            plan.stored_narrow.add(value)
    if plan.kept:  # not if the weights alone are to be narrow
        _save_casts(plan, _SPENT * sum(map(_size, values)))


def _save_casts(plan: Plan, most: float) -> None:
    """Let the smallest of the weights that need a Cast stay float32, in all up to so many bytes."""
    spent = 0
    # The order of a set differs from run to run, so names decide between weights of one size.
    for value in sorted(plan.stored_narrow, key=lambda value: (_size(value), value.name)):
        spent += _size(value)
        if spent > most:
            break
        plan.stored_narrow.discard(value)
        plan.wide_constants[value] = "a Cast would cost more than the few bytes it saves"


def _size(value: Value) -> int:
    """Return the bytes of a float32 constant."""
    return 0 if value.tensor is None else 4 * prod(value.tensor.dims)


def _constants(frames: Iterable[Frame]) -> Iterator[Value]:
    """Yield each constant that nodes read, or that is an output."""
    values = (value for frame in frames for value in frame.values.values() if value.tensor is not None)
    return (value for value in values if value.readers or value.is_output)


def _why_wide(value: Value, readers: list[tuple[Step, int]], plan: Plan, stored: StoredNumbers) -> str:
    """Return why a constant stays float32, "" if the narrow type holds it."""
    tensor, kind = value.tensor, type_name(plan.target)
    assert tensor is not None
    if prod(tensor.dims) * 4 <= SMALL:
        return "a Cast would cost about as many bytes as it saves"
    exact = next((step for step, _ in readers if step in plan.exact), None)
    if exact is not None:
        return plan.kept.get(exact, "its node needs all digits")
    if any(step.is_a(*_QUANTISING) for step, _ in readers):
        return "runtimes look for scales of quantised values as constants"
    extent = stored.extent(tensor)
    if extent.overflows:
        return f"{extent.largest:.6g} overflows in {kind}"
    if has_too_few_digits(extent):
        return f"its numbers of at most {extent.largest:.3g} have few digits in {kind}"
    if extent.largest > largest_whole(plan.target):
        numbers = stored.numbers(tensor)
        if np.array_equal(numbers, np.rint(numbers)):
            return f"{kind} does not hold whole numbers up to {extent.largest:.6g}"
    return ""
