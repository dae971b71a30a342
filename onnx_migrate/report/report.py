"""The report of one migration, as a value and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import onnx

from onnx_migrate._version import __version__
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.graphs import weight_tensors
from onnx_migrate.model.interface import Interface, Port
from onnx_migrate.model.tensors import byte_size
from onnx_migrate.report.operator_table import OperatorRow, operator_table
from onnx_migrate.report.request import Request
from onnx_migrate.rewrite.change_log import Change, Note, attribute_texts
from onnx_migrate.rewrite.constant_summary import values_text
from onnx_migrate.rewrite.operator_counts import PassEffect, operator_counts
from onnx_migrate.rewrite.simplification import Simplification
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.schema import signature_at
from onnx_migrate.verdicts import DynamicProof, RuntimeProof, Verdict

__all__ = [
    "AS_DECLARED",
    "GRADES",
    "INEXACT",
    "SCHEMA_VERSION",
    "ModelSummary",
    "Report",
    "change_as_dict",
    "note_as_dict",
    "request_as_dict",
    "summary_as_dict",
]

SCHEMA_VERSION = 1
"""Version of `Report.as_dict`: raised when a field is removed or changes its meaning, not when one is added."""

AS_DECLARED = "runs, and the outputs have the declared shapes"
"""The text for a run at other sizes without a problem."""

INEXACT = {"exact": "", "equivalent": "equal up to rounding", "assumed": "equal under an assumption"}
"""What a reader sees for a change by its exactness; "" for bit-identical results."""

GRADES = {
    "bit-identical": "every output is bit for bit the same",
    "within-rounding": "outputs differ by no more than the runtime's own rounding",
    "within-tolerance": "outputs differ by no more than the tolerance that was given",
}
"""What a reader sees for the grade of a verified result."""


@dataclass(frozen=True)
class ModelSummary:
    """The original or the result: opsets, IR version, number of nodes in all bodies, inputs and outputs.

    `operators` are the nodes by operator, `weight_bytes` the bytes that initializers and constants take.
    """

    opset: int | None
    ir_version: int
    opset_imports: tuple[tuple[str, int], ...]
    nodes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    operators: tuple[tuple[str, int], ...] = ()
    weight_bytes: int = 0

    @classmethod
    def of(cls, proto: onnx.ModelProto) -> ModelSummary:
        """Summarise a model."""
        interface, operators = Interface.of(proto), operator_counts(proto)
        return cls(
            onnx_opset(proto.opset_import, ir_version=proto.ir_version),
            proto.ir_version,
            tuple((item.domain, item.version) for item in proto.opset_import),
            sum(operators.values()),
            interface.inputs,
            interface.outputs,
            tuple(operators.items()),
            sum(map(_bytes, weight_tensors(proto))),
        )


@dataclass(frozen=True)
class Report:
    """What a migration changed, node by node, and the results of its verification.

    `verification` is the verdict on the result, `dynamic` what came of running it at other sizes; None if they were not
    run. `proved_in` has what came of the result in each runtime of `prove_in`. `dims` are the axes of inputs that were made
    dynamic. `simplified` has the operators before and after the simplifier, None if it changed
    nothing. `seconds` holds the duration of each stage. `header_only` is whether the result differs in IR version, imports
    that nothing used and annotations only, so that the graph is unchanged. `request` is what was asked for. `effects` is what
    each pass did to the numbers of nodes. `file_bytes` are the sizes of the model's files before and after, None if the result
    was not written, or a size is not known.
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
    dims: DimPlan = field(default_factory=DimPlan)
    simplified: Simplification | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    header_only: bool = False
    request: Request | None = None
    effects: tuple[PassEffect, ...] = ()
    file_bytes: tuple[int, int] | None = None

    @cached_property
    def operators(self) -> tuple[OperatorRow, ...]:
        """Every operator with its number of nodes before and after, and the steps that changed it."""
        return operator_table(
            dict(self.before.operators), dict(self.after.operators), self.changes, self.effects
        )

    def saved(self, output: str | None, *flags: str) -> Report:
        """Return the report of a result that was written to `output`, with these flags of the command line."""
        if self.request is None:
            return self
        return replace(self, request=replace(self.request, output=output or "", saving=flags))

    def written(self, before: int | None, size: int | None) -> Report:
        """Return the report of a result of which `size` bytes were written, for a model of `before` bytes.

        Weights of a result that stay in their old file are not written: then its size is not known.
        """
        if before is None or size is None or size < self.after.weight_bytes:
            return replace(self, file_bytes=None)
        return replace(self, file_bytes=(before, size))

    @property
    def command(self) -> str | None:
        """The command line that does the same again, None if there is none."""
        ports = (*self.before.inputs, *self.before.outputs)
        return self.request.command(self.model, ports) if self.request else None

    @property
    def verified(self) -> bool:
        """Whether the result was compared with the original, and computes the same."""
        return self.verification is not None and self.verification.verified

    @property
    def outcome(self) -> str:
        """Return "migrated", or "unchanged" when the result equals the original."""
        return "migrated" if self.changes or self.notes or self.before != self.after else "unchanged"

    def __str__(self) -> str:
        return self.text()

    def text(self, *, verbose: bool = False) -> str:
        """Return the report as the command line prints it; `verbose` shows every changed node."""
        from onnx_migrate.report.text import report_text

        return report_text(self, everything=verbose)

    def json(self, *, indent: int | None = 2) -> str:
        """Return `as_dict` as the text of a JSON object."""
        return json.dumps(self.as_dict(), indent=indent)

    def html(self) -> str:
        """Return the report as a page that needs no other file. Raises UsageError without jinja2 ("onnx-migrate[html]")."""
        from onnx_migrate.report.html.render import model_page

        return model_page(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON's types; see `SCHEMA_VERSION`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "onnx-migrate", "version": __version__, "onnx": onnx.__version__},
            "model": self.model,
            "request": request_as_dict(self.request, self.model, self.before),
            "outcome": self.outcome,
            "before": summary_as_dict(self.before),
            "after": summary_as_dict(self.after),
            "operators": [row.as_dict() for row in self.operators],
            "file_bytes": dict(zip(("before", "after"), self.file_bytes, strict=True))
            if self.file_bytes
            else None,
            "passes": list(self.passes),
            "changes": [change_as_dict(change) for change in self.changes],
            "notes": [note_as_dict(note) for note in self.notes],
            "verification": self.verification.as_dict() if self.verification else None,
            "dynamic": self.dynamic.as_dict() if self.dynamic else None,
            "proved_in": [proof.as_dict() for proof in self.proved_in],
            "dims": self.dims.as_dicts(),
            "simplified": self.simplified.as_dict() if self.simplified else None,
            "header_only": self.header_only,
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }


def request_as_dict(request: Request | None, model: str, before: ModelSummary) -> dict[str, Any] | None:
    """Return a request as JSON's types; see `SCHEMA_VERSION`."""
    return request.as_dict(model, (*before.inputs, *before.outputs)) if request else None


def summary_as_dict(summary: ModelSummary) -> dict[str, Any]:
    """Return a summary as JSON's types; see `SCHEMA_VERSION`."""
    return {
        "opset": summary.opset,
        "ir_version": summary.ir_version,
        "opset_imports": dict(summary.opset_imports),
        "nodes": summary.nodes,
        "weight_bytes": summary.weight_bytes,
        "inputs": [_port(port) for port in summary.inputs],
        "outputs": [_port(port) for port in summary.outputs],
    }


def _bytes(tensor: onnx.TensorProto) -> int:
    """Return how many bytes the values of a tensor take; those of texts are counted."""
    size = byte_size(tensor.dims, tensor.data_type)
    return sum(map(len, tensor.string_data)) if size is None else size


def _port(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "type": port.kind,
        "shape": None if port.shape is None else list(port.shape),
    }


def change_as_dict(change: Change) -> dict[str, Any]:
    """Return a change as JSON's types; see `SCHEMA_VERSION`."""
    old, new = change.attributes
    after = change.after
    return {
        "pass": change.pass_name,
        "scope": change.where.scope,
        "node": change.where.node,
        "before": {
            "operator": change.before.op_type,
            "version": change.version_before,
            "domain": change.before.domain,
            "inputs": list(change.before.input),
            "outputs": list(change.before.output),
            "attributes": old,
        },
        "after": None
        if after is None
        else {
            "operator": after.op_type,
            "version": change.version_after,
            "domain": after.domain,
            "inputs": list(after.input),
            "outputs": list(after.output),
            "attributes": new,
        },
        "kept_attributes": change.kept_attributes,
        "helpers": list(change.emitted),
        "helper_nodes": [_helper(node, change) for node in change.helpers],
        "constants": dict(map(_constant, change.serialised_constants)),
        "reason": change.reason,
        "exactness": change.exactness.value,
    }


def note_as_dict(note: Note) -> dict[str, Any]:
    """Return a note as JSON's types; see `SCHEMA_VERSION`."""
    return {
        "step": note.pass_name,
        "code": note.code,
        "message": note.message,
        "subject": note.subject,
        "severity": note.severity,
    }


def _helper(node: onnx.NodeProto, change: Change) -> dict[str, Any]:
    form = signature_at(node.domain, node.op_type, change.opset)
    return {
        "operator": node.op_type,
        "domain": node.domain,
        "version": form.since_version if form else change.opset,
        "inputs": list(node.input),
        "outputs": list(node.output),
        "attributes": attribute_texts(node),
    }


def _constant(summary: bytes) -> tuple[str, dict[str, Any]]:
    """Return the name of a constant, and its type, shape and values as text; no values for a large constant."""
    name, kind, shape, value = _constant_facts(summary)
    return name, {"type": kind, "shape": list(shape), "value": value}


@lru_cache(maxsize=1024)
def _constant_facts(summary: bytes) -> tuple[str, str, tuple[int, ...], str | None]:
    tensor = onnx.TensorProto.FromString(summary)  # cached, because many nodes read the same constants
    known = tensor.data_type in onnx.TensorProto.DataType.values()
    kind = onnx.TensorProto.DataType.Name(tensor.data_type).lower() if known else f"type {tensor.data_type}"
    return tensor.name, kind, tuple(tensor.dims), values_text(tensor)
