"""Changes to the structure of a model: fields of any message, references between nodes, imports, functions, tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import AttributeProto, TensorProto, helper

from tests.campaigns.fuzz.values import NAMES, ODD_NAMES

__all__ = ["is_repeated", "messages", "mutate"]

_INTEGERS = (0, 1, -1, 2, 3, 7, 13, 18, 99, 127, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
_SMALL = tuple(number for number in _INTEGERS if -(2**31) <= number < 2**31)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"), -float("inf"))
_TEXTS = (
    *ODD_NAMES,
    *NAMES,
    "ai.onnx",
    "com.microsoft",
    "local",
    "SAME_UPPER",
    "linear",
    "Relu",
    "Loop",
    "Split",
    "location",
)


def mutate(rng: Random, model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model with one to three changes."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice((_any_field, _any_field, rng.choice(_CHANGES)))
        change(rng, changed)
    return changed


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field holds a list; an older protobuf has no property that says so, and `label` is deprecated."""
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def messages(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if is_repeated(field) else (value,):
                yield from messages(item)


def _choose(rng: Random, model: onnx.ModelProto) -> Message:
    """Return any message, each kind as often as another, so that the few imports are not lost among the nodes."""
    kinds: dict[str, list[Message]] = {}
    for message in messages(model):
        kinds.setdefault(message.DESCRIPTOR.name, []).append(message)
    return rng.choice(kinds[rng.choice(sorted(kinds))])


def _any_field(rng: Random, model: onnx.ModelProto) -> None:
    """Change any field of any message: clear it, set it to something odd, repeat, drop or swap its items."""
    message = _choose(rng, model)
    present = [field for field, _ in message.ListFields()]
    field = rng.choice(present if present and rng.random() < 0.7 else message.DESCRIPTOR.fields)
    if is_repeated(field):
        _change_items(rng, model, message, field)
    elif field.message_type is not None:
        if rng.random() < 0.5:
            message.ClearField(field.name)
        else:
            _adopt(rng, model, getattr(message, field.name))
    elif rng.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(rng, model, field, getattr(message, field.name)))


def _adopt(rng: Random, model: onnx.ModelProto, target: Message) -> None:
    """Make a message a copy of another one of its kind; an empty one if there is none."""
    others = [
        message
        for message in messages(model)
        if message.DESCRIPTOR is target.DESCRIPTOR and message is not target
    ]
    target.SetInParent()
    if others:
        copy = type(target)()
        copy.CopyFrom(rng.choice(others))
        target.CopyFrom(copy)


def _change_items(rng: Random, model: onnx.ModelProto, message: Message, field: FieldDescriptor) -> None:
    items = getattr(message, field.name)
    action = rng.choice(("drop", "repeat", "swap", "set", "add", "clear"))
    if not items or action == "add":
        if field.message_type is not None:
            _adopt(rng, model, items.add())
        else:
            items.append(_scalar(rng, model, field, None))
        return
    place = rng.randrange(len(items))
    if action == "drop":
        del items[place]
    elif action == "clear":
        message.ClearField(field.name)
    elif field.message_type is not None:
        copy = type(items[place])()
        copy.CopyFrom(items[place])
        if action == "swap":
            other = rng.randrange(len(items))
            items[place].CopyFrom(items[other])
            items[other].CopyFrom(copy)
        else:
            items.append(copy)
    elif action == "repeat":
        items.append(items[place])
    elif action == "swap":
        other = rng.randrange(len(items))
        items[place], items[other] = items[other], items[place]
    else:
        items[place] = _scalar(rng, model, field, items[place])


def _scalar(rng: Random, model: onnx.ModelProto, field: FieldDescriptor, current: Any) -> Any:
    """Return a value for a field that is no message."""
    kind = field.cpp_type
    if kind in (FieldDescriptor.CPPTYPE_INT64,):
        return rng.choice(_INTEGERS)
    if kind == FieldDescriptor.CPPTYPE_UINT64:
        return rng.choice((0, 1, 2**64 - 1, 2**63))
    if kind in (FieldDescriptor.CPPTYPE_INT32,):
        return rng.choice((*_SMALL, *range(1, 30)))
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    if kind in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice(_FLOATS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        data = bytes(current or b"")
        cut = rng.randrange(len(data) + 1)
        return rng.choice(
            (data[:cut], data + b"\0", data * 2, b"", b"\xff\xfe", data[:cut] + b"\xff" + data[cut + 1 :])
        )
    return rng.choice(_texts(model)) if rng.random() < 0.6 else rng.choice(_TEXTS)


def _texts(model: onnx.ModelProto) -> list[str]:
    found = [
        name for node in _nodes(model) for name in (*node.input, *node.output, node.op_type, node.domain)
    ]
    return found + [value.name for value in (*model.graph.input, *model.graph.initializer)] or [""]


def _nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [message for message in messages(model) if isinstance(message, onnx.NodeProto)]


def _tensors(model: onnx.ModelProto) -> list[TensorProto]:
    return [message for message in messages(model) if isinstance(message, TensorProto)]


def _node(rng: Random, model: onnx.ModelProto) -> onnx.NodeProto:
    return rng.choice(_nodes(model) or [onnx.NodeProto()])


def _tensor(rng: Random, model: onnx.ModelProto) -> TensorProto:
    return rng.choice(_tensors(model) or [TensorProto()])


def _reference(rng: Random, model: onnx.ModelProto) -> None:
    """Let a node read something else: a value of its own, of a later node, of another body, or none."""
    node = _node(rng, model)
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(
            (*node.output, "", "nowhere", *_texts(model)[:20])
        )


def _written(rng: Random, model: onnx.ModelProto) -> None:
    node = _node(rng, model)
    if node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(("", *_texts(model)))


def _operator(rng: Random, model: onnx.ModelProto) -> None:
    node = _node(rng, model)
    schemas = sorted({schema.name for schema in onnx.defs.get_all_schemas()})
    node.op_type = rng.choice((*schemas, "", "Unknown", "relu", "If", "Loop"))


def _attribute_kind(rng: Random, model: onnx.ModelProto) -> None:
    """Give an attribute a value of another kind, or both kinds, or a reference."""
    found = [message for message in messages(model) if isinstance(message, AttributeProto)]
    if not found:
        return
    attribute = rng.choice(found)
    value = rng.choice((1, -1, 1.5, "x", [1], [1.0], ["x"], [2**62] * 3))
    made = helper.make_attribute(attribute.name, value)
    if rng.random() < 0.2:
        made.ref_attr_name = attribute.name
    if rng.random() < 0.2:
        made.type = rng.randint(0, 14)
    if rng.random() < 0.2:
        attribute.MergeFrom(made)
    else:
        attribute.CopyFrom(made)


def _tensor_data(rng: Random, model: onnx.ModelProto) -> None:
    tensor = _tensor(rng, model)
    rng.choice((
        lambda: tensor.dims.append(rng.choice(_INTEGERS)),
        lambda: tensor.ClearField("dims"),
        lambda: setattr(tensor, "raw_data", tensor.raw_data + b"\0"),
        lambda: setattr(tensor, "raw_data", tensor.raw_data[:-1]),
        lambda: tensor.float_data.append(1.0),
        lambda: tensor.int32_data.append(rng.choice((-1, 70000, 2))),
        lambda: tensor.string_data.append(b"\xff"),
        lambda: setattr(tensor, "data_type", rng.choice((*range(28), 99, -1))),
        lambda: tensor.segment.SetInParent(),
        lambda: setattr(tensor, "name", rng.choice(_TEXTS)),
    ))()  # fmt: skip


def _external(rng: Random, model: onnx.ModelProto) -> None:
    """Let a tensor refer to a file of external data that is not there, or not inside the folder."""
    tensor = _tensor(rng, model)
    tensor.data_location = rng.choice((TensorProto.EXTERNAL, TensorProto.EXTERNAL, TensorProto.DEFAULT))
    if rng.random() < 0.7:
        tensor.ClearField("raw_data")
    location = rng.choice(
        (
            "w.bin",
            "",
            ".",
            "/etc/passwd",
            "../x",
            "a/../../b",
            "memory",
            "model.onnx",
            "x\0y",
            "é",
            "*/w",
            "x" * 300,
        )
    )
    tensor.external_data.add(key="location", value=location)
    for key in ("offset", "length", "checksum", "unknown"):
        if rng.random() < 0.4:
            tensor.external_data.add(
                key=key, value=rng.choice(("0", "-1", "4", "1e3", "", " 8", str(2**63), "٣", "0x10"))
            )


def _imports(rng: Random, model: onnx.ModelProto) -> None:
    item = rng.choice([*model.opset_import] or [model.opset_import.add()])
    rng.choice((
        lambda: setattr(item, "version", rng.choice((0, -1, 1, 6, 7, 13, 21, 28, 29, 99, 2**31, 2**63 - 1, -(2**63)))),
        lambda: model.opset_import.append(helper.make_opsetid(item.domain, rng.choice((item.version, item.version + 1, 0)))),
        lambda: model.opset_import.append(helper.make_opsetid(rng.choice(("ai.onnx", "", "local", "ai.onnx.ml", "\n")), 3)),
        lambda: setattr(item, "domain", rng.choice(("ai.onnx", "", "AI.ONNX", "x y", "é"))),
        lambda: model.ClearField("opset_import"),
        lambda: setattr(model, "ir_version", rng.choice((0, -1, 1, 2, 3, 5, 14, 15, 99, 2**63 - 1))),
    ))()  # fmt: skip


def _functions(rng: Random, model: onnx.ModelProto) -> None:
    """Add a function that repeats another, calls itself, or has the name of an operator."""
    imports = [*model.opset_import]
    name = rng.choice(("Relu", "F", "Block", "Add", ""))
    domain = rng.choice(("", "ai.onnx", "local", "f"))
    calls = rng.choice((name, "Relu", "G"))
    node = helper.make_node(calls, ["a"], ["b"], domain=domain if calls != "Relu" else "")
    made = helper.make_function(domain, name, ["a"], ["b"], [node], imports)
    for _ in range(rng.choice((1, 1, 2))):
        model.functions.append(made)
    if rng.random() < 0.5:
        model.functions.add().CopyFrom(helper.make_function(domain, "G", ["a"], ["b"], [
            helper.make_node(name, ["a"], ["b"], domain=domain)], imports))  # fmt: skip
    if rng.random() < 0.7:
        node = _node(rng, model)
        node.op_type, node.domain = name, domain
    if rng.random() < 0.8 and all(item.domain != domain for item in imports):
        model.opset_import.append(helper.make_opsetid(domain, 1))


def _dims(rng: Random, model: onnx.ModelProto) -> None:
    found = [message for message in messages(model) if isinstance(message, onnx.TensorShapeProto.Dimension)]
    if found:
        dim = rng.choice(found)
        if rng.random() < 0.5:
            dim.dim_param = rng.choice(_TEXTS)
        else:
            dim.dim_value = rng.choice((0, -1, 1, 2, 1000, 2**31, 2**40, 2**63 - 1))


def _order(rng: Random, model: onnx.ModelProto) -> None:
    """Swap two nodes, so that one may read what is only written later."""
    nodes = model.graph.node
    if len(nodes) > 1:
        a, b = rng.sample(range(len(nodes)), 2)
        copy = onnx.NodeProto()
        copy.CopyFrom(nodes[a])
        nodes[a].CopyFrom(nodes[b])
        nodes[b].CopyFrom(copy)


def _nested(rng: Random, model: onnx.ModelProto) -> None:
    """Put the graph into a branch of an If in a branch of an If, and so on."""
    graph = model.graph
    if not graph.output:
        return
    for _ in range(rng.choice((1, 2, 5, 15))):
        inner = onnx.GraphProto()
        inner.CopyFrom(graph)
        del inner.input[:]
        del graph.node[:]
        graph.node.append(helper.make_node("If", ["deep"], [value.name for value in graph.output], then_branch=inner,
                                           else_branch=inner))  # fmt: skip
        if len(graph.SerializeToString()) > 200_000:
            break
    graph.initializer.append(helper.make_tensor("deep", TensorProto.BOOL, [], [True]))


def _emptied(rng: Random, model: onnx.ModelProto) -> None:
    rng.choice((
        lambda: model.graph.ClearField("node"), lambda: model.graph.ClearField("output"), lambda: model.graph.ClearField("input"),
        lambda: model.graph.ClearField("initializer"), lambda: model.graph.Clear(), lambda: model.ClearField("graph"),
        lambda: model.graph.ClearField("name"), lambda: model.ClearField("functions"),
    ))()  # fmt: skip


_CHANGES: tuple[Callable[[Random, onnx.ModelProto], None], ...] = (
    _reference, _reference, _written, _operator, _attribute_kind, _attribute_kind, _tensor_data, _tensor_data, _external,
    _imports, _imports, _functions, _dims, _order, _nested, _emptied,
)  # fmt: skip
