"""Writes each Resize by scales or by sizes, whichever loads, and on request as its exporter meant it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.orphans import remove_orphans
from onnx_migrate.engine.passes import Pass, register_pass
from onnx_migrate.errors import Where
from onnx_migrate.model.bodies import Body, FunctionKey, subgraphs
from onnx_migrate.model.change import Change, ChangeLog, Exactness
from onnx_migrate.model.dims import DynamicAxes, named_axes
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.model.opset import onnx_opset
from onnx_migrate.model.rewriter import Rewriter
from onnx_migrate.model.schema import is_onnx, signature_at
from onnx_migrate.model.scope import Scope, scopes
from onnx_migrate.model.shapes import dims_of, drop_value_info
from onnx_migrate.model.types import BodyKey, TypeTable, ValueType

from .adapters.resize_inputs import (
    FROM_CONVERTER,
    check_choice,
    check_roi,
    emptiness,
    is_from_converter,
    read_scales,
    read_sizes,
)
from .resize.forms import lengths_disagree, never_disagrees, scales_to_sizes, sizes_to_scales, write_sizes
from .resize.intent import Pair, find_pair, from_before_11, meant_lengths, wanted_sizes
from .resize.known import Known, Producers
from .resize.lengths import real_types

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


@dataclass
class _Place:
    """One node, and what is known where it stands."""

    rw: Rewriter
    known: Known
    producers: Producers

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The shape of what is resized."""
        return self.rw.scope.value_type(self.rw.input(0)).shape


class _RealTypes(TypeTable):
    """The types with the lengths that run, inferred when first asked; unknown if these did not settle."""

    def __init__(self, model: Model, dynamic: Mapping[str, Mapping[int, str]]) -> None:
        self._make: Callable[[], TypeTable | None] | None = partial(real_types, model, dynamic)
        self._real: TypeTable | None = None

    @property
    def asked(self) -> bool:
        """Whether anything had to be inferred."""
        return self._make is None

    def lookup(self, function: FunctionKey | None, body: BodyKey, name: str) -> ValueType:
        """Return what is known of a value that a body sees."""
        if self._make is not None:
            self._real, self._make = self._make(), None
        return ValueType() if self._real is None else self._real.lookup(function, body, name)


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
        types = _RealTypes(self.model, self.dynamic)
        proto = self.model.proto
        own = scopes(proto, self.model.weights, result_ir_version=proto.ir_version)
        changed = False
        producers = Producers()
        imports = [proto.opset_import, *(function.opset_import for function in proto.functions)]
        for scope, imported in zip(own, imports, strict=True):
            scope.types = types
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
            gone.update(visit(_Place(rw, known, producers)))
            nodes.extend([*rw.preceding, node])
            if node != before:
                changed = True
                self.orphans.update(name for name in before.input if name and name not in node.input)
                self._record(before, rw, since)
        self._value_info(scope)
        self.orphans.update(name for node in nodes if gone.intersection(node.output) for name in node.input)
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
        asked = isinstance(scope.types, _RealTypes) and scope.types.asked
        if not asked or not isinstance(body, onnx.GraphProto) or not body.value_info:
            return
        kept = [value for value in body.value_info if not _contradicts(value, scope.value_type(value.name))]
        if len(kept) < len(body.value_info):
            count = len(body.value_info) - len(kept)
            self.log.note(
                self.options.name, "value-info", f"dropped {count} noted shapes that are not what runs"
            )
            del body.value_info[:]
            body.value_info.extend(kept)

    def _warn(self, place: _Place, message: str, *, code: str) -> None:
        where = place.rw.where
        if (str(where), code) not in self.said:
            self.said.add((str(where), code))
            self.log.note(
                self.options.name, code, f"{where}: {message}", subject=where.node, severity="warning"
            )

    # The first walk: where a node comes from

    def origins(self, place: _Place) -> set[str]:
        """Look at nodes of older opsets; return the outputs of nodes that are no longer needed."""
        rw = place.rw
        old = from_before_11(self.lifted, rw.scope, rw.node)
        pair = find_pair(rw.scope, place.producers, rw.node) if old else None
        if rw.node.op_type == "Gather" and pair is None:
            return set()
        if old and self.pytorch and self.options.intent:
            return self._as_pytorch(place, pair)
        if pair is not None:
            return self._one_of_pair(place, pair)
        change = self.lifted.get((rw.scope.path, rw.node.output[0]))
        if is_from_converter(rw) or (change is not None and FROM_CONVERTER in change.reason):
            self._from_converter(place)
        return set()

    def _one_of_pair(self, place: _Place, pair: Pair) -> set[str]:
        """Write one node for two where it shows, from shapes, that all axes go the same way."""
        scales = place.known.value(pair.scales) if isinstance(pair.scales, str) else pair.scales
        if scales is None or (bool((scales < 1).any()) and bool((scales > 1).any())):
            return set()
        self._join(place.rw, pair, "floor" if bool((scales >= 1).all()) else "ceil")
        place.rw.note("its scales follow from known shapes, and go one way: one node does")
        return {output for node in pair.nodes[1:] for output in node.output}

    def _join(self, rw: Rewriter, pair: Pair, nearest_mode: str) -> None:
        """Make the last node of a pair the one Resize that the pair came from."""
        source = self.lifted[rw.scope.path, rw.node.output[0]].before
        roi = pair.nodes[-1].input[1]
        rw.drop(*(attribute.name for attribute in list(rw.node.attribute)))
        rw.rename("Resize")
        rw.node.name = source.name
        rw.where = replace(rw.where, node=source.name or source.output[0])
        scales = pair.scales if isinstance(pair.scales, str) else rw.constant(pair.scales, "scales")
        del rw.node.input[:]
        rw.node.input.extend([pair.source, roi, scales])
        rw.set("coordinate_transformation_mode", "asymmetric")
        rw.set("mode", "nearest")
        rw.set("nearest_mode", nearest_mode)

    def _as_pytorch(self, place: _Place, pair: Pair | None) -> set[str]:
        """Write what PyTorch's interpolate computes; its exporter up to opset 10 had no word for it."""
        rw = place.rw
        gone: set[str] = set()
        if pair is not None:
            self._join(rw, pair, "floor")
            gone = {output for node in pair.nodes[1:] for output in node.output}
            rw.note("PyTorch's nearest rounds down on every axis", Exactness.ASSUMED)
        elif rw.get("mode", "nearest") == "nearest" and rw.get("nearest_mode") == "ceil":
            rw.set("nearest_mode", "floor")
            rw.note("PyTorch's nearest rounds down on every axis", Exactness.ASSUMED)
        elif rw.get("mode") == "linear" and rw.get("coordinate_transformation_mode") == "asymmetric":
            rw.set("coordinate_transformation_mode", "half_pixel")
            rw.note("PyTorch's linear interpolation is half_pixel without align_corners", Exactness.ASSUMED)
        if self._meant_sizes(place):
            drop_value_info(self.model.proto.graph)
        return gone

    def _meant_sizes(self, place: _Place) -> bool:
        rw, shape = place.rw, place.shape
        if not rw.input(2) or rw.input(3):
            return False
        wanted = wanted_sizes(rw.scope, place.producers, rw.input(2), rw.input(0))
        if wanted is not None:
            ones, name = wanted
            lengths = place.known.value(name)
            if lengths is not None:
                sizes = [None] * ones + [int(length) for length in lengths]
                known = list(shape[:ones]) if shape is not None else [None] * ones
                write_sizes(rw, [*known, *sizes[ones:]], [1] * len(sizes), shape or (None,) * len(sizes))
            else:
                _sizes_at_run_time(rw, ones, name)
            rw.note("the scales were computed from a size, and the size is what was meant", Exactness.ASSUMED)
            return True
        scales = place.known.value(rw.input(2))
        if scales is None or shape is None or len(scales) != len(shape):
            return False
        meant = meant_lengths(scales, shape)
        if meant is None:
            return False
        write_sizes(rw, meant, [1] * len(meant), shape)
        rw.note("the scales are a length over a length, and run to one less than that", Exactness.ASSUMED)
        return True

    def _from_converter(self, place: _Place) -> None:
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

    def forms(self, place: _Place) -> set[str]:
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
            if disagree or self.options.form == "sizes":
                self._say(place, scales_to_sizes(rw, scales, shape), "sizes", disagree)
        elif sizes is not None and self.options.form == "scales":
            self._say(place, sizes_to_scales(rw, sizes, shape), "scales", False)
        return set()

    def _say(self, place: _Place, kept: str | None, form: str, disagree: bool) -> None:
        why = "onnx infers another length from its scales than runs, and such a model may not load"
        if kept is None:
            place.rw.note(why if disagree else f"written by {form}, as asked")
        elif disagree:
            self._warn(place, f"{why}; sizes would not be exact: {kept}", code="resize-length")
        else:
            self._warn(place, f"is not written by {form}: {kept}", code="resize-kept")

    def _settle(self, place: _Place, index: int) -> np.ndarray[Any, Any] | None:
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


_Visit = Callable[[_Place], set[str]]


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


def _sizes_at_run_time(rw: Rewriter, ones: int, wanted: str) -> None:
    lengths = rw.before("Shape", [rw.input(0)], hint="lengths")
    bounds = [rw.constant(np.array([edge], np.int64), "bound") for edge in (0, ones)]
    kept = rw.before("Slice", [lengths, *bounds], hint="kept")
    whole = rw.before("Cast", [wanted], hint="wanted", to=TensorProto.INT64)
    rw.set_input(2, "" if rw.version >= 13 else rw.constant(np.zeros(0, np.float32), "no_scales"))
    rw.set_input(3, rw.before("Concat", [kept, whole], hint="sizes", axis=0))


def _contradicts(value: onnx.ValueInfoProto, real: ValueType) -> bool:
    declared = dims_of(value)
    if declared is None or real.shape is None:
        return False
    if len(declared) != len(real.shape):
        return True
    pairs = zip(declared, real.shape, strict=True)
    return any(isinstance(size, int) and run is not None and size != run for size, run in pairs)
