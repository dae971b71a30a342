"""Local functions in the forms of older IR versions: without default values of attributes, and without overloads."""

from __future__ import annotations

from onnx import FunctionProto, ModelProto, NodeProto

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.model.graphs import all_nodes, bodies, called, function_key, function_path, node_label

__all__ = ["merge_overloads", "write_defaults"]


def write_defaults(proto: ModelProto, target: int) -> int:
    """Write the default values of functions' attributes at every call that leaves them out; return how many there were.

    Raises CannotMigrate if that would change a call. This is a call that passes on an attribute of the calling function, if
    that attribute has no default there and is not always given.
    """
    functions = {function_key(function): function for function in proto.functions}
    defaults = {
        key: {default.name: default for default in function.attribute_proto}
        for key, function in functions.items()
        if function.attribute_proto
    }
    written = 0
    # Calls may be in functions and sub-graphs, too.
    for located in bodies(proto):
        for node in located.body.node:
            for name, default in defaults.get(called(node), {}).items():
                stated = next((attribute for attribute in node.attribute if attribute.name == name), None)
                if stated is None:
                    node.attribute.add().CopyFrom(default)
                    written += 1
                elif stated.ref_attr_name:
                    _check_handed_on(proto, located.owner, node, located.path, stated.ref_attr_name, target)
    for function in functions.values():
        function.attribute.extend(default.name for default in function.attribute_proto)
        del function.attribute_proto[:]
    return written


def _check_handed_on(
    proto: ModelProto, owner: ModelProto | FunctionProto, node: NodeProto, path: str, name: str, target: int
) -> None:
    if not isinstance(owner, FunctionProto) or any(default.name == name for default in owner.attribute_proto):
        return
    key = function_key(owner)
    for call in all_nodes(proto):
        # A call without the attribute would have no value to pass on.
        if called(call) == key and all(attribute.name != name for attribute in call.attribute):
            raise CannotMigrate(
                f"IR version {target} has no default values of functions' attributes, and this"
                f" call of {function_path(owner)} does not set {name!r}: {node_label(call)!r}",
                code="no-such-ir",
                where=Where(path, node_label(node), node.op_type),
                hint=f"write {name!r} at every call of the function",
            )


def merge_overloads(proto: ModelProto) -> int:
    """Give functions that differ by their overload names of their own, also where they are called; return how many."""
    # Older IR versions know functions by domain and name alone.
    used_names = {(function.domain, function.name) for function in proto.functions}
    new: dict[tuple[str, str, str], str] = {}
    for function in proto.functions:
        if function.overload:
            name, number = f"{function.name}_{function.overload}", 0
            while (function.domain, f"{name}_{number}" if number else name) in used_names:
                number += 1
            name = f"{name}_{number}" if number else name
            used_names.add((function.domain, name))
            new[function_key(function)] = name
    for node in all_nodes(proto):
        key = called(node)
        if key in new:
            node.op_type = new[key]
            node.ClearField("overload")
    for function in proto.functions:
        key = function_key(function)
        if key in new:
            function.name = new[key]
            function.ClearField("overload")
    return len(new)
