"""Restores, on request, the sampling that the exporter of each Resize intended if the file computes another; else notes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
import onnx

from onnx_migrate.engine.fitting_passes import PredictablePass
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.obligations import PassResult
from onnx_migrate.engine.other_numbers import AS_ASKED, OtherNumbers
from onnx_migrate.engine.pass_infra import ObligedPass, Pass, register_pass
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import MigrateError
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shapes import drop_value_info
from onnx_migrate.facts.value_facts import Producers
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.graphs import bodies, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import Aside, ChangeLog, Exactness, Note
from onnx_migrate.rewrite.resize.forms import leave_out, sizes_at_run_time, write_sizes
from onnx_migrate.rewrite.resize.inputs import is_from_converter
from onnx_migrate.rewrite.resize.pairs import ResizeOrigin, join_pair
from onnx_migrate.rewrite.resize.spec import Axis, ResizeSpec
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.resize import scale_of_size
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verdicts import Distance

from .traversal import ResizeNode, ResizeTraversal, resizes

__all__ = ["IntentNote", "ResizeIntent", "intended", "is_converted"]

_FIRST = 11
"""The first opset whose Resize can say half_pixel."""

_ROUNDS = 32
"""The largest number of traversals. Each restores the Resizes whose shapes follow from those restored before."""


@register_pass
@dataclass(frozen=True)
class ResizeIntent(ObligedPass, PredictablePass):
    """Let what PyTorch exported up to opset 10 compute what its module did, and repair converted Resizes.

    PyTorch's interpolate uses half_pixel in linear modes, rounds down in nearest, and computes scales from whole lengths. Its
    exporter could express none of these up to opset 10. onnx's version converter lost the coordinates of older Resizes. Both
    are assumptions: the model's numbers change, and each node is reported.

    Some runtimes compute half_pixel for such a file themselves. For these (`like`) the pass restores only the coordinates. The
    runtime then computes for the result the same as for the original.
    """

    name: ClassVar[str] = "resize_intent"
    title: ClassVar[str] = "repairing Resize nodes from PyTorch"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    operators: ClassVar[frozenset[str]] = frozenset({"Resize", "Upsample"})
    producer: ClassVar[str] = "pytorch"
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that a later pass makes dynamic."""
    like: str = ""
    """The runtime whose reading of the original is restored; "" restores all that is known of the exporter."""

    def _reason(self) -> str:
        """Return for whom the numbers change, as the end of a sentence."""
        if not self.like:
            return AS_ASKED
        return f"those that {self.like} computes for the original, not the file (--skip-pass {self.name} keeps the file's)"

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Rewrite the Resizes of `model`, which migrate_opset has brought to its target; it is edited and returned."""
        # Most models have no such node.
        if not resizes(model):
            return PassResult(model)
        traversal = ResizeTraversal(self.name, model, log, self.dynamic)
        from_pytorch = model.proto.producer_name == "pytorch"

        def restore(node: ResizeNode) -> None:
            small, origin = node.shrinking, node.origin
            # An earlier step replaced the Resize by a Gather.
            if node.rw.node.op_type == "Gather" and small is None:
                return
            if self.like:
                if from_pytorch and origin is not None and origin.is_before_11:
                    restore_coordinates(node)
            elif from_pytorch and origin is not None and origin.is_before_11:
                if restore_pytorch(node, origin):
                    drop_value_info(model.proto)
            elif small is None and is_converted(node):
                restore_before_converter(node, from_pytorch=from_pytorch)

        # One restored node may change the lengths that others read.
        for _ in range(_ROUNDS):
            if not traversal.visit_all(restore):
                break
        traversal.end()
        return PassResult(model, OtherNumbers(self.name, "resize intent", self._reason()))


@register_pass
@dataclass(frozen=True)
class IntentNote(PredictablePass):
    """Report the linear Resizes that PyTorch exported up to opset 10 as asymmetric and computed as half_pixel.

    The pass changes nothing; resize_intent runs instead of it and restores them. The log records the model that resize_intent
    would return, so that a verification can say how far apart the two are.
    """

    name: ClassVar[str] = "intent_note"
    title: ClassVar[str] = "checking Resize nodes from PyTorch"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    operators: ClassVar[frozenset[str]] = frozenset({"Resize", "Upsample"})
    producer: ClassVar[str] = "pytorch"
    like: str = ""
    """The runtime that computes half_pixel for the original, but follows the file from opset 11 on: for it the note is a
    warning."""
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that a later pass makes dynamic."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Note the nodes, if there are any, and return the model unchanged."""
        meant_nodes, older = _meant_half_pixel(model.proto, log)
        if not meant_nodes:
            return model
        label = node_label(meant_nodes[0])
        more = f" and {len(meant_nodes) - 1} more" if len(meant_nodes) > 1 else ""
        message = (
            f"{label!r}{more}: the PyTorch model computed half_pixel, but its exporter wrote asymmetric. The result computes"
            " asymmetric, as the file says"
        )
        if self.like and not older:
            message += f". {self.like} computes half_pixel for the original, and asymmetric for the result"
        message += f". --resize-intent writes half_pixel{', with --opset 11 or newer' * older}"
        severity = "warning" if self.like and not older else "info"
        log.note(self.name, "exporter-intent", message, subject=label, severity=severity)
        note = log.notes[-1]
        intended = self._intended(model, log, older=older)
        if intended is not None:
            log.record_fact("", "", Aside(intended, partial(_add_distance, log, note)))
        return model

    def _intended(self, model: Model, log: ChangeLog, *, older: bool) -> Model | None:
        """Return a copy of the model as resize_intent returns it; None if that is not possible."""
        trial, copy = log.trial(), model.copy()
        passes: list[Pass] = [
            ResizeIntent(dynamic=self.dynamic),
            make_pass("resize_form", dynamic=self.dynamic),
        ]
        # Below this opset, no node can be half_pixel.
        if older:
            passes.insert(0, make_pass("migrate_opset", opset=_FIRST, newer="keep"))
        try:
            for half_pixel_pass in passes:
                copy = half_pixel_pass.run(copy, log)
        except MigrateError:
            return None
        finally:
            # The trial must not write into the log of the result.
            trial.roll_back()
        return copy


def _add_distance(log: ChangeLog, note: Note, distance: Distance) -> None:
    """Add to the note how far the model that resize_intent makes is from the original."""
    message = f"{note.message}. Then {distance}"
    log.notes[log.notes.index(note)] = replace(note, message=message)


def _meant_half_pixel(proto: onnx.ModelProto, log: ChangeLog) -> tuple[list[onnx.NodeProto], bool]:
    """Return the nodes that PyTorch meant to be half_pixel, and whether one is of an opset that cannot say so."""
    if proto.producer_name != "pytorch":
        return [], False
    meant_nodes, older = [], False
    for located in bodies(proto):
        opset = onnx_opset(located.owner.opset_import, ir_version=proto.ir_version) or 0
        for node in located.body.node:
            if node.op_type not in ("Upsample", "Resize") or not is_onnx(node.domain):
                continue
            # Before this opset, coordinates are not stated.
            if opset < _FIRST:
                modes = [attribute.s for attribute in node.attribute if attribute.name == "mode"]
                meant = modes[:1] in ([b"linear"], [b"bilinear"])
                older |= meant
            else:
                origin = log.fact(ResizeOrigin, located.path, node.output[0])
                meant = origin is not None and origin.is_before_11 and _is_asymmetric(node)
            if meant:
                meant_nodes.append(node)
    return meant_nodes, older


def is_converted(node: ResizeNode) -> bool:
    """Return whether onnx's version converter made a Resize of an older one and lost its coordinates."""
    return is_from_converter(node.rw) or (node.origin is not None and node.origin.written_by_converter)


def _sizes_behind(scope: Scope, producers: Producers, scales: str, source: str) -> tuple[int, str] | None:
    """Return the sizes that PyTorch's exporter computed `scales` from, if it did.

    The scales are Concat([1, 1], Div(Cast(sizes), Cast(Slice(Shape(x), 2:)))), where the first Cast may be missing.
    Returns the number of ones in front, and the name of the sizes, which are float or integer.
    """
    concat = producers.find(scope, scales)
    if concat is None or concat.op_type != "Concat" or len(concat.input) != 2:
        return None
    # The batch and the channels are not scaled.
    ones = scope.constant(concat.input[0])
    division = producers.find(scope, concat.input[1])
    if ones is None or bool((ones != 1).any()) or division is None or division.op_type != "Div":
        return None
    cast = producers.find(scope, division.input[1])
    # The lengths of the spatial axes are cut out of the shape.
    cut = producers.find(scope, cast.input[0]) if cast is not None and cast.op_type == "Cast" else None
    shape = producers.find(scope, cut.input[0]) if cut is not None and cut.op_type == "Slice" else None
    if shape is None or shape.op_type != "Shape" or shape.input[0] != source:
        return None
    wanted = division.input[0]
    cast = producers.find(scope, wanted)
    # The first Cast may be missing.
    if cast is not None and cast.op_type == "Cast" and is_onnx(cast.domain):
        wanted = cast.input[0]
    return ones.size, wanted


def intended(spec: ResizeSpec) -> ResizeSpec | None:
    """Return the node with the lengths that the exporter computed its scales from; None if those are the lengths that run.

    The intended length k is the length times the scale, rounded, if float32(k / length) is that scale bit for bit. An axis of
    scale 1 may be of any length.
    """
    axes = list(spec.axes)
    for axis in axes:
        if axis.length is None or axis.scale is None:
            # An axis of scale 1 keeps its length, even an unknown one.
            if axis.scale != 1:
                return None
            continue
        near = int(np.rint(np.float64(axis.scale) * axis.length))
        if near != axis.size and scale_of_size(axis.length, near) == axis.scale:
            axes[axis.place] = replace(axis, size=near)
    return replace(spec, axes=tuple(axes)) if axes != list(spec.axes) else None


def restore_pytorch(node: ResizeNode, origin: ResizeOrigin) -> bool:
    """Write the sampling of PyTorch's interpolate, which its exporter could not express up to opset 10.

    Returns whether output lengths may have changed.
    """
    rw = node.rw
    small = node.shrinking
    if small is not None:
        join_pair(rw, small, origin, "floor")
        rw.note("PyTorch's nearest interpolation rounds down on every axis", Exactness.ASSUMED)
    elif rw.get("mode", "nearest") == "nearest" and rw.get("nearest_mode") == "ceil":
        rw.set("nearest_mode", "floor")
        rw.note("PyTorch's nearest interpolation rounds down on every axis", Exactness.ASSUMED)
    else:
        restore_coordinates(node)
    return _write_intended_sizes(node)


def _is_asymmetric(node: onnx.NodeProto) -> bool:
    """Return whether a node of opset 11 or newer is a linear Resize with asymmetric coordinates."""
    values = {attribute.name: attribute.s for attribute in node.attribute}
    return values.get("mode") == b"linear" and values.get("coordinate_transformation_mode") == b"asymmetric"


def restore_coordinates(node: ResizeNode) -> None:
    """Write half_pixel for a linear Resize that PyTorch's exporter could only write as asymmetric."""
    if _is_asymmetric(node.rw.node):
        node.rw.set("coordinate_transformation_mode", "half_pixel")
        node.rw.note("PyTorch's linear interpolation is half_pixel without align_corners", Exactness.ASSUMED)


def _write_intended_sizes(node: ResizeNode) -> bool:
    """Write the sizes that the scales were computed from, if these are recognised; return whether they were."""
    rw = node.rw
    # A Resize by sizes already has them.
    if not rw.input(2) or rw.input(3):
        return False
    wanted = _sizes_behind(rw.scope, node.producers, rw.input(2), rw.input(0))
    if wanted is not None:
        ones, name = wanted
        lengths = node.known.value(name)
        # Known sizes need no nodes.
        if lengths is not None:
            front = (rw.shape(rw.input(0)) or (None,) * ones)[:ones]
            write_sizes(rw, [Axis(*pair) for pair in enumerate([*front, *map(int, lengths)])])
        else:
            sizes_at_run_time(rw, ones, name)
        rw.note("its scales were computed from sizes, which are written instead", Exactness.ASSUMED)
        return True
    spec = node.spec()
    # Scales that were rounded from quotients lose an element.
    meant = None if spec is None or spec.scales is None else intended(spec)
    if meant is None:
        return False
    write_sizes(rw, meant.named)
    rw.note(
        "its scales are quotients of lengths that run to one element less, so the lengths are written instead",
        Exactness.ASSUMED,
    )
    return True


def restore_before_converter(node: ResizeNode, *, from_pytorch: bool) -> None:
    """Restore the sampling of a node before onnx's version converter, if that follows from its scales."""
    rw = node.rw
    mode = rw.get("mode", "nearest")
    if mode not in ("nearest", "linear") or (mode == "linear" and from_pytorch):
        return  # PyTorch's linear is half_pixel, which the node computes again by accident
    if mode == "nearest":
        scales = node.value(rw.input(2)) if rw.input(2) else None
        down = scales is not None and bool((scales < 1).any()) and not from_pytorch
        if scales is None or (down and bool((scales > 1).any())):
            return  # it rounded up on some axes and down on others, or the scales are not known
        rw.set("nearest_mode", "ceil" if down else "floor")
    rw.set("coordinate_transformation_mode", "asymmetric")
    rw.set_input(1, leave_out(rw, "roi"))
    rw.note("the asymmetric coordinates that onnx's version converter lost are restored", Exactness.ASSUMED)
    if node.origin is not None:
        rw.record_fact(replace(node.origin, written_by_converter=False))
