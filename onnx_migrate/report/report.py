"""The report of one migration, as a value and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import onnx

from onnx_migrate._version import __version__
from onnx_migrate.model.change import Change, Note
from onnx_migrate.model.interface import Interface, Port
from onnx_migrate.model.opset import onnx_opset

__all__ = ["SCHEMA_VERSION", "Report", "Side"]

SCHEMA_VERSION = 1
"""Of `Report.as_dict`: rises when a field goes or changes its meaning, not when one is added."""


@dataclass(frozen=True)
class Side:
    """One of the two models: what it imports, what it shows, how large its graph is."""

    opset: int | None
    ir_version: int
    opset_imports: tuple[tuple[str, int], ...]
    nodes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @classmethod
    def of(cls, proto: onnx.ModelProto) -> Side:
        """Describe a model."""
        interface = Interface.of(proto)
        return cls(
            onnx_opset(proto.opset_import, ir_version=proto.ir_version),
            proto.ir_version,
            tuple((item.domain, item.version) for item in proto.opset_import),
            len(proto.graph.node),
            interface.inputs,
            interface.outputs,
        )


@dataclass(frozen=True)
class Report:
    """What a migration changed, node by node, and what its verification found.

    `verification` and `dynamic` are what the verify room returned, as plain dicts; None when it was not asked.
    `seconds` tells how long each stage took.
    """

    model: str
    before: Side
    after: Side
    passes: tuple[str, ...]
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]
    verification: Mapping[str, Any] | None = None
    dynamic: Mapping[str, Any] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        """Say "migrated", or "unchanged" when the result is the model that came."""
        return "migrated" if self.changes or self.notes or self.before != self.after else "unchanged"

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON's types; see `SCHEMA_VERSION`."""
        return {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "onnx-migrate", "version": __version__, "onnx": onnx.__version__},
            "model": self.model,
            "outcome": self.outcome,
            "before": _side(self.before),
            "after": _side(self.after),
            "passes": list(self.passes),
            "changes": [_change(change) for change in self.changes],
            "notes": [asdict(note) for note in self.notes],
            "verification": self.verification,
            "dynamic": self.dynamic,
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }


def _side(side: Side) -> dict[str, Any]:
    return {
        "opset": side.opset,
        "ir_version": side.ir_version,
        "opset_imports": dict(side.opset_imports),
        "nodes": side.nodes,
        "inputs": [_port(port) for port in side.inputs],
        "outputs": [_port(port) for port in side.outputs],
    }


def _port(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "type": port.kind,
        "shape": None if port.shape is None else list(port.shape),
    }


def _change(change: Change) -> dict[str, Any]:
    old, new = change.attributes
    after = change.after
    return {
        "pass": change.step,
        "scope": change.where.scope,
        "node": change.where.node,
        "before": {
            "operator": change.before.op_type,
            "version": change.version_before,
            "inputs": list(change.before.input),
            "attributes": old,
        },
        "after": None
        if after is None
        else {
            "operator": after.op_type,
            "version": change.version_after,
            "inputs": list(after.input),
            "attributes": new,
        },
        "helpers": list(change.emitted),
        "reason": change.reason,
        "exactness": change.exactness.value,
    }
