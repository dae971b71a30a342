"""Writes each Resize by scales or by sizes, whichever loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np
import onnx

from onnx_migrate.engine.fitting_passes import PredictablePass
from onnx_migrate.engine.incompatibility import Incompatibility, objections_by_trial
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.resize.forms import any_length_differs, scales_to_sizes, sizes_to_scales
from onnx_migrate.rewrite.resize.inputs import check_count, check_resize
from onnx_migrate.rewrite.resize.pairs import ResizeOrigin, join_pair
from onnx_migrate.rewrite.resize.spec import emptiness, policy_of
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.resize import lengths_agree_always, sizes_are_lengths

from .resize_intent import is_converted
from .traversal import ResizeNode, ResizeTraversal, resizes

__all__ = ["ResizeForm"]

Form = Literal["auto", "scales", "sizes"]


@register_pass
@dataclass(frozen=True)
class ResizeForm(PredictablePass):
    """Write each Resize of opset 11 and later in the form that runtimes load, and check its inputs.

    Scales and sizes that follow from known shapes become constants. With `form` "auto", scales become sizes where onnx infers
    another length than ONNX Runtime computes. ONNX Runtime 1.28 and later do not load such a model. With "scales" or "sizes",
    each node gets that form wherever it is exact. No dim is frozen: a dim that is symbolic, or that `dynamic` names, is not
    known.

    Raises CannotMigrate for scales, sizes, roi and mode that no runtime accepts.
    """

    name: ClassVar[str] = "resize_form"
    title: ClassVar[str] = "checking Resize nodes"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    operators: ClassVar[frozenset[str]] = frozenset({"Resize", "Upsample"})
    form: Form = "auto"
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that a later pass makes dynamic."""

    def preferences(self, model: Model) -> tuple[Incompatibility, ...]:
        """Return the preference for Resizes of the chosen form, at the first Resize that would change."""
        opset = onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version) or 0
        objections = objections_by_trial(self, model) if self.form != "auto" and opset >= 11 else ()
        return tuple(
            replace(objection, reason=f"takes Resize by {self.form}") for objection in objections[:1]
        )

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model`, which is edited and returned."""
        nodes = resizes(model)
        if nodes:
            traversal = ResizeTraversal(self.name, model, log, self.dynamic)
            rewrite = _Rewrite(self.form, traversal, model.proto.producer_name == "pytorch")
            if rewrite.may_join_pairs(nodes):
                traversal.visit_all(rewrite.join_pairs)
                nodes = resizes(model)
            if rewrite.may_choose_form(nodes):
                traversal.visit_all(rewrite.choose_form)
            traversal.end()
        return model


@dataclass(frozen=True)
class _Rewrite:
    """The changes to each node, and checks whether a traversal is needed at all: a traversal costs a scan of the model."""

    form: Form
    traversal: ResizeTraversal
    from_pytorch: bool

    def may_join_pairs(self, nodes: Iterable[onnx.NodeProto]) -> bool:
        """Return whether `join_pairs` may find a pair, or a node that onnx's version converter wrote."""
        if any(len(node.input) > 1 and node.input[1] for node in nodes):
            return True
        origins = self.traversal.log.facts_of(ResizeOrigin)
        return any(origin.split or origin.written_by_converter for origin in origins)

    def may_choose_form(self, nodes: Sequence[onnx.NodeProto]) -> bool:
        """Return whether `choose_form` may change or refuse a node.

        It does not if adapters wrote all nodes, in the main graph, with constant scales, and onnx and ONNX Runtime agree on
        their lengths.
        """
        graph = self.traversal.model.proto.graph
        in_graph = list(map(attrgetter("op_type"), graph.node)).count("Resize")
        if self.form != "auto" or in_graph != len(nodes) or any(map(self._is_unchecked, nodes)):
            return True
        wanted = {node.input[2] for node in nodes} - {value.name for value in graph.input}
        constants = [tensor for tensor in graph.initializer if tensor.name in wanted and 0 not in tensor.dims]
        weights = self.traversal.model.weights
        agreed = {tensor.name for tensor in constants if lengths_agree_always(weights.array(tensor))}
        return any(node.input[2] not in agreed for node in nodes)

    def _is_unchecked(self, node: onnx.NodeProto) -> bool:
        """Return whether no adapter rewrote and checked a node of the main graph, or it reads roi or sizes."""
        if len(node.input) != 3 or node.input[1]:
            return True
        origin = self.traversal.origin("graph", node.output[0])
        return origin is None or origin.unchecked

    def join_pairs(self, node: ResizeNode) -> None:
        """Write one node for a pair if known shapes show that no axis shrinks, or that none grows.

        Warns of a node that onnx's version converter wrote.
        """
        rw = node.rw
        small, origin = node.shrinking, node.origin
        if small is None or origin is None:
            if rw.node.op_type == "Resize" and is_converted(node):
                self._warn_of_converter(node)
            return
        scales = node.value(origin.scales) if isinstance(origin.scales, str) else origin.scales
        if scales is None or (bool((scales < 1).any()) and bool((scales > 1).any())):
            return
        rw.note("its scales follow from known shapes, and not both shrink and grow: one node is enough")
        join_pair(rw, small, origin, "floor" if bool((scales >= 1).all()) else "ceil")

    def _warn_of_converter(self, node: ResizeNode) -> None:
        message = (
            "onnx's version converter wrote this node for an older Resize and lost its asymmetric coordinates, so that"
            " it computes half_pixel coordinates"
        )
        if node.rw.get("mode", "nearest") == "linear" and self.from_pytorch:
            message += ", as the PyTorch module did that was exported: nothing needs to be done"
        else:
            message += "; --resize-intent restores the asymmetric ones"
        self.traversal.warn(node, message, code="converted-resize")

    def choose_form(self, node: ResizeNode) -> None:
        """Check a Resize's inputs, make them constants if they are known, and write the requested form."""
        rw = node.rw
        if rw.node.op_type != "Resize":
            return
        if rw.version >= 13:
            for index in (1, 2, 3):
                if rw.input(index) and emptiness(rw, rw.input(index)):
                    rw.set_input(index, "")
        check_resize(rw)  # of the new form, inference may know a rank that an adapter did not
        _count_axes_from_the_front(node)
        scales, sizes = _as_constant(node, 2), _as_constant(node, 3)
        if self.form == "auto" and (scales is None or lengths_agree_always(scales)):
            return
        spec = node.spec()
        if spec is None or rw.rank(rw.input(0)) is None:
            return
        if scales is not None and not rw.input(3):
            differs = any_length_differs(spec)
            if differs and self.form == "scales":
                self._report(node, "the chosen form is scales", "sizes", differs)
            elif differs or self.form == "sizes":
                self._report(node, scales_to_sizes(rw, spec), "sizes", differs)
        elif sizes is not None and self.form == "scales":
            self._report(node, sizes_to_scales(rw, spec), "scales", False)

    def _report(self, node: ResizeNode, obstacle: str | None, form: str, differs: bool) -> None:
        """Report that a node is written by `form`, or the obstacle; `differs`: onnx infers another length."""
        why = "onnx infers another output length from its scales than ONNX Runtime computes"
        if obstacle is None:
            node.rw.note(
                f"written by sizes, because {why}" if differs else f"written by {form}, the chosen form"
            )
        elif differs:
            message = f"{why}, and ONNX Runtime 1.28 or later may not load the model; not written by sizes: {obstacle}"
            self.traversal.warn(node, message, code="resize-length")
        else:
            self.traversal.warn(node, f"not written by {form}: {obstacle}", code="resize-kept")


def _count_axes_from_the_front(node: ResizeNode) -> None:
    """Write negative axes as the axes they mean: ONNX Runtime before 1.27 does not load them, or crashes as it runs.

    The node stays if its keep_aspect_ratio_policy computes lengths. ONNX Runtime 1.31 ignores the sizes of negative axes there,
    and the result must compute the same as the original.
    """
    axes = node.rw.get("axes", [])
    if not sizes_are_lengths(policy_of(node.rw)):
        return
    rank = node.rw.rank(node.rw.input(0)) or 0
    if any(axis < 0 for axis in axes) and all(-rank <= axis < rank for axis in axes):
        node.rw.set("axes", [axis % rank for axis in axes])
        node.rw.note("its axes are counted from the front, since ONNX Runtime before 1.27 needs that")


def _as_constant(node: ResizeNode, index: int) -> np.ndarray[Any, Any] | None:
    """Return scales (input 2) or sizes (input 3) if they are known; the node then reads them from a constant."""
    rw = node.rw
    name = rw.input(index)
    if not name:
        return None
    value = node.value(name)
    if value is None or not value.size:
        return None
    if rw.constant_value(name) is None:
        input_label, code = ("scales", "bad-scales") if index == 2 else ("sizes", "bad-sizes")
        rw.set_input(index, rw.constant(value, input_label))
        check_count(rw, rw.input(index), input_label, code=code)
        rw.note(f"its {input_label} follow from known shapes, so they became a constant")
    return value
