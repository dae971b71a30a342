"""Simplifies a model with onnxsim in a child process, and restores everything else that onnxsim changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import eq
from pathlib import Path
from typing import ClassVar

import onnx
from onnx import TensorProto

from onnx_migrate import files, process
from onnx_migrate.advice import Advice, advice_of
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate, PassError, SaveError, require_package
from onnx_migrate.facts.onnx_inference import cannot_propagate
from onnx_migrate.facts.shapes import dims_of, inferred_outputs
from onnx_migrate.model.graphs import (
    all_nodes,
    initializer_names,
    initializer_types,
    nested_bodies,
    producers,
)
from onnx_migrate.model.interface import unlist_initializers
from onnx_migrate.model.model import Model
from onnx_migrate.process.deadline import optional_seconds
from onnx_migrate.process.endings import what_helps
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.rewrite.annotations import differ_in_header_alone
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.verdicts.precision_change import PrecisionChange

from ..cleanup import Cleanup
from ..declared_shapes import DeclaredShapes
from .hidden_weights import hide, restore, share_payloads
from .simplification import Simplification
from .values_needed import LEAVE_OUT, Choice, divide
from .widened_weights import hide_casts, put_casts_back

__all__ = ["Simplify", "mend_declarations"]

_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


_MOST_ROUNDS = 4
"""The largest number of runs of onnxsim; the pass stops when a run changes nothing."""


@register_pass
@dataclass(frozen=True)
class Simplify(Pass):
    """Fold constants and, with `fuse`, fuse nodes with onnxsim.

    The pass restores the interface, metadata, functions and everything else that onnxsim drops or adds. If a model has more
    than `values_limit` bytes of weights, onnxsim gets it without them. They are inputs by type and shape, and references again
    afterwards. Only small weights, and those that a fold computes with, are given by value (`values_needed`).

    Raises PassError, code `not-simplified`, in these cases:

    - onnxsim fails or exceeds `limits`.
    - onnxsim returns a model that is larger than its argument by more than `budget` bytes and 10 %.
    """

    name: ClassVar[str] = "simplify"
    title: ClassVar[str] = "simplifying with onnxsim"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset(
        {ModelProperty.VALID_NODES, ModelProperty.DYNAMIC_DIMS}
    )
    optional: ClassVar[bool] = True
    limits: process.Limits = field(default_factory=process.Limits)
    isolated: bool = True
    budget: int = 1 << 20
    values_limit: int = 1 << 27
    """Bytes of weights whose values onnxsim is given at most; it needs about five times their memory."""
    always: bool = True
    """Whether models are simplified that no pass before changed, or changed in the header alone."""
    fuse: bool = True
    """Whether nodes are fused too. Otherwise only nodes that compute constants change.

    Importers recognise nodes by the forms that exporters write. Some importers fail on forms that onnxsim writes, or compute
    wrong numbers. Each runtime has a fusion of its own."""
    fuse_narrow: bool = False
    """Whether BatchNormalization of float16 or bfloat16 is fused into Conv too, which rounds the weights to that type again."""
    fittings: tuple[Pass, ...] = ()
    """Passes that make the result fit the runtimes it is for again, as onnxsim knows nothing of them."""
    unlist: bool = False
    """Whether initializers were listed as inputs for such a runtime alone, and will be again by one of `fittings`."""

    def is_wanted(self, original: Model, model: Model) -> bool:
        """Return whether the model is to be simplified."""
        if self.always:
            return True
        return model.proto != original.proto and not differ_in_header_alone(original, model)

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return the simplified model; weights that onnxsim computed may be in a folder that lives as long as the model.

        Returns `model` itself if onnxsim changes nothing.
        """
        # An initializer that is an input cannot be folded.
        if self.unlist:
            unlist_initializers(model.proto.graph)
        result, noted = model, ChangeLog()
        # Constants that one round folds, and shapes that follow from them, let the next round fold more.
        for _ in range(_MOST_ROUNDS):
            before, result = result, self._simplify(result, noted, fuses_norm=not _was_narrow(log))
            if result is before:
                break
        if result.proto == model.proto:  # the pass restored everything that onnxsim had changed
            result = model
        else:
            simplification = Simplification.of(
                model.proto.graph, result.proto.graph, _inner_growth(model.proto, result.proto)
            )
            log.record_fact("", "", simplification)
            log.note(self.name, "simplified", str(simplification))
        log.notes += dict.fromkeys(noted.notes)
        for fitting in self.fittings:
            result = fitting.run(result, log)
        return result

    def _simplify(self, model: Model, log: ChangeLog, *, fuses_norm: bool) -> Model:
        _refuse_overridable(model.proto)
        self._refuse_endless(model.proto)
        visible = hide_casts(model)
        choice = divide(visible, self.values_limit, fuse=self.fuse)
        require_package("onnxsim", "simplification", "pip install onnxsim", "or leave it out: --no-simplify")
        skeleton = hide(visible, choice.hidden)
        folder = TemporaryFolder()
        fuses_norm = fuses_norm and (self.fuse_narrow or not _has_narrow_batch_norm(skeleton.proto.graph))
        simplified = self._simplified(skeleton, folder.path, choice.hidden_bytes, fuses_norm=fuses_norm)
        Cleanup().run(simplified, ChangeLog())  # onnxsim leaves what it has made dead in sub-graphs
        if _same(simplified, skeleton):
            self._note_unfolded(choice, log)
            return model
        if choice.hidden or visible is not model:
            share_payloads(simplified, model)
            restore(simplified.proto.graph, visible.proto.graph, choice.hidden)
            put_casts_back(simplified.proto.graph, model.proto.graph)
        _graft(simplified.proto, model.proto)
        _move_constants(simplified.proto, model.proto)
        simplified.name, simplified.keepalive = model.name, (folder, model.keepalive)
        self._note_unfolded(choice, log)
        mend_declarations(simplified, model.proto, log, self.name)
        return simplified

    def _refuse_endless(self, proto: onnx.ModelProto) -> None:
        """Raise PassError for a model that onnxsim could not fold within its limits, before it reaches them."""
        from onnx_migrate.facts.running_cost.obstacles import why_not_run

        reason = "onnx's shape inference did not finish" if cannot_propagate() else ""
        obstacle = None if reason else why_not_run(proto, self.limits.memory)
        reason = obstacle.reason if obstacle else reason
        if reason:
            raise PassError(f"onnxsim was not started: {reason}", code="not-simplified", hint=LEAVE_OUT)

    def _simplified(self, skeleton: Model, folder: Path, hidden: int, *, fuses_norm: bool) -> Model:
        """Return the model that onnxsim returns for a model without `hidden` bytes of its weights. Raises PassError."""
        source, result = folder / "model.onnx", folder / "simplified.onnx"
        try:
            with source.open("wb") as file:  # not `save`, which waits for the disk
                files.write(skeleton, file)
        except OSError as error:
            raise SaveError(f"{source}: cannot be written: {error.strerror or error}") from error
        size = _bytes_on_disk(source)
        allowed = int((size + hidden) * 1.1) + self.budget
        ending = process.run(
            "onnx_migrate.passes.onnxsim_child:simplify_file",
            str(source),
            str(result),
            allowed - hidden,
            self.fuse,
            fuses_norm,
            self.isolated,
            limits=replace(self.limits, seconds=optional_seconds(self.limits.seconds)),
            isolated=self.isolated,
        )
        if not isinstance(ending, process.Returned):
            raise PassError(
                f"onnxsim failed: {ending}",
                code="not-simplified",
                hint=(*advice_of(what_helps(ending), tried=False), LEAVE_OUT),
            )
        grown = ending.value + hidden
        if grown > allowed:
            raise PassError(
                f"onnxsim makes the model grow from {size + hidden:,} to {grown:,} bytes; the limit is {allowed:,}. The"
                " folded constants are larger than the nodes that compute them",
                code="not-simplified",
                hint=LEAVE_OUT,
            )
        return files.load(result)

    def _note_unfolded(self, choice: Choice, log: ChangeLog) -> None:
        if choice.unfolded:
            first, others = choice.unfolded[0], len(choice.unfolded) - 1
            more = f" and {others} more" if others else ""
            log.note(
                self.name,
                "not-folded",
                f"nodes that compute with weight {first!r}{more} were not folded: we give onnxsim at most"
                f" {self.values_limit:,} bytes of weights, as it needs five times their memory",
                subject=first,
            )


def _same(simplified: Model, before: Model) -> bool:
    """Return whether nothing was folded or fused: equal nodes, and weights of equal names, types and shapes.

    The weights that nodes hold, as Constants in sub-graphs do, are equal wherever they are stored.
    """
    new, old = simplified.proto.graph, before.proto.graph
    if len(new.node) != len(old.node) or len(new.initializer) != len(old.initializer):
        return False
    # Names, types and shapes are compared without reading data.
    if set(initializer_types(new)) != set(initializer_types(old)):
        return False
    others = [index for index, same in enumerate(map(eq, new.node, old.node)) if not same]
    parts = []
    for model in (simplified, before) if others else ():
        part = onnx.ModelProto()
        part.graph.node.extend(model.proto.graph.node[index] for index in others)
        parts.append(Model(part, model.weights))
    return not parts or files.equal(*parts)


def _was_narrow(log: ChangeLog) -> bool:
    """Return whether the model came to float32 from a narrow type: fused weights would not go back to the same bits."""
    change = log.fact(PrecisionChange, "", "")
    return change is not None and change.type == "float32"


def _has_narrow_batch_norm(graph: onnx.GraphProto) -> bool:
    scales = {node.input[1] for node in graph.node if node.op_type == "BatchNormalization"}
    # Few models have the operator.
    if not scales:
        return False
    types = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    types |= {name: dtype for name, dtype, _ in initializer_types(graph)}
    constants = (node for node in graph.node if node.op_type == "Constant")
    types |= {node.output[0]: attribute.t.data_type for node in constants for attribute in node.attribute}
    return any(types.get(name) in (TensorProto.FLOAT16, TensorProto.BFLOAT16) for name in scales)


def _bytes_on_disk(path: Path) -> int:
    data = path.with_name(path.name + ".data")
    return path.stat().st_size + (data.stat().st_size if data.exists() else 0)


def _refuse_overridable(proto: onnx.ModelProto) -> None:
    initialized = initializer_names(proto.graph)
    name = next((value.name for value in proto.graph.input if value.name in initialized), None)
    if name is not None:
        raise PassError(
            f"onnxsim would fold initializer {name!r}, which is also an input, so that callers can override it",
            code="not-simplified",
            hint=(LEAVE_OUT, Advice("remove it from the inputs")),
        )


def _graft(simplified: onnx.ModelProto, before: onnx.ModelProto) -> None:
    """Make everything but the nodes, weights and shapes of `simplified` equal to `before`, in place."""
    graph = onnx.GraphProto()
    graph.CopyFrom(simplified.graph)
    _put_in_order(graph, before.graph)
    nodes = producers(before.graph)
    simplified.CopyFrom(before)
    for name in ("node", "initializer", "sparse_initializer", "value_info"):
        simplified.graph.ClearField(name)
        getattr(simplified.graph, name).extend(getattr(graph, name))
    _forget_new_symbols(simplified, before)
    alive = initializer_names(graph)
    alive.update(name for node in graph.node for name in node.output)
    alive.update(value.name for value in graph.input)
    # An annotation of a removed value would name nothing.
    notes = [note for note in before.graph.quantization_annotation if note.tensor_name in alive]
    simplified.graph.ClearField("quantization_annotation")
    simplified.graph.quantization_annotation.extend(notes)
    for node in simplified.graph.node:
        old = nodes.get(node.output[0]) if node.output else None
        if old is not None and old.op_type == node.op_type and hasattr(node, "metadata_props"):
            node.ClearField("metadata_props")
            node.metadata_props.extend(old.metadata_props)


def _forget_new_symbols(simplified: onnx.ModelProto, before: onnx.ModelProto) -> None:
    """Remove from value_info the symbolic dims that onnxsim inferred, in place; their lengths follow from the inputs.

    onnxsim or the pass open_dims made up some of their names; other names are those of inputs. For tract, each name is a length
    of its own, which does not fit if a caller gives 1.
    """
    declared = {
        (value.name, axis, dim.dim_param)
        for _, body in nested_bodies(before.graph)
        if isinstance(body, onnx.GraphProto)
        for value in body.value_info
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
    }
    for _, body in nested_bodies(simplified.graph):
        for value in body.value_info if isinstance(body, onnx.GraphProto) else ():
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                # A symbol that the model declared itself stays.
                if dim.dim_param and (value.name, axis, dim.dim_param) not in declared:
                    dim.ClearField("dim_param")


def _move_constants(simplified: onnx.ModelProto, before: onnx.ModelProto) -> None:
    """Make initializers of the new Constants below opset 9 that are no floats: version 1 of Constant holds none, in place."""
    opset = onnx_opset(before.opset_import, ir_version=before.ir_version)
    if opset is None or opset >= 9:
        return
    graph, remaining = simplified.graph, []
    others = {name for node in before.graph.node if node.op_type == "Constant" for name in node.output}
    # An output must be computed by a node.
    others.update(value.name for value in graph.output)
    for node in graph.node:
        value = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if (
            node.op_type != "Constant"
            or value is None
            or node.output[0] in others
            or value.data_type in _FLOATS
        ):
            remaining.append(node)
            continue
        tensor = graph.initializer.add()
        tensor.CopyFrom(value)
        tensor.name = node.output[0]
    del graph.node[:]
    graph.node.extend(remaining)


def _put_in_order(graph: onnx.GraphProto, before: onnx.GraphProto) -> None:
    """Sort constants first, in their order before, and value_info by node: onnxsim reverses both with each run."""
    constant_order = {node.output[0]: index for index, node in enumerate(before.node) if node.output}
    constants = [node for node in graph.node if node.op_type == "Constant"]
    # onnxsim reverses the order, so that two runs would differ.
    constants.sort(key=lambda node: constant_order.get(node.output[0], len(constant_order)))
    nodes = [*constants, *(node for node in graph.node if node.op_type != "Constant")]
    node_order = {name: index for index, node in enumerate(nodes) for name in node.output}
    values = sorted(graph.value_info, key=lambda value: node_order.get(value.name, -1))
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.value_info.extend(values)


def mend_declarations(model: Model, before: onnx.ModelProto, log: ChangeLog, step: str) -> None:
    """Correct the declarations that contradict the simplified graph, in place; the notes bear the name of the step.

    The shape of an If is unknown if the ranks of its two branches differ. A wrong declaration of its output therefore shows
    only after a branch replaced the If. Raises PassError, code `not-simplified`, if a declaration cannot be corrected that did
    not show `before`.
    """
    shape_log = ChangeLog()
    DeclaredShapes().run(model, shape_log)
    for note in shape_log.notes:
        if note.code in ("output-dims", "value-info"):
            log.note(step, note.code, note.message, subject=note.subject, severity=note.severity)
    wrong = _contradiction(model.proto)
    if wrong and not _contradiction(before):
        raise PassError(
            f"the simplified model contradicts itself: {wrong}",
            code="not-simplified",
            hint=(LEAVE_OUT, Advice("a branch that was folded had hidden it: correct the declaration")),
        )


def _contradiction(proto: onnx.ModelProto) -> str:
    """Return the complaint of onnx's inference, or the output whose rank differs from the inferred one; "" if there is none."""
    try:
        inferred = inferred_outputs(proto)
    except CannotMigrate as error:
        return error.reason
    for value in proto.graph.output:
        declared, dims = dims_of(value), inferred.get(value.name)
        if declared is not None and dims is not None and len(declared) != len(dims):
            return f"output {value.name!r} is declared with {len(declared)} dims and has {len(dims)}"
    return ""


def _inner_growth(before: onnx.ModelProto, after: onnx.ModelProto) -> int:
    """Return by how many nodes the bodies inside a model became larger: of branches, loops and functions."""
    old, new = (sum(1 for _ in all_nodes(proto)) - len(proto.graph.node) for proto in (before, after))
    return new - old
