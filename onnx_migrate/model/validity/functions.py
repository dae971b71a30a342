"""Checks functions and imports: each function is defined once and not recursive, and each used domain is imported.

Source: onnx/docs/IR.md, "Functions" and "Operator Sets"; onnx.proto, comments of FunctionProto and opset_import.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import TypeVar

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import (
    FunctionKey,
    bodies,
    called,
    default_graphs,
    function_key,
    function_nodes,
    function_path,
    nested_nodes,
)
from onnx_migrate.model.validity.fault import Fault, where_of
from onnx_migrate.standard.schema import is_onnx

__all__ = ["callees_first", "defaults_inside_first", "function_faults", "import_faults"]

_FIRST_WITH_IMPORTS = 3
"""The first IR version whose models have opset imports (onnx/docs/Versioning.md)."""


def function_faults(proto: onnx.ModelProto) -> Iterator[Fault]:
    """Yield the faults of the set of local functions: two of one key, and those that call themselves."""
    functions: dict[FunctionKey, onnx.FunctionProto] = {}
    for function in proto.functions:
        key = function_key(function)
        if key in functions:
            yield Fault(
                code="duplicate-function",
                reason=f"two functions are called {function.domain}:{function.name}",
                where=Where(function_path(function)),
                hint="remove or rename one of them",
            )
        functions[key] = function
    calls = {
        key: {called(node) for node in function_nodes(function)} & functions.keys()
        for key, function in functions.items()
    }
    if functions:
        yield from _call_faults(proto, functions)
    # A function that is not reached in this order calls itself.
    fine = set(callees_first(calls))
    for key in functions:
        if key not in fine:
            yield Fault(
                code="recursive-function",
                reason="the function calls itself, directly or through another function",
                where=Where(function_path(functions[key])),
                hint="remove the call: the standard has no recursion",
            )
    for function in proto.functions:
        # Default graphs may refer to other defaults of the function.
        own = {attribute for attribute, _, _ in default_graphs(function)}
        for name in sorted(own.difference(defaults_inside_first(function))):
            yield Fault(
                code="recursive-function",
                reason=f"the default graph of its attribute {name!r} contains itself, directly or through another",
                where=Where(function_path(function)),
                hint="write the graph where a node refers to it: the standard has no recursion",
            )


def _call_faults(proto: onnx.ModelProto, functions: dict[FunctionKey, onnx.FunctionProto]) -> Iterator[Fault]:
    """Yield a fault for each call with more inputs or outputs than its function has, or an attribute of another type.

    Fewer inputs and outputs are allowed.
    """
    types = {
        key: {
            attribute.ref_attr_name: attribute.type
            for node in function_nodes(function)
            for attribute in node.attribute
            if attribute.ref_attr_name and attribute.type
        }
        for key, function in functions.items()
    }
    for located in bodies(proto):
        for node in located.body.node:
            function = functions.get(called(node))
            # Only calls of local functions have such limits.
            if function is None:
                continue
            for kind, actual, formal in (
                ("input", node.input, function.input),
                ("output", node.output, function.output),
            ):
                if len(actual) > len(formal):
                    reason = f"it has {count_of(len(actual), kind)}, and its function has {len(formal)}"
                    yield Fault("invalid-node", reason, where_of(located.path, node), "correct the call")
            for attribute in node.attribute:
                # An attribute that the function does not use may have any type.
                wanted = types[called(node)].get(attribute.name, attribute.type)
                if attribute.type and attribute.type != wanted:
                    label = onnx.AttributeProto.AttributeType.Name
                    reason = f"it has {attribute.name!r} of type {label(attribute.type)}, and its function uses {label(wanted)}"
                    yield Fault("invalid-node", reason, where_of(located.path, node), "correct the call")


def callees_first(calls: Mapping[FunctionKey, Collection[FunctionKey]]) -> list[FunctionKey]:
    """Return the functions in an order in which each follows its callees; `calls` has the callees of each function.

    Skips functions that call themselves, and functions that call a skipped one.
    """
    return _after_those(calls)


Key = TypeVar("Key", bound=Hashable)


def _after_those(needs: Mapping[Key, Collection[Key]]) -> list[Key]:
    """Return the keys in an order in which each follows the keys it needs, without keys on a cycle and keys that need them."""
    needed = {key: set(others) & needs.keys() for key, others in needs.items()}
    followers: dict[Key, list[Key]] = {key: [] for key in needs}
    for key, others in needed.items():
        for other in others:
            followers[other].append(key)
    waiting = {key: len(others) for key, others in needed.items()}
    order = [key for key, count in waiting.items() if not count]
    for key in order:  # grows while it is walked
        for follower in followers[key]:
            waiting[follower] -= 1
            if not waiting[follower]:
                order.append(follower)
    return order


def defaults_inside_first(function: onnx.FunctionProto) -> list[str]:
    """Return the attributes whose defaults are graphs, each after those that its graph refers to.

    Skips attributes whose graphs contain themselves.
    """
    inside: dict[str, set[str]] = {}
    for name, _, graph in default_graphs(function):
        read = {attribute.ref_attr_name for node in nested_nodes(graph.node) for attribute in node.attribute}
        inside.setdefault(name, set()).update(read)
    return _after_those(inside)


def import_faults(proto: onnx.ModelProto) -> Iterator[Fault]:
    """Yield a fault for each import of an opset that does not exist, and each body that uses a domain not imported."""
    imported_domains: set[str] = set()
    for located in bodies(proto):
        owner = located.owner
        if not located.key:  # the bodies inside it follow
            yield from _impossible(owner, located.path)
            imported_domains = {"" if is_onnx(entry.domain) else entry.domain for entry in owner.opset_import}
        # These IR versions have no imports.
        if owner is proto and proto.ir_version < _FIRST_WITH_IMPORTS:
            continue
        used = {domain for domain, _ in located.operators}
        missing = {domain for domain in used if ("" if is_onnx(domain) else domain) not in imported_domains}
        # Only a body with such a domain needs the search for its node.
        for node in located.body.node if missing else ():
            if node.domain in missing:
                missing.discard(node.domain)
                domain = node.domain or "ai.onnx"
                yield Fault(
                    code="domain-not-imported",
                    reason=f"its domain {domain} is not imported, so the version of the operator is not known",
                    where=where_of(located.path, node),
                    hint="add the domain and its version to opset_import",
                )


def _impossible(owner: onnx.ModelProto | onnx.FunctionProto, path: str) -> Iterator[Fault]:
    for entry in owner.opset_import:
        if is_onnx(entry.domain) and entry.version < 1:
            yield Fault(
                code="no-such-import",
                reason=f"it imports opset {entry.version} of ai.onnx, which does not exist",
                where=Where(path),
                hint="set the version that the model was written for",
            )
