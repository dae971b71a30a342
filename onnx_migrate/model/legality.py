"""Legality: whether every node is valid at the opset that its body imports, in form, values and types."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import onnx

from onnx_migrate.errors import IllegalModel, Where
from onnx_migrate.model.graphs import LocatedBody, bodies, called, function_key, node_label, operator_of
from onnx_migrate.model.validity.fault import Fault, Problem
from onnx_migrate.model.validity.node_types import type_faults
from onnx_migrate.standard.allowed_values import restricted_attributes, value_violation
from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.schema import Signature, same_domain, schema_violation, signature_at

__all__ = ["check_legal", "node_faults"]


def check_legal(proto: onnx.ModelProto, domain: str = "") -> None:
    """Raise IllegalModel for the first node that is not valid at its body's opset, InvalidModel for a value that none has.

    Checks the nodes of `domain`, by default ai.onnx, in the main graph, all sub-graphs and local functions; calls of
    local functions are not checked. Types are compared in all domains that the installed onnx knows.
    """
    for fault in chain(node_faults(proto, domain), type_faults(proto)):
        if fault.code == "no-such-value":  # no pass writes one, so the model had it
            raise fault.error()
        raise IllegalModel(fault.reason, where=fault.where)


def node_faults(proto: onnx.ModelProto, domain: str = "") -> Iterator[Fault]:
    """Yield the faults in the form and values of the nodes of a domain, by default ai.onnx."""
    functions = {function_key(function) for function in proto.functions}
    for located in bodies(proto):
        # The domain may have another version in each function.
        opset = _opset(located, proto.ir_version, domain)
        nodes, checked_operators = (
            located.body.node,
            [key for key in located.operators if same_domain(key[0], domain)],
        )
        forms = {key: None if opset is None else signature_at(*key, opset) for key in checked_operators}
        restricted = {key for key in checked_operators if restricted_attributes(*key)}
        for node, key in zip(nodes, map(operator_of, nodes), strict=True):
            # A call of a local function follows the function's signature, not that of an operator of the same
            # name.
            if key not in forms or (functions and called(node) in functions):
                continue
            problem = _problem(node, forms[key], opset, domain, values=key in restricted)
            if problem:
                where = Where(located.path, node_label(node), node.op_type, opset)
                yield Fault(problem.code, problem.reason, where)


def _problem(
    node: onnx.NodeProto, form: Signature | None, opset: int | None, domain: str, *, values: bool
) -> Problem | None:
    if opset is None:
        reason = f"is in a graph or function that does not import {domain or 'ai.onnx'}"
        return Problem(code="domain-not-imported", reason=reason)
    if form is None:
        return Problem(code="invalid-node", reason=f"is not an operator of opset {opset}")
    # The form comes first, because the values depend on it.
    complaint = schema_violation(node, form)
    if complaint:
        return Problem(code="invalid-node", reason=complaint)
    complaint = value_violation(node, opset) if values else None
    return Problem(code="no-such-value", reason=complaint) if complaint else None


def _opset(located: LocatedBody, ir_version: int, domain: str) -> int | None:
    imports = located.owner.opset_import
    return imported(imports, domain) if domain else onnx_opset(imports, ir_version=ir_version)
