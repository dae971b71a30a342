"""Writes nodes in the forms that the importers of targets want, and lists initializers as inputs for targets that need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import onnx
from onnx import defs

from onnx_migrate.advice import FIX_DIMS, Hint
from onnx_migrate.engine.fitting_passes import FittingPass
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.engine.steps.decompose_model import body_scopes
from onnx_migrate.engine.steps.node_steps import where_of
from onnx_migrate.engine.steps.step_visitor import StepVisitor
from onnx_migrate.errors import CannotMigrate, MigrateError, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import all_nodes, bodies
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.rewrite.older_ir.initializers import list_all_initializers
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.standard.targets import Target, Targets

from ..left import leave_or_raise
from ..quantized.quantized_as_pairs import WITH_SCALES, write_out_softmax, write_scales_as_pairs
from .axes_from_the_front import OPERATORS_WITH_AXES, count_axes_from_the_front
from .channel_blocks import BROADCAST, write_channels_apart
from .forms import (
    OPERATORS_WITH_KERNELS,
    OPERATORS_WITH_SCALES,
    STANDARD_RANKS,
    read_from_constant,
    read_scales_from_constants,
    write_bias_last,
    write_default_attributes,
    write_default_axis,
    write_dequantizers_apart,
    write_kernel_shape,
    write_lowercase_labels,
    write_pads,
    write_quantized_constant,
    write_split_lengths,
    write_squeezed_axes,
    write_standard_ranks,
    write_summed_shape,
    write_vectors_apart,
    write_zero_point,
)
from .gates import write_gates_apart
from .gelu import halve_gelu_first, halve_gelu_last
from .global_pools import POOLS, write_global_pool
from .symmetric_zero_points import write_int8_zero_point
from .true_shapes import declare_true_shapes

__all__ = ["FitForms"]

Write = Callable[[LoweringRewriter], "str | None"]


@dataclass(frozen=True)
class _Form:
    """The function that writes a form, the operators it is for (None is all), and whether a node without it is an error."""

    write: Write
    operators: frozenset[str] | None
    refused: bool = False
    hint: Hint = FIX_DIMS
    """Advice for the user if a node without the form is an error."""

    def concerns(self, node: onnx.NodeProto) -> bool:
        """Return whether a node is to have the form."""
        return is_onnx(node.domain) and (self.operators is None or node.op_type in self.operators)


_FORMS: Mapping[str, _Form] = {
    "bias_last": _Form(write_bias_last, frozenset(("Add",))),
    "kernel_shape": _Form(write_kernel_shape, frozenset(OPERATORS_WITH_KERNELS), True),
    "explicit_pads": _Form(write_pads, frozenset(("AveragePool", "Conv", "MaxPool"))),
    "constant_scales": _Form(read_scales_from_constants, OPERATORS_WITH_SCALES, True),
    "squeezed_axes": _Form(write_squeezed_axes, frozenset(("Squeeze",))),
    "int8_zero_points": _Form(
        write_int8_zero_point,
        frozenset(("QuantizeLinear", "DequantizeLinear")),
        True,
        "quantize the model again, to int8 with zero points of 0",
    ),
    "split_lengths": _Form(write_split_lengths, frozenset(("Split",))),
    "non_negative_axes": _Form(count_axes_from_the_front, OPERATORS_WITH_AXES),
    "lowercase_labels": _Form(write_lowercase_labels, frozenset(("Einsum",)), True),
    "vectors_apart": _Form(write_vectors_apart, frozenset(("Add", "Gather", "LayerNormalization", "PRelu"))),
    "global_pools": _Form(write_global_pool, frozenset(POOLS)),
    "gelu_halved_last": _Form(halve_gelu_last, frozenset(("Mul",))),
    "gelu_halved_first": _Form(halve_gelu_first, frozenset(("Mul",))),
    "channels_apart": _Form(write_channels_apart, BROADCAST),
    "gates_apart": _Form(write_gates_apart, frozenset(("Mul", "Div"))),
    "pairs_for_scales": _Form(write_scales_as_pairs, WITH_SCALES),
    "quantized_constants": _Form(write_quantized_constant, frozenset(("QuantizeLinear",))),
    "softmax_written_out": _Form(write_out_softmax, frozenset(("Softmax",))),
    "standard_ranks": _Form(write_standard_ranks, frozenset(STANDARD_RANKS)),
    "dequantizers_apart": _Form(
        write_dequantizers_apart, frozenset(("Add", "Conv", "ConvTranspose", "Gemm", "MatMul"))
    ),
    "zero_points": _Form(write_zero_point, frozenset(("QuantizeLinear", "DequantizeLinear"))),
    "summed_shapes": _Form(write_summed_shape, frozenset(("Reshape",))),
    "default_axes": _Form(write_default_axis, frozenset(("Softmax", "LogSoftmax"))),
    "default_attributes": _Form(write_default_attributes, None),
}
"""The forms in the order in which the pass writes them: the defaults come last."""


@register_pass
@dataclass(frozen=True)
class FitForms(FittingPass):
    """Write what the importers of the targets want spelled out: kernel_shape, axes from the front, defaults, and others.

    A second run changes nothing. onnx-migrate refuses a node on which an importer would fail, code `target-form`. If the
    importer need not fail, a warning names the missing form, code `form-kept`.
    """

    name: ClassVar[str] = "fit_forms"
    title: ClassVar[str] = "writing nodes in the form of the target runtime"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    targets: Targets
    best_effort: bool = False
    """Whether a form that cannot be written is warned of, not refused."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place."""
        proto = model.proto
        forms = {name: form for name, form in _FORMS.items() if name in self.targets.write}
        wanted = self.targets.wants_constants
        if any(
            # Most models need no form.
            node.op_type in wanted or any(form.concerns(node) for form in forms.values())
            for node in all_nodes(proto)
        ):
            visitor = _Visitor(
                proto, log, self.name, targets=self.targets, forms=forms, lenient=self.best_effort
            )
            driver = Driver(visitor)
            for scope, (_, version) in zip(body_scopes(model), body_opsets(proto), strict=True):
                if version is not None:
                    driver.body(scope, version)
            # Replaced nodes may have been the last readers.
            remove_dead_values(proto, driver.dead_values)
        if "initializers_as_inputs" in self.targets.write:
            self._list_initializers(proto, log)
        if "no_inner_symbols" in self.targets.write:
            self._drop_symbols(proto, log)
        if "true_shapes" in self.targets.write:
            for name in declare_true_shapes(model, inner="true_inner_shapes" in self.targets.write):
                log.note(
                    self.name,
                    "shape-declared",
                    f"declared the real number of axes of {name!r}, because {_who(self.targets, 'true_shapes')} needs it",
                    subject=name,
                )
        return model

    def _drop_symbols(self, proto: onnx.ModelProto, log: ChangeLog) -> None:
        """Drop the declared shapes of inner values that have open dims: an importer that gets the sizes infers them itself.

        If an input has open dims, all declared shapes of inner values are dropped. Those without open dims may come from
        outputs whose sizes are those of one run.
        """
        dropped, open_inputs = 0, any(map(_is_open, proto.graph.input))
        # Sub-graphs have declarations, too.
        for located in bodies(proto):
            declared = located.body.value_info
            closed_values = [] if open_inputs else [value for value in declared if not _is_open(value)]
            if len(closed_values) < len(declared):
                dropped += len(declared) - len(closed_values)
                del declared[:]
                declared.extend(closed_values)
        if dropped:
            log.note(
                self.name,
                "symbols-dropped",
                f"removed the declared shapes of {count_of(dropped, 'inner value')}, because"
                f" {_who(self.targets, 'no_inner_symbols')} cannot combine them with the sizes that you give it",
            )

    def _list_initializers(self, proto: onnx.ModelProto, log: ChangeLog) -> None:
        if proto.graph.sparse_initializer:
            return  # IR versions that need the listing have no sparse initializers; other versions leave these unchanged
        listed, moved = list_all_initializers(proto)
        if listed or moved:
            log.note(
                self.name,
                "listed",
                f"added {count_of(listed, 'initializer')} to the inputs, because"
                f" {_who(self.targets, 'initializers_as_inputs')} needs them there",
            )


@dataclass
class _Visitor(StepVisitor):
    """Applies the forms to the nodes that they concern."""

    targets: Targets = field(kw_only=True)
    forms: Mapping[str, _Form] = field(kw_only=True)
    lenient: bool = field(kw_only=True)

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the opset for a node that a form concerns."""
        concerned = node.op_type in self.targets.wants_constants
        concerned = concerned or any(form.concerns(node) for form in self.forms.values())
        return opset if concerned and not self.calls_function(node) else None

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> LoweringRewriter:
        """Write the forms of a node. Raises CannotMigrate, code `target-form`."""
        where = where_of(node, scope, version)
        rw = self.rewriter(node, scope, where, version)
        concerned = {name: form for name, form in self.forms.items() if form.concerns(node)}
        for name, form in concerned.items():
            obstacle = form.write(rw)
            if obstacle is not None:
                self._report(name, form, where, obstacle)
        wanted = self.targets.constant_inputs(node.domain, node.op_type)
        if wanted:
            self._read_constants(rw, where, wanted)
        # The reason names the runtimes that need the form.
        if rw.reasons:
            who = [str(target) for target in self.targets if not target.row.write.isdisjoint(concerned)]
            who = list(dict.fromkeys([*who, *map(str, wanted.values())]))
            rw.reasons[:] = [f"{', '.join(rw.reasons)}, for {' and '.join(who)}"]
        rw.finish()
        return rw

    def _read_constants(self, rw: LoweringRewriter, where: Where, wanted: Mapping[str, Target]) -> None:
        """Make constants of the inputs that must be constant for a target. Raises CannotMigrate, code `target-lacks`."""
        names = [
            parameter.name
            for parameter in defs.get_schema(rw.node.op_type, rw.version, rw.node.domain).inputs
        ]
        for name, target in wanted.items():
            obstacle = read_from_constant(rw, names.index(name), name) if name in names else None
            if obstacle is not None:
                reason = f"{target} takes {rw.node.op_type} with constant {name}, and {obstacle}"
                self._refuse(reason, where, code="target-lacks")

    def handle_refusal(self, error: MigrateError) -> None:
        """Raise the error."""
        raise error

    def _refuse(self, reason: str, where: Where, *, code: str, hint: Hint = _Form.hint) -> None:
        error = CannotMigrate(reason, code=code, where=where, hint=hint)
        leave_or_raise(error, self.log, self.pass_name, best_effort=self.lenient)

    def _report(self, name: str, form: _Form, where: Where, obstacle: str) -> None:
        who = _who(self.targets, name)
        if form.refused:
            self._refuse(
                f"{obstacle}, and {who} does not take it so", where, code="target-form", hint=form.hint
            )
            return
        self.log.note(
            self.pass_name,
            "form-kept",
            f"{where}: {obstacle}; {who} needs that as an explicit value",
            subject=where.node,
            severity="warning",
        )


def _is_open(value: onnx.ValueInfoProto) -> bool:
    return any(not dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim)


def _who(targets: Targets, form: str) -> str:
    return " and ".join(str(target) for target in targets if form in target.row.write)
