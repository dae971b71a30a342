"""The contents of a migration's report: the model before and after, every change, and the results of its verification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Any, Literal, NamedTuple, TypeVar

import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.json_form import Seconds
from onnx_migrate.model.graphs import bodies, stored_weights
from onnx_migrate.model.interface import Interface, Port
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.report.feature_values import SECTIONS, FeatureValues
from onnx_migrate.report.operator_table import OperatorRow, operator_table
from onnx_migrate.report.request import Request
from onnx_migrate.report.result_view import ResultView
from onnx_migrate.reported import Outline, Section
from onnx_migrate.rewrite.change_log import Change, Note
from onnx_migrate.rewrite.operator_counts import PassEffect, operator_counts
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.targets import OperatorKnowledge
from onnx_migrate.verdicts import DynamicProof, RuntimeProof, Verdict

__all__ = ["AS_DECLARED", "INEXACT", "FileBytes", "ModelSummary", "ReportData"]

AS_DECLARED = "runs, and the outputs have the declared shapes"
"""The text for a run at other sizes without a problem."""

INEXACT = {"exact": "", "equivalent": "equal up to rounding", "assumed": "equal under an assumption"}
"""The words that a report shows for each exactness of a change; "" for bit-identical results."""


@dataclass(frozen=True)
class ModelSummary:
    """The original or the result: opsets, IR version, number of nodes in all bodies, inputs and outputs.

    `operators` are the nodes by operator. `weight_bytes` are the bytes of initializers and constants, and `parameters` their
    elements.
    """

    opset: int | None
    ir_version: int
    opset_imports: tuple[tuple[str, int], ...]
    nodes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    operators: tuple[tuple[str, int], ...] = ()
    weight_bytes: int = 0
    parameters: int = 0

    @classmethod
    def of(cls, proto: onnx.ModelProto) -> ModelSummary:
        """Summarise a model."""
        interface, all_bodies = Interface.of(proto), list(bodies(proto))
        # Weights in Constants count like initializers.
        weights = list(chain.from_iterable(stored_weights(all_bodies)))
        operators = operator_counts(all_bodies)
        return cls(
            onnx_opset(proto.opset_import, ir_version=proto.ir_version),
            proto.ir_version,
            tuple((opset_import.domain, opset_import.version) for opset_import in proto.opset_import),
            sum(operators.values()),
            interface.inputs,
            interface.outputs,
            tuple(operators.items()),
            sum(map(_bytes, weights)),
            sum(prod(tensor.dims) for tensor in weights),
        )


class FileBytes(NamedTuple):
    """The sizes of the model's files."""

    before: int
    after: int


_Same = TypeVar("_Same", bound="ReportData")


@dataclass(frozen=True)
class ReportData(FeatureValues):
    """The changes of a migration, node by node, and the results of its verification.

    `verification` is the verdict on the result, and `dynamic` the result of running it at other sizes; None without these runs.
    `proved_in` has the outcome of running the result in each runtime of `prove_in`. `seconds` holds the duration of each stage.
    `header_only` is true if the result differs only in IR version, unused imports and annotations, so that the graph is
    unchanged. `request` holds the options of the migration. `effects` counts the nodes that each pass added and removed. Each
    feature adds values of its own (`FeatureValues`).

    `file_bytes` are the sizes of the model's files before and after. It is None if the result was not written, or a size is
    unknown. For each target runtime, `operators_known` says how we know that it supports the result's operators. `same` is
    true if the result equals the original, weights included. `view` is the part of the result that a page draws, None unless
    `viewed` added it; JSON does not have it.
    """

    model: str
    before: ModelSummary
    after: ModelSummary
    passes: tuple[str, ...]
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]
    verification: Verdict | None = None
    dynamic: DynamicProof | None = None
    proved_in: tuple[RuntimeProof, ...] = ()
    seconds: Mapping[str, Seconds] = field(default_factory=dict)
    header_only: bool = False
    request: Request | None = None
    effects: tuple[PassEffect, ...] = ()
    file_bytes: FileBytes | None = None
    operators_known: tuple[OperatorKnowledge, ...] = ()
    same: bool = False
    view: ResultView | None = field(default=None, repr=False, compare=False)

    @cached_property
    def operators(self) -> tuple[OperatorRow, ...]:
        """Every operator with its number of nodes before and after, and the steps that changed it."""
        return operator_table(
            dict(self.before.operators), dict(self.after.operators), self.changes, self.effects
        )

    @property
    def recorded(self) -> Iterator[tuple[Section, Any]]:
        """The values that passes of features recorded, each with how a report shows it."""
        for section in SECTIONS:
            value = getattr(self, section.name)
            if value is not None:
                yield section, value

    @property
    def outline(self) -> Outline | None:
        """The nodes that a page marks in the graph of the result: those of the first feature that marks any."""
        outlines = (section.outline(value) for section, value in self.recorded if section.outline)
        return next(outlines, None)

    def saved(self: _Same, output: str | None, *flags: str) -> _Same:
        """Return the report of a result saved to `output`, with these flags of the command line."""
        if self.request is None:
            return self
        return replace(self, request=replace(self.request, output=output or "", saving=flags))

    def viewed(self: _Same, result: Model) -> _Same:
        """Return the report with the view of the result, which a page draws."""
        return replace(self, view=ResultView.of(self.changes, result))

    def written(self: _Same, before: int | None, size: int | None) -> _Same:
        """Return the report of a result with `size` written bytes, for a model of `before` bytes.

        Weights of a result that stay in their old file are not written: then the result's size is unknown.
        """
        if before is None or size is None or size < self.after.weight_bytes:
            return replace(self, file_bytes=None)
        return replace(self, file_bytes=FileBytes(before, size))

    @property
    def command(self) -> str | None:
        """The command line that does the same again, None if there is none."""
        ports = (*self.before.inputs, *self.before.outputs)
        return self.request.command(self.model, ports) if self.request else None

    @property
    def verified(self) -> bool:
        """Whether verification compared the result with the original and found them equal."""
        return self.verification is not None and self.verification.verified

    @property
    def left(self) -> tuple[str, ...]:
        """The messages about nodes that a best effort left unchanged."""
        return tuple(note.message for note in self.notes if note.code == "not-fitted")

    @property
    def outcome(self) -> Literal["migrated", "unchanged"]:
        """Return "migrated", or "unchanged" when the result equals the original."""
        return "unchanged" if self.same else "migrated"


def _bytes(tensor: onnx.TensorProto) -> int:
    """Return the size of a tensor's values in bytes, for texts as well."""
    size = byte_size(tensor.dims, tensor.data_type)
    return sum(map(len, tensor.string_data)) if size is None else size
