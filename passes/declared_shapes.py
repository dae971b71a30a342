"""The pass that compares declared shapes with inferred ones, and corrects those that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import onnx

from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.shapes import (
    Dims,
    InferredOutputs,
    contradict,
    dims_of,
    dims_text,
    inferred_graph,
    set_dims,
)
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.resize import lengths_differ

__all__ = ["DeclaredShapes"]

Shapes = Callable[[str], Dims | None]
"""The inferred dims of a value, by its name."""


@register_pass
@dataclass(frozen=True)
class DeclaredShapes(Pass):
    """Correct outputs, and remove value_info, whose dims contradict those inferred from the inputs.

    Runtimes warn about such a declaration, and `onnx.checker.check_model(full_check=True)` refuses the model. The pass leaves
    lengths that onnx infers differently from runtimes. For a Resize, onnx multiplies length and scale in double precision and
    runtimes do so in single precision. For many scales the two results differ by one.
    """

    name: ClassVar[str] = "declared_shapes"
    title: ClassVar[str] = "checking declared shapes"

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Correct `model` in place."""
        graph, inferred_before = model.proto.graph, log.fact(InferredOutputs, "", "")
        if inferred_before is not None and inferred_before.confirms(graph):
            return model
        try:
            inferred = inferred_graph(model.proto)
        except CannotMigrate as error:
            log.note(
                self.name,
                error.code,
                f"declared shapes were not checked, because shape inference failed: {error.reason}",
                severity="warning",
            )
            return model
        # Inputs and outputs are not in value_info.
        ends = {value.name: value for value in (*inferred.input, *inferred.output)}

        @cache
        def inner() -> dict[str, onnx.ValueInfoProto]:
            return {value.name: value for value in inferred.value_info}

        def found(name: str) -> Dims | None:
            value = ends.get(name) or inner().get(name)
            return None if value is None else dims_of(value)

        outputs = [value for value in graph.output if contradict(dims_of(value), found(value.name))]
        idle = {value.name for value in graph.value_info if contradict(dims_of(value), found(value.name))}
        if not outputs and not idle:
            return model
        # A wrong inferred shape must not replace a right declared one.
        doubtful = _doubtful(model, found)
        if doubtful is not None:
            log.note(
                self.name,
                "shapes-in-doubt",
                f"declared shapes were not corrected: for Resize {doubtful.name or doubtful.output[0]!r}, onnx infers"
                " another length than runtimes compute",
                subject=doubtful.name,
            )
            return model
        for value in outputs:
            declared, dims = dims_of(value) or (), found(value.name) or ()
            set_dims(value, _merged(declared, dims))
            log.note(
                self.name,
                "output-dims",
                f"output {value.name}: declared {dims_text(declared)}, corrected to {dims_text(dims_of(value))}",
                subject=value.name,
                severity="warning",
            )
        if idle:
            remaining = [value for value in graph.value_info if value.name not in idle]
            del graph.value_info[:]
            graph.value_info.extend(remaining)
            log.note(
                self.name,
                "value-info",
                f"removed {len(idle)} declared shapes of inner values that contradict the graph",
            )
        return model


def _scales_of(node: onnx.NodeProto) -> str:
    """Return the input that holds scales: the third from Resize-11 on, the second of Resize-10 and Upsample-9; else ""."""
    if node.op_type not in ("Resize", "Upsample") or not 2 <= len(node.input) <= 4:
        return ""
    return node.input[1 if len(node.input) == 2 else 2]


def _merged(declared: Dims, dims: Dims) -> Dims:
    """Return the inferred dims, with the declared symbol where none was inferred."""
    if len(declared) != len(dims):
        return dims
    return tuple(
        new if new is not None else (old if isinstance(old, str) else None)
        for old, new in zip(declared, dims, strict=True)
    )


def _doubtful(model: Model, found: Shapes) -> onnx.NodeProto | None:
    """Return a node whose lengths differ between single and double precision, None if there is none."""
    resizes = [(name, node) for node in model.proto.graph.node if (name := _scales_of(node))]
    names = {name for name, _ in resizes}
    holders = [tensor for tensor in model.proto.graph.initializer if tensor.name in names]
    values = {tensor.name: model.weights.array(tensor) for tensor in holders}
    for node in model.proto.graph.node:
        if node.op_type == "Constant" and node.output[0] in names and node.attribute[0].name == "value":
            values[node.output[0]] = model.weights.array(node.attribute[0].t)
    for name, node in resizes:
        dims, value = found(node.input[0]), values.get(name)
        # The node is not valid.
        if dims is None or value is None or len(dims) != value.size:
            continue
        pairs = zip(dims, value.reshape(-1), strict=True)
        # onnx computes in float64, and runtimes in float32.
        if any(isinstance(size, int) and lengths_differ(size, scale) for size, scale in pairs):
            return node
    return None
