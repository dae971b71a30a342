"""The pass that leaves no open dim: it folds shape arithmetic, declares shapes that onnx does not infer, and reports the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.facts.shape_arithmetic import LARGEST
from onnx_migrate.facts.shapes import dims_of, dims_text, set_dims
from onnx_migrate.messages import count_of
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import CONTROL_FLOW, SEQUENCES

from ..input_dims import open_axes
from .fold import fold_shapes
from .open_sizes import OpenSize, is_open, open_sizes

__all__ = ["StaticShapes"]

_SHOWN = 10
"""How many nodes a refusal names."""


_PLAIN = Advice(
    "give --no-control-flow too, which writes such nodes with plain ones", options={"control_flow": False}
)
_WAYS_OUT = (
    Advice("limit the size in the model, as described for each node"),
    Advice("--best-effort writes the rest", options={"best_effort": True}),
)


@register_pass
@dataclass(frozen=True)
class StaticShapes(Pass):
    """Give every value of a model with fixed inputs a fixed shape.

    The pass folds values of up to 1,024 elements that follow from fixed dims and constants. Larger values, for example the
    numbers of a Range over an image, are still computed at run time. The pass declares shapes that it knows and that onnx's
    inference does not find. Nodes whose output sizes depend on data are one common error, code `open-size`.
    """

    name: ClassVar[str] = "static_shapes"
    title: ClassVar[str] = "computing fixed shapes"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    lenient: bool = False
    """Whether sizes that depend on data give a warning instead of an error, and models with open inputs stay unchanged."""

    judged: bool = True
    """Whether the pass reports sizes that depend on data."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place. Raises CannotMigrate, code `open-size`."""
        if self.lenient and open_axes(model.proto.graph):
            return model
        # Shapes inside functions differ from call to call.
        inline_functions(model)
        folded = fold_shapes(model)
        if folded.operators:
            kinds = ", ".join(f"{count} {name}" for name, count in folded.operators.most_common())
            log.note(
                self.name,
                "folded-shapes",
                f"folded {count_of(folded.operators.total(), 'node')}, by fixed dims and constants of up to"
                f" {LARGEST:,} elements: {kinds}",
            )
        open_nodes = self._declare(model, folded.scope, log)
        if self.judged:
            self._judge(open_nodes, log)
        return model

    def _declare(self, model: Model, known: Scope, log: ChangeLog) -> list[OpenSize]:
        """Declare shapes that `known` has and onnx does not infer; return the nodes whose output sizes stay open."""
        inferred = _main_scope(model)
        declared = changed = 0
        for own, inferred_scope in zip(known.nested(), inferred.nested(), strict=True):
            outputs = {value.name: value for value in own.body.output if not isinstance(value, str)}
            for name in (name for node in own.body.node for name in node.output if name):
                type_ = own.value_type(name)
                if type_.dtype is None or type_.shape is None or None in type_.shape:
                    continue
                # An output's declaration is corrected, not added.
                if name in outputs:
                    changed += _set_output(outputs[name], type_.shape, self.name, log)
                elif is_open(inferred_scope.value_type(name)) and isinstance(own.body, onnx.GraphProto):
                    own.body.value_info.append(
                        onnx.helper.make_tensor_value_info(name, type_.dtype, type_.shape)
                    )
                    declared += 1
        if declared:
            log.note(
                self.name,
                "value-info",
                f"declared the shapes of {count_of(declared, 'value')}, which onnx does not infer",
            )
        opset = onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version) or 1
        return list(open_sizes(_main_scope(model) if declared or changed else inferred, opset))

    def _judge(self, found: list[OpenSize], log: ChangeLog) -> None:
        if not found:
            log.note(self.name, "static", "every value has a fixed shape, by onnx's inference of the result")
            return
        texts = [open_size.text for open_size in found[:_SHOWN]]
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        if self.lenient:
            for open_size in found:
                # A lenient pass reports and goes on.
                log.note(
                    self.name, "open-size", open_size.text, subject=open_size.where.node, severity="warning"
                )
            return
        written = any(open_size.where.operator in CONTROL_FLOW | SEQUENCES for open_size in found)
        raise CannotMigrate(
            f"sizes depend on data at {count_of(len(found), 'node')}: {'; '.join(texts)}{more}",
            code="open-size",
            where=found[0].where,
            hint=(*([_PLAIN] if written else []), *_WAYS_OUT),
        )


def _main_scope(model: Model) -> Scope:
    return scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version)[0]


def _set_output(value: onnx.ValueInfoProto, shape: tuple[int | None, ...], name: str, log: ChangeLog) -> bool:
    """Declare the dims of a graph's output; return whether they were others before."""
    before = dims_of(value)
    if not value.type.HasField("tensor_type") or before == shape:
        return False
    set_dims(value, shape)
    text = f"output {value.name}: {dims_text(before)} → {dims_text(shape)}"
    log.note(name, "fixed-dims", text, subject=value.name)
    return True
