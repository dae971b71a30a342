"""Writes each Resize by scales or by sizes, whichever loads, and on request as its exporter meant it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import onnx

from onnx_migrate.engine.orphans import remove_orphans
from onnx_migrate.engine.passes import Pass, register_pass
from onnx_migrate.errors import Where
from onnx_migrate.model.bodies import Body, subgraphs
from onnx_migrate.model.change import Change, ChangeLog, Exactness
from onnx_migrate.model.dims import DynamicAxes, named_axes
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.model.opset import onnx_opset
from onnx_migrate.model.rewriter import Rewriter
from onnx_migrate.model.schema import is_onnx, signature_at
from onnx_migrate.model.scope import Scope, scopes
from onnx_migrate.model.shapes import drop_value_info

from .adapters.resize_inputs import (
    FROM_CONVERTER,
    check_choice,
    check_roi,
    emptiness,
    is_from_converter,
    read_scales,
    read_sizes,
)
from .resize.forms import lengths_disagree, scales_to_sizes, sizes_to_scales
from .resize.intent import Pair, as_pytorch, find_pair, from_before_11, join_pair
from .resize.known import Known, Place, Producers
from .resize.lengths import RealTypes, contradicts, never_disagrees

__all__ = ["ResizeForm"]

Form = Literal["auto", "scales", "sizes"]

_MEANT_ROUNDS = 32


@register_pass
@dataclass(frozen=True)
class ResizeForm(Pass):
    """Give each Resize of opset 11 and on the form that runtimes load, and say what is wrong with it.

    Scales and sizes that follow from known shapes become constants. With `form` "auto", scales become sizes
    where onnx infers another length than runs, so that ONNX Runtime 1.28 and later do not load the model;
    with "scales" and "sizes", wherever that is exact. No dim is frozen: one that is symbolic, or is to be
    `dynamic`, is not known.

    With `intent`, what PyTorch exported up to opset 10 is written as the module computes it, and what onnx's
    version converter made of an older Resize as that computed it. These are assumptions, and so reported.

    Raises CannotMigrate for scales, sizes, roi and mode that no runtime takes.
    """

    name: ClassVar[str] = "resize_form"
    form: Form = "auto"
    intent: bool = False
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that are made dynamic afterwards."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model` in place."""
        bodies: list[Body] = [model.proto.graph, *model.proto.functions]
        if not any(_has_resize(body) for body in bodies):
            return model
        work = _Work(self, model, log)
        for _ in range(_MEANT_ROUNDS):
            if not work.walk(work.origins):
                break
        work.walk(work.forms)
        remove_orphans(model.proto, work.orphans)
        return model


def _has_resize(body: Body) -> bool:
    return any(
        node.op_type == "Resize" or any(_has_resize(graph) for _, _, graph in subgraphs(node))
        for node in body.node
    )


class _Work:
    """One run of the pass: its options, what it has to remember, and the two walks."""

    def __init__(self, options: ResizeForm, model: Model, log: ChangeLog) -> None:
        self.options = options
        self.model = model
        self.log = log
        self.orphans: set[str] = set()
        self.pytorch = model.proto.producer_name == "pytorch"
        self.dynamic = named_axes(options.dynamic, Interface.of(model.proto)) if options.dynamic else {}
        self.lifted = {
            (change.where.scope, change.before.output[0]): change
            for change in log.changes
            if change.where.operator in ("Resize", "Upsample")
        }
        self.said: set[tuple[str, str]] = set()

    def walk(self, visit: _Visit) -> bool:
        """Show each Resize, in order and inner bodies first, to `visit`; tell whether any changed."""
        types = RealTypes(self.model, self.dynamic)
        proto = self.model.proto
        own = scopes(proto, self.model.weights, result_ir_version=proto.ir_version, types=types)
        changed = False
        producers = Producers()
        imports = [proto.opset_import, *(function.opset_import for function in proto.functions)]
        for scope, imported in zip(own, imports, strict=True):
            opset = onnx_opset(imported, ir_version=proto.ir_version)
            if opset is not None and opset >= 11:
                changed |= self._body(scope, opset, producers, visit)
        return changed

    def _body(self, scope: Scope, opset: int, producers: Producers, visit: _Visit) -> bool:
        changed = False
        known = Known(scope, producers)
        nodes: list[onnx.NodeProto] = []
        gone: set[str] = set()
        for index, node in enumerate(scope.body.node):
            for attribute, number, graph in subgraphs(node):
                changed |= self._body(
                    scope.inner(node, index, attribute, number, graph), opset, producers, visit
                )
            if not self._concerns(scope, node):
                nodes.append(node)
                continue
            form = signature_at("", "Resize", opset)
            since = form.since_version if form else opset
            where = Where(scope.path, node.name or node.output[0], "Resize", since, since)
            rw = Rewriter(node, scope, opset, opset, where)
            before = onnx.NodeProto()
            before.CopyFrom(node)
            gone.update(visit(Place(rw, known, producers)))
            nodes.extend([*rw.preceding, node])
            if node != before:
                changed = True
                self.orphans.update(name for name in before.input if name and name not in node.input)
                self._record(before, rw, since)
        self._value_info(scope)
        if gone:
            self.orphans.update(
                name for node in nodes if gone.intersection(node.output) for name in node.input
            )
        if scope.added or gone or len(nodes) != len(scope.body.node):
            nodes = [*scope.added, *(node for node in nodes if not gone.intersection(node.output))]
            del scope.body.node[:]
            scope.body.node.extend(nodes)
        return changed

    def _concerns(self, scope: Scope, node: onnx.NodeProto) -> bool:
        """Tell whether a node is a Resize, or the last of those that an adapter wrote for one."""
        if node.op_type not in ("Resize", "Gather") or not is_onnx(node.domain):
            return False
        if node.op_type == "Gather" and (scope.path, node.output[0]) not in self.lifted:
            return False
        return not any(attribute.ref_attr_name for attribute in node.attribute)

    def _record(self, before: onnx.NodeProto, rw: Rewriter, since: int) -> None:
        self.log.changes.append(
            Change(
                step=self.options.name,
                where=rw.where,
                serialised_before=before.SerializeToString(),
                version_before=since,
                serialised_after=rw.node.SerializeToString(),
                version_after=since,
                emitted=tuple(node.op_type for node in rw.preceding),
                reason="; ".join(dict.fromkeys(rw.reasons)) or "inputs that hold nothing are left out",
                exactness=rw.exactness or Exactness.EXACT,
            )
        )

    def _value_info(self, scope: Scope) -> None:
        """Drop what is noted of values whose lengths are others when run."""
        body = scope.body
        asked = isinstance(scope.types, RealTypes) and scope.types.asked
        if not asked or not isinstance(body, onnx.GraphProto) or not body.value_info:
            return
        kept = [value for value in body.value_info if not contradicts(value, scope.value_type(value.name))]
        if len(kept) < len(body.value_info):
            count = len(body.value_info) - len(kept)
            self.log.note(
                self.options.name, "value-info", f"dropped {count} noted shapes that are not what runs"
            )
            del body.value_info[:]
            body.value_info.extend(kept)

    def _warn(self, place: Place, message: str, *, code: str) -> None:
        where = place.rw.where
        if (str(where), code) not in self.said:
            self.said.add((str(where), code))
            self.log.note(
                self.options.name, code, f"{where}: {message}", subject=where.node, severity="warning"
            )

    # The first walk: where a node comes from

    def origins(self, place: Place) -> set[str]:
        """Look at nodes of older opsets; return the outputs of nodes that are no longer needed."""
        rw = place.rw
        old = from_before_11(self.lifted, rw.scope, rw.node)
        paired = old and "Resize" in self._source(place).emitted  # not two of the model's own in a row
        pair = find_pair(rw.scope, place.producers, rw.node) if paired else None
        if rw.node.op_type == "Gather" and pair is None:
            return set()
        if old and self.pytorch and self.options.intent:
            gone, longer = as_pytorch(place, pair, self._source(place).before)
            if longer:
                drop_value_info(self.model.proto.graph)
            return gone
        if pair is not None:
            return self._one_of_pair(place, pair)
        change = self.lifted.get((rw.scope.path, rw.node.output[0]))
        if is_from_converter(rw) or (change is not None and FROM_CONVERTER in change.reason):
            self._from_converter(place)
        return set()

    def _one_of_pair(self, place: Place, pair: Pair) -> set[str]:
        """Write one node for two where it shows, from shapes, that all axes go the same way."""
        scales = place.known.value(pair.scales) if isinstance(pair.scales, str) else pair.scales
        if scales is None or (bool((scales < 1).any()) and bool((scales > 1).any())):
            return set()
        place.rw.note("its scales follow from known shapes, and go one way: one node does")
        nearest_mode = "floor" if bool((scales >= 1).all()) else "ceil"
        return join_pair(place.rw, pair, self._source(place).before, nearest_mode)

    def _source(self, place: Place) -> Change:
        """What became of a node that the lift has rewritten."""
        return self.lifted[place.rw.scope.path, place.rw.node.output[0]]

    def _from_converter(self, place: Place) -> None:
        rw = place.rw
        mode = rw.get("mode", "nearest")
        scales = place.known.value(rw.input(2)) if rw.input(2) else None
        told = f"{FROM_CONVERTER}, which computed asymmetric coordinates; this computes half_pixel"
        if mode == "linear" and self.pytorch:
            told += ", as it happens what PyTorch's interpolate computes"
        self._warn(place, told, code="converted-resize")
        if (
            not self.options.intent
            or (mode == "linear" and self.pytorch)
            or mode not in ("nearest", "linear")
        ):
            return
        if mode == "nearest":
            down = scales is not None and bool((scales < 1).any()) and not self.pytorch
            if scales is None or (down and bool((scales > 1).any())):
                return  # Two roundings, or nobody knows which: the older model is needed.
            rw.set("nearest_mode", "ceil" if down else "floor")
        rw.set("coordinate_transformation_mode", "asymmetric")
        rw.set_input(1, "" if rw.version >= 13 else rw.constant(np.zeros(0, np.float32), "roi"))
        rw.note("computes again what it did before onnx's version converter", Exactness.ASSUMED)

    # The second walk: what form it has

    def forms(self, place: Place) -> set[str]:
        """Hold a Resize's inputs valid, and give it the form that is wanted."""
        rw = place.rw
        if rw.node.op_type != "Resize":
            return set()
        _leave_out_empties(rw)
        if (rw.scope.path, rw.node.output[0]) not in self.lifted:
            _check(rw)  # an adapter has checked the others
        scales, sizes = self._settle(place, 2), self._settle(place, 3)
        if self.options.form == "auto" and (scales is None or never_disagrees(scales)):
            return set()
        shape = place.shape
        if shape is None:
            return set()
        if scales is not None and not rw.input(3):
            disagree = lengths_disagree(rw, scales, shape)
            if disagree and self.options.form == "scales":
                self._say(place, "scales were asked for", "sizes", disagree)
            elif disagree or self.options.form == "sizes":
                self._say(place, scales_to_sizes(rw, scales, shape), "sizes", disagree)
        elif sizes is not None and self.options.form == "scales":
            self._say(place, sizes_to_scales(rw, sizes, shape), "scales", False)
        return set()

    def _say(self, place: Place, kept: str | None, form: str, disagree: bool) -> None:
        why = "onnx infers another length from its scales than runs, and such a model may not load"
        if kept is None:
            place.rw.note(why if disagree else f"written by {form}, as asked")
        elif disagree:
            self._warn(place, f"{why}; not written by sizes: {kept}", code="resize-length")
        else:
            self._warn(place, f"is not written by {form}: {kept}", code="resize-kept")

    def _settle(self, place: Place, index: int) -> np.ndarray[Any, Any] | None:
        """Return scales or sizes that are known, as a constant of the node."""
        rw = place.rw
        name = rw.input(index)
        if not name:
            return None
        value = rw.constant_value(name)
        if value is None:
            value = place.known.value(name)
            if value is not None and value.size:
                rw.set_input(index, rw.constant(value, "scales" if index == 2 else "sizes"))
                rw.note("what it computed from known shapes became a constant")
        return value if value is not None and value.size else None


_Visit = Callable[[Place], set[str]]


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
