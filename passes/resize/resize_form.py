"""Writes each Resize by scales or by sizes, whichever loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import onnx

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.model.dim_requests import DynamicAxes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.resize import lengths_agree_always

from .exporter_intent import converted
from .inputs import check_choice, check_roi, emptiness, read_scales, read_sizes
from .node_context import ResizeNode
from .origin import ResizeOrigin
from .pairs import join_pair, pair_of
from .resize_nodes import ResizeTraversal, resizes
from .scales_and_sizes import lengths_disagree, scales_to_sizes, sizes_to_scales

__all__ = ["ResizeForm"]

Form = Literal["auto", "scales", "sizes"]


@register_pass
@dataclass(frozen=True)
class ResizeForm(Pass):
    """Give each Resize of opset 11 and on the form that runtimes load, and say what is wrong with it.

    Scales and sizes that follow from known shapes become constants. With `form` "auto", scales become sizes
    where onnx infers another length than runs, so that ONNX Runtime 1.28 and later do not load the model;
    with "scales" and "sizes", wherever that is exact. No dim is frozen: one that is symbolic, or is to be
    `dynamic`, is not known.

    Raises CannotMigrate for scales, sizes, roi and mode that no runtime takes.
    """

    name: ClassVar[str] = "resize_form"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    form: Form = "auto"
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that are made dynamic afterwards."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model` in place."""
        nodes = resizes(model)
        if nodes:
            traversal = ResizeTraversal(self.name, model, log, self.dynamic)
            work = _Work(self.form, traversal, model.proto.producer_name == "pytorch")
            if work.may_join(nodes):
                traversal.visit_all(work.join)
            if work.may_shape(resizes(model)):
                traversal.visit_all(work.shape)
            traversal.end()
        return model


@dataclass(frozen=True)
class _Work:
    form: Form
    traversal: ResizeTraversal
    pytorch: bool

    def may_join(self, nodes: Iterable[onnx.NodeProto]) -> bool:
        """Tell whether there is anything for `join` to look at: it costs a walk over the model."""
        if any(len(node.input) > 1 and node.input[1] for node in nodes):
            return True
        origins = self.traversal.log.facts_of(ResizeOrigin)
        return any(origin.split_in_two or origin.written_by_converter for origin in origins)

    def may_shape(self, nodes: Sequence[onnx.NodeProto]) -> bool:
        """Tell whether there may be anything for `shape` to do, which costs such a walk too: not where all nodes are
        of the main graph and of the lift, by constant scales of which nobody infers another length.
        """
        graph = self.traversal.model.proto.graph
        own = sum(node.op_type == "Resize" for node in graph.node)
        if self.form != "auto" or own != len(nodes) or any(map(self._unsettled, nodes)):
            return True
        wanted = {node.input[2] for node in nodes} - {value.name for value in graph.input}
        held = [tensor for tensor in graph.initializer if tensor.name in wanted and 0 not in tensor.dims]
        agreed = {
            tensor.name for tensor in held if lengths_agree_always(self.traversal.model.weights.array(tensor))
        }
        return any(node.input[2] not in agreed for node in nodes)

    def _unsettled(self, node: onnx.NodeProto) -> bool:
        """Tell whether a node of the main graph came as it is, or reads more than scales."""
        return (
            len(node.input) != 3
            or bool(node.input[1])
            or self.traversal.origin("graph", node.output[0]) is None
        )

    def join(self, node: ResizeNode) -> set[str]:
        """Write one node for two of the lift where it shows, from shapes, that all axes go the same way."""
        rw = node.rw
        pair = pair_of(node)
        if pair is None or node.origin is None:
            if rw.node.op_type == "Resize" and converted(node):
                told = "made by onnx's version converter from one that computed asymmetric coordinates; this computes half_pixel"
                if rw.get("mode", "nearest") == "linear" and self.pytorch:
                    told += ", as it happens what PyTorch's interpolate computes"
                self.traversal.warn(node, told, code="converted-resize")
            return set()
        scales = node.known.value(pair.scales) if isinstance(pair.scales, str) else pair.scales
        if scales is None or (bool((scales < 1).any()) and bool((scales > 1).any())):
            return set()
        rw.note("its scales follow from known shapes, and go one way: one node does")
        return join_pair(rw, pair, node.origin, "floor" if bool((scales >= 1).all()) else "ceil")

    def shape(self, node: ResizeNode) -> set[str]:
        """Hold a Resize's inputs valid, and give it the form that is wanted."""
        rw = node.rw
        if rw.node.op_type != "Resize":
            return set()
        _leave_out_empties(rw)
        if node.origin is None:
            _check(rw)  # an adapter has checked the others
        scales, sizes = _settle(node, 2), _settle(node, 3)
        if self.form == "auto" and (scales is None or lengths_agree_always(scales)):
            return set()
        shape = node.shape
        if shape is None:
            return set()
        if scales is not None and not rw.input(3):
            disagree = lengths_disagree(rw, scales, shape)
            if disagree and self.form == "scales":
                self._say(node, "scales were asked for", "sizes", disagree)
            elif disagree or self.form == "sizes":
                self._say(node, scales_to_sizes(rw, scales, shape), "sizes", disagree)
        elif sizes is not None and self.form == "scales":
            self._say(node, sizes_to_scales(rw, sizes, shape), "scales", False)
        return set()

    def _say(self, node: ResizeNode, kept: str | None, form: str, disagree: bool) -> None:
        why = "onnx infers another length from its scales than runs, and such a model may not load"
        if kept is None:
            node.rw.note(why if disagree else f"written by {form}, as asked")
        elif disagree:
            self.traversal.warn(node, f"{why}; not written by sizes: {kept}", code="resize-length")
        else:
            self.traversal.warn(node, f"is not written by {form}: {kept}", code="resize-kept")


def _settle(node: ResizeNode, index: int) -> np.ndarray[Any, Any] | None:
    """Return scales or sizes that are known, as a constant of the node."""
    rw = node.rw
    name = rw.input(index)
    if not name:
        return None
    value = rw.constant_value(name)
    if value is None:
        value = node.known.value(name)
        if value is not None and value.size:
            rw.set_input(index, rw.constant(value, "scales" if index == 2 else "sizes"))
            rw.note("what it computed from known shapes became a constant")
    return value if value is not None and value.size else None


def _leave_out_empties(rw: Rewriter) -> None:
    if rw.version >= 13:
        for index in (1, 2, 3):
            if rw.input(index) and emptiness(rw, rw.input(index)):
                rw.set_input(index, "")


def _check(rw: Rewriter) -> None:
    check_choice(rw, "mode")
    if rw.get("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" and rw.input(1):
        check_roi(rw, rw.input(1))
    empty = {index: emptiness(rw, rw.input(index)) for index in (2, 3)}
    if empty[2] and empty[3]:
        rw.refuse("has neither scales nor sizes", code="no-scales", hint="one of the two must be given")
    if empty[2] is False and empty[3] is False:
        rw.refuse("has scales and sizes", code="scales-and-sizes", hint="only one of the two may be given")
    if empty[2] is False:
        read_scales(rw, rw.input(2))
    elif empty[3] is False:
        read_sizes(rw, rw.input(3))
