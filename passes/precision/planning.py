"""This module decides which nodes compute in the new type, from their schemas, their constants and their readers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.model.graphs import BodyKey, node_label
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.retyping import TYPE_BY_ATTRIBUTE, Retyping, retyping
from onnx_migrate.standard.schema import CONTROL_FLOW
from onnx_migrate.standard.targets import Targets

from .kernels import refusing_target
from .masks import Masks, mask_places
from .merging import merge_islands
from .movers import settle_movers
from .neighbours import (
    follow,
    keep_around,
    keep_deciding_loops,
    keep_fused_concats,
    keep_index_arithmetic,
    keep_inside,
    keep_islands_of_the_model,
)
from .plan import Plan, sources_of
from .small_constants import keep_behind_small_constants
from .stored import StoredNumbers
from .stored_narrow import store_narrow

__all__ = ["is_meant", "plan_of", "plan_of_weights"]

_GENERATORS = frozenset(TYPE_BY_ATTRIBUTE) - {"Cast", "ConstantOfShape", "DequantizeLinear"}
"""Operators that make numbers from nothing but sizes: ONNX Runtime has no kernels of them in narrow types."""

_AS_THEY_ARE = {
    ("", "BitCast"): "it reads the bits of its input",
    ("", "MeanVarianceNormalization"): "its function body, which runtimes run, has constants of float32",
    ("ai.onnx.ml", "TreeEnsemble"): "its attributes have the type of its input",
}
"""Operators that take narrow types by their schemas, and cannot be given them."""

_ADDED = dict.fromkeys(("Add", "Sub", "Sum"), (0, 1)) | dict.fromkeys(
    ("BatchNormalization", "Conv", "ConvTranspose", "Gemm", "GroupNormalization", "InstanceNormalization", "LayerNormalization"),
    (2,),
)  # fmt: skip
"""The inputs that operators add. If such a constant becomes 0, that is only rounding, unless a reader is steep at 0."""


def plan_of(
    frames: Iterable[Frame],
    target: int,
    stored: StoredNumbers,
    *,
    keep: Collection[str] = (),
    islands: Collection[tuple[BodyKey, str]] = (),
    exact: Collection[tuple[BodyKey, str]] = (),
    runtimes: Targets | None = None,
    sources: frozenset[int] | None = None,
) -> Plan:
    """Return the plan of the nodes that compute in `target`, without those that `runtimes` do not support in it.

    `keep` are operators, or names of nodes as patterns of fnmatch, that a user wants unchanged. `islands` are nodes, by
    their bodies and first outputs, whose numbers would differ too much. Constants of kept nodes are stored in `target` if
    they fit, except those of `exact` nodes. `sources` are the types that change, by default all that can.
    """
    frames = list(frames)
    plan = Plan(target, sources_of(target) if sources is None else sources, runtimes)
    steps = [step for frame in frames for step in frame.steps if not step.is_a("Constant")]
    plan.exact.update(
        step for step in steps if _is_among(step, exact) or any(is_meant(step, wish) for wish in keep)
    )
    for step in steps:
        if (
            not any(map(plan.changes_type, step.outputs))
            and not step.inner
            and all(plan.wanted(step, index) is None for index in range(len(step.inputs)))
        ):
            continue
        change, reason = _by_itself(step, plan, stored, keep, islands)
        if change is None:
            plan.kept[step] = reason
        else:
            plan.changes[step] = change
    masks = Masks(frames, plan, stored)
    masks.keep()
    if plan.narrows:
        keep_fused_concats(steps, plan)
        keep_deciding_loops(frames, plan)
    keep_inside(frames, plan)
    if plan.narrows:
        keep_around(frames, plan)
        keep_behind_small_constants(steps, plan, stored)
        keep_islands_of_the_model(steps, plan)
        keep_index_arithmetic(steps, plan)
        # `settle_movers` may let nodes change again that the next two functions keep.
        changes = dict(plan.changes)
        follow(steps, plan)
        merge_islands(steps, plan)
        settle_movers(steps, plan, changes)
        # The functions above may have kept nodes inside a group of a mask, which adds a Cast there.
        masks.keep()
        keep_inside(frames, plan)
        plan.exact |= plan.intended
        store_narrow(frames, plan, stored)
    return plan


def plan_of_weights(
    frames: Iterable[Frame],
    target: int,
    stored: StoredNumbers,
    *,
    keep: Collection[str] = (),
    exact: Collection[tuple[BodyKey, str]] = (),
) -> Plan:
    """Return the plan in which no node computes in `target`, and constants that fit are stored in it.

    The constants of `exact` nodes, and of nodes that a user wants to `keep`, stay unchanged.
    """
    frames = list(frames)
    plan = Plan(target, sources_of(target))
    steps = [step for frame in frames for step in frame.steps if not step.is_a("Constant")]
    for step in steps:
        if any(is_meant(step, wish) for wish in keep) or _is_among(step, exact):
            plan.exact.add(step)
    store_narrow(frames, plan, stored)
    return plan


def _is_among(step: Step, places: Collection[tuple[BodyKey, str]]) -> bool:
    """Return whether a node is in a collection of (body, first output) pairs."""
    return (step.frame.key, step.node.output[0] if step.node.output else "") in places


def _by_itself(
    step: Step,
    plan: Plan,
    stored: StoredNumbers,
    keep: Collection[str],
    islands: Collection[tuple[BodyKey, str]],
) -> tuple[Retyping | None, str]:
    """Return the inputs and outputs of a node that change type, or None and the reason why none do."""
    operator = step.node.op_type
    if any(is_meant(step, wish) for wish in keep):
        return None, "you asked for it (--keep-fp32)"
    if _is_among(step, islands):
        return None, f"its error in {type_name(plan.target)} would be too large"
    inputs = tuple(map(plan.changes_type, step.inputs))
    outputs = tuple(map(plan.changes_type, step.outputs))
    if step.inner:
        if not step.is_a(*CONTROL_FLOW) or (step.is_a("Scan") and step.version < 9):
            return None, "its sub-graph keeps its types"
        return Retyping(inputs, outputs), ""
    if any(value.container for value in (*step.read, *step.made)):
        return None, "sequences keep their element type"
    if plan.narrows and not step.domain and operator in _GENERATORS:
        return None, f"ONNX Runtime has no {type_name(plan.target)} kernel of it"
    if plan.narrows and (step.domain, operator) in _AS_THEY_ARE:
        return None, _AS_THEY_ARE[step.domain, operator]
    refusing = refusing_target(step, plan)
    if refusing is not None:
        return None, f"{refusing} does not support it in {type_name(plan.target)}"
    change = retyping(step.domain, operator, step.version, inputs, outputs, plan.target)
    if change is None:
        return None, f"its operator does not support {type_name(plan.target)}"
    return _unless_lost(step, change, plan, stored)


def is_meant(step: Step, wish: str) -> bool:
    """Return whether a user means a node by an operator, or by a name as a pattern of fnmatch."""
    return step.node.op_type == wish or fnmatchcase(node_label(step.node), wish)


def _unless_lost(
    step: Step, change: Retyping, plan: Plan, stored: StoredNumbers
) -> tuple[Retyping | None, str]:
    """Return the change, unless a constant that the node reads overflows or becomes 0."""
    tensors = [
        (index, value.tensor)
        for index, (value, changes) in enumerate(zip(step.inputs, change.inputs, strict=True))
        if changes and value is not None and value.tensor is not None
    ]
    tensors += [(0, attribute.t) for attribute in step.node.attribute if step.is_a("ConstantOfShape")]
    for index, tensor in tensors:
        if tensor.data_type not in plan.sources:
            continue
        extent = stored.extent(tensor)
        if extent.lost and not (extent.overflows and index in mask_places(step)):
            if not extent.overflows:
                plan.vanishing[step] = extent.vanishing
                if not step.domain and index in _ADDED.get(step.node.op_type, ()):
                    continue
            return None, f"its constant {extent.lost} in {type_name(plan.target)}"
    return change, ""
