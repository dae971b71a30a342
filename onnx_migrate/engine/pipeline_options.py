"""What the default pipeline is to do, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from onnx_migrate.isolate import Limits
from onnx_migrate.model.dims.fixed_sizes import FixedDims
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.spec.targets import Lower, Targets

__all__ = ["Opset", "PipelineOptions", "ResizeForm"]

ResizeForm = Literal["auto", "scales", "sizes"]

Opset = int | str | Mapping[str, int | str]
"""An ai.onnx opset, "17+" for 17 or the model's own where that is newer, or "latest"; or one of these for each domain:
{"ai.onnx": 17, "ai.onnx.ml": 3} or "17,ai.onnx.ml=3"."""


@dataclass(frozen=True)
class PipelineOptions:
    """The options of `onnx_migrate.default_pipeline`, which `onnx_migrate.migrate` documents."""

    opset: Opset | None = None
    """None is that of `targets`, or else "17+"; where `ir_version` is given, the opset then stays."""
    targets: Targets | None = None
    """The runtimes that the result is for; they determine the opset, so `opset` may name that of ai.onnx.ml only."""
    lower: Lower = True
    dynamic: DynamicAxes | None = None
    dynamic_batch: bool | str = False
    fix: FixedDims | None = None
    simplify: bool = True
    resize_form: ResizeForm | None = None
    """None is that of `targets`, or else "auto"."""
    resize_intent: bool = False
    keep: frozenset[str] = frozenset()
    keep_initializers_as_inputs: bool = False
    ir_version: int | None = None
    keep_ir: bool = False
    drop_training: bool = False
    limits: Limits = field(default_factory=Limits)
    isolated: bool = True
