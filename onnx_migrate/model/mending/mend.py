"""Repairs a model in place. tests/model/validity/test_broken_models.py has measured models for each rule.

ONNX Runtime reads the main graph itself: Constants and initializers in its own way. It checks other nodes with
onnx.checker, together with their sub-graphs. It reads a local function when a node calls it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import onnx

from onnx_migrate.model.graphs import bodies, function_path, nested_nodes
from onnx_migrate.model.legality import node_faults
from onnx_migrate.model.mending.attributes import mend_attributes
from onnx_migrate.model.mending.constants import Place, mend_constants
from onnx_migrate.model.mending.declarations import mend_declarations
from onnx_migrate.model.mending.names import mend_names
from onnx_migrate.model.mending.tensors import Mending, mend_initializers
from onnx_migrate.model.uncalled_functions import uncalled_alone
from onnx_migrate.model.validity.structure import Length, name_faults, structure_faults
from onnx_migrate.model.validity.tensors import Array
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx, newest_opset

__all__ = ["mend"]

_ASSUMED = {"com.microsoft": 1, "com.microsoft.nchwc": 1}
"""The domains that ONNX Runtime treats as imported, each with the newest version it has; ai.onnx and ai.onnx.ml are extra."""

_NEEDED = frozenset(
    (
        "recursive-function",
        "duplicate-function",
        "domain-not-imported",
        "no-such-import",
        "output-not-produced",
    )
)
"""Codes of faults for which ONNX Runtime refuses a function even if no node calls it."""


def mend(proto: onnx.ModelProto, length: Length, array: Array) -> list[Mending]:
    """Repair a model in place, and return the repairs. Parts without a meaning to ONNX Runtime stay unchanged.

    `length` and `array` are those of `structure_faults`. Reads no weights, except sparse tensors with a repeated index.
    """
    return list(
        chain(
            _named(proto), _uncalled(proto, length, array), _imports(proto), _contents(proto, length, array)
        )
    )


def _named(proto: onnx.ModelProto) -> Iterator[Mending]:
    """Repair names. If two nodes produce one value, the nodes have no order; a later check refuses such a model."""
    yield from mend_names(proto, ordered=all(fault.code != "not-ssa" for fault in name_faults(proto)))


def _contents(proto: onnx.ModelProto, length: Length, array: Array) -> Iterator[Mending]:
    for located in bodies(proto):
        body, inner = located.body, bool(located.key)
        location: Place = "sub-graph" if inner else "function" if located.owner is not proto else "graph"
        yield from mend_constants(body, location, array)
        if isinstance(body, onnx.GraphProto):
            if location == "graph":
                yield from mend_initializers(body, length, array, proto.ir_version)
            yield from mend_declarations(body, main=location == "graph")
        opset = onnx_opset(located.owner.opset_import, ir_version=proto.ir_version) or 0
        yield from mend_attributes(body, opset, array, repeated=location == "function")


def _uncalled(proto: onnx.ModelProto, length: Length, array: Array) -> Iterator[Mending]:
    alone = uncalled_alone(proto)
    # A called function is part of the model, so its faults are errors.
    if not alone.functions:
        return
    faults = [*structure_faults(alone, length, array), *node_faults(alone)]
    needed_scopes = {fault.where.scope for fault in faults if fault.code in _NEEDED and fault.where}
    gone = {
        fault.where.scope: fault for fault in faults if fault.where and fault.where.scope not in needed_scopes
    }
    for function in [candidate for candidate in proto.functions if function_path(candidate) in gone]:
        proto.functions.remove(function)
        yield Mending(
            function.name,
            f"{function_path(function)} was removed, as no node calls it and it is not valid:"
            f" {gone[function_path(function)].reason}",
        )


def _imports(proto: onnx.ModelProto) -> Iterator[Mending]:
    """Add the imports that the main graph lacks, at the versions that ONNX Runtime assumes if there is any import."""
    if not proto.opset_import:
        return
    imported_domains = {"" if is_onnx(entry.domain) else entry.domain for entry in proto.opset_import}
    used = {"" if is_onnx(node.domain) else node.domain for node in nested_nodes(proto.graph.node)}
    for entry in proto.opset_import:
        if is_onnx(entry.domain) and entry.version == 0 and "" not in used:
            entry.version = 1
            yield Mending("model", "the import of opset 0 of ai.onnx, which no node uses, became opset 1")
    functions = {function.domain for function in proto.functions}
    for domain in sorted(used - imported_domains - functions):
        version = _ASSUMED.get(domain, 0)
        if domain in ("", "ai.onnx.ml"):
            from onnx_migrate.standard.targets import resolve  # few models need it

            version = min(newest_opset(domain), (resolve("onnxruntime").opset or 1) if not domain else 99)
        if version:
            proto.opset_import.add(domain=domain, version=version)
            yield Mending(
                "model",
                f"it has nodes of {domain or 'ai.onnx'} and no import of it: version {version} was imported",
            )
