"""Signatures of all operators at all versions: from onnx.defs of the installed onnx, in tables that are fast to read.

They include the experimental operators that onnx has removed, and operators that ONNX Runtime adds to ai.onnx (see
`unlisted_operators`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import _lru_cache_wrapper, cache
from itertools import pairwise
from typing import Any, TypeVar

import onnx
from onnx import defs

from onnx_migrate.messages import count_of
from onnx_migrate.standard.unlisted_operators import (
    EXPERIMENTAL_OPERATORS,
    RUNTIME_OPERATORS,
    UnlistedOperator,
)

__all__ = [
    "CONTROL_FLOW",
    "ML",
    "RECURRENT",
    "SEQUENCES",
    "Signature",
    "declare_operator",
    "declared_operators",
    "forget_schemas",
    "is_onnx",
    "newest_but_for_types",
    "newest_opset",
    "required_outputs",
    "same_domain",
    "schema_cache",
    "schema_generation",
    "schema_violation",
    "signature",
    "signature_at",
    "versions",
]

T = TypeVar("T")

ML = "ai.onnx.ml"

CONTROL_FLOW = frozenset(("If", "Loop", "Scan"))
"""The operators of ai.onnx that run graphs by a condition or in turns."""

SEQUENCES = frozenset(
    (
        "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct",
        "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence",
    )
)  # fmt: skip
"""The operators that make or read sequences and optionals."""

RECURRENT = frozenset(("GRU", "LSTM", "RNN"))

_declared: dict[tuple[str, str], set[int]] = {}
_caches: list[_lru_cache_wrapper[Any]] = []
_generation = 0


def declare_operator(operator: str, *since_versions: int, domain: str) -> None:
    """Declare in which versions of its domain a custom operator was introduced and changed, where it has no schema.

    Its nodes may then have inputs, outputs and attributes of any number. An operator with a schema (onnx.defs.register_schema)
    needs no declaration, and is checked by that. Raises ValueError for ai.onnx and ai.onnx.ml, and without a version.
    """
    if domain in ("", "ai.onnx", ML):
        raise ValueError(f"{operator} of {domain or 'ai.onnx'} is the standard's, and cannot be declared")
    if not since_versions or min(since_versions) < 1:
        raise ValueError(f"{operator} of {domain} needs the versions in which it was introduced and changed")
    _declared.setdefault((domain, operator), set()).update(since_versions)
    forget_schemas()


def declared_operators() -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the versions of each operator that was declared, by domain and name."""
    return {key: tuple(sorted(version_set)) for key, version_set in _declared.items()}


def schema_cache(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
    """Cache a function whose answers depend on the operators that are known; a decorator."""
    cached = cache(function)
    _caches.append(cached)
    return cached


def forget_schemas() -> None:
    """Drop all answers that depend on the operators that are known, as there are others now."""
    global _generation
    _generation += 1
    for cached in _caches:
        cached.cache_clear()


def schema_generation() -> int:
    """Return a number that is another one after each `forget_schemas`."""
    return _generation


_MAX_ARITY = _MAX_VERSION = 2**31 - 1


def is_onnx(domain: str) -> bool:
    """Return whether `domain` is ai.onnx, which is usually written "" (OperatorSetIdProto in onnx.proto)."""
    return domain in ("", "ai.onnx")


def same_domain(one: str, other: str) -> bool:
    """Return whether two names are those of one domain: ai.onnx has two."""
    return one == other or (is_onnx(one) and is_onnx(other))


@dataclass(frozen=True)
class Signature:
    """One version of an operator: arity, required inputs, attributes and their types (AttributeProto.AttributeType)."""

    name: str
    domain: str
    since_version: int
    deprecated: bool
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    required_inputs: frozenset[int]
    attributes: dict[str, int]
    required_attributes: frozenset[str]
    unchecked: bool = False
    """Whether attributes of any name are allowed."""


_CONSTANT_FORMS = 11
"""The first version of Constant with several attributes for its value, all of them optional in its schema."""

_WITHDRAWN = ("", "GroupNormalization", 18)
"""An operator that its documentation calls deprecated; its schema says so since onnx 1.18."""


@schema_cache
def operators() -> tuple[tuple[str, str], ...]:
    """Return every (domain, operator) that has a signature, sorted."""
    others = [("", operator.name) for operator in (*EXPERIMENTAL_OPERATORS, *RUNTIME_OPERATORS)]
    onnx_operators = ((schema.domain, schema.name) for schema in defs.get_all_schemas_with_history())
    return tuple(sorted({*onnx_operators, *others, *declared_operators()}))


def _schemas(domain: str, name: str) -> Iterator[defs.OpSchema]:
    """Yield the schemas of an operator, the newest first; a list of the schemas of all operators takes 25 ms."""
    version = _MAX_VERSION
    while version > 0 and defs.has(name, version, domain):
        schema = defs.get_schema(name, version, domain)
        yield schema
        version = schema.since_version - 1


@schema_cache
def _signatures(domain: str, name: str) -> tuple[tuple[int, ...], tuple[Signature, ...]]:
    """Return the versions of an operator and its signatures, ascending; nothing for an unknown one."""
    forms = [_of_schema(schema) for schema in _schemas(domain, name)]
    for operator in (*EXPERIMENTAL_OPERATORS, *RUNTIME_OPERATORS) if not domain else ():
        if operator.name == name and all(form.since_version > 1 for form in forms):
            forms.extend(_of_unlisted(operator, {form.since_version for form in forms}))
    listed_versions = {form.since_version for form in forms}
    declared = declared_operators().get((domain, name), ())
    forms.extend(_of_custom(domain, name, version) for version in declared if version not in listed_versions)
    forms.sort(key=lambda form: form.since_version)
    return tuple(form.since_version for form in forms), tuple(forms)


def _of_schema(schema: defs.OpSchema) -> Signature:
    single = defs.OpSchema.FormalParameterOption.Single
    return Signature(
        schema.name,
        schema.domain,
        schema.since_version,
        schema.deprecated or (schema.domain, schema.name, schema.since_version) == _WITHDRAWN,
        schema.min_input,
        schema.max_input,
        schema.min_output,
        schema.max_output,
        frozenset(index for index, formal in enumerate(schema.inputs) if formal.option == single),
        {name: _kind(attribute.type) for name, attribute in schema.attributes.items()},
        frozenset(name for name, attribute in schema.attributes.items() if attribute.required),
    )


def _of_unlisted(operator: UnlistedOperator, listed: set[int]) -> Iterator[Signature]:
    """Yield the signatures of an operator without a schema; `listed` are the versions of its name that have a schema.

    One signature is of version 1, and another is of the opset at which a step may rewrite it. A deprecated one is of the
    opset that removed it, unless that opset has a standard operator of the name.
    """
    (low, high), (few, many) = operator.inputs, operator.outputs
    required = frozenset(operator.attributes) if operator.required else frozenset()
    form = Signature(
        operator.name, "", 1, False, low, high, few, many, frozenset(range(low)), operator.attributes, required,
        operator.unchecked,
    )  # fmt: skip
    yield form
    if operator.step_at:
        yield replace(form, since_version=operator.step_at)
    if operator.removed_in and operator.removed_in not in listed:
        yield replace(form, since_version=operator.removed_in, deprecated=True)


def _of_custom(domain: str, name: str, version: int) -> Signature:
    """Return the signature of an operator with known versions and nothing else known."""
    any_number = (0, _MAX_ARITY)
    return Signature(
        name, domain, version, False, *any_number, *any_number, frozenset(), {}, frozenset(), unchecked=True
    )


def _kind(kind: Any) -> int:
    """Return an attribute type of onnx.defs, an enum of its C++ module, as an AttributeProto.AttributeType."""
    return int(kind.value)


def _key(domain: str, operator: str) -> tuple[str, str]:
    return ("" if domain == "ai.onnx" else domain, operator)


def versions(domain: str, operator: str) -> tuple[int, ...]:
    """Return every since_version of an operator, ascending; empty if the installed onnx does not know it."""
    return _signatures(*_key(domain, operator))[0]


def signature(domain: str, operator: str, since_version: int) -> Signature:
    """Return the signature of an operator that was introduced or changed in `since_version`.

    Raises ValueError for an unknown operator, and for another version.
    """
    numbers, forms = _signatures(*_key(domain, operator))
    return forms[numbers.index(since_version)]


@schema_cache
def signature_at(domain: str, operator: str, opset: int) -> Signature | None:
    """Return the signature that an opset has of an operator; None if it is unknown or newer than the opset."""
    numbers, forms = _signatures(*_key(domain, operator))
    index = bisect_right(numbers, opset) - 1
    return forms[index] if index >= 0 else None


def newest_opset(domain: str = "") -> int:
    """Return the newest opset of a domain, by default ai.onnx, in the installed onnx; 0 for an unknown domain."""
    if is_onnx(domain):
        return int(defs.onnx_opset_version())
    return max((version for key in operators() if key[0] == domain for version in versions(*key)), default=0)


def schema_violation(node: onnx.NodeProto, form: Signature) -> str | None:
    """Return how a node violates an operator's signature, as a message without subject; None if it is valid.

    Checks deprecation, arity, required inputs, and the names, types and presence of attributes. These are the checks of
    `onnx.checker.check_node` (OpSchema::Verify in onnx/defs/schema.cc), without the cost of a serialisation per node.
    """
    if form.deprecated:
        return f"{form.name} was removed from the standard in version {form.since_version}"
    inputs = node.input[:]
    # Trailing empty names stand for omitted inputs.
    count = len(inputs)
    while count and not inputs[count - 1]:
        count -= 1
    if len(inputs) > form.max_inputs:  # in this case omitted inputs at the end count too
        count = len(inputs)
    if not form.min_inputs <= count <= form.max_inputs:
        input_span = _span(form.min_inputs, form.max_inputs)
        return f"has {count_of(count, 'input')}, but {form.name}-{form.since_version} takes {input_span}"
    # A gap in the middle is rare, so the loop runs only for those nodes.
    if "" in inputs:
        for index in form.required_inputs:
            if index < len(inputs) and not inputs[index]:
                return f"omits input {index}, which {form.name}-{form.since_version} requires"
    outputs = len(node.output)
    if not form.min_outputs <= outputs <= form.max_outputs:
        own = _span(form.min_outputs, form.max_outputs)
        return f"has {count_of(outputs, 'output')}, but {form.name}-{form.since_version} has {own}"
    # A custom operator without a schema may have any attributes.
    if form.unchecked:
        return None
    form_attributes, required = form.attributes, form.required_attributes
    present = 0
    for attribute in node.attribute[:]:
        name = attribute.name
        kind = form_attributes.get(name)
        if kind is None:
            return f"has an attribute {name!r}, which {form.name}-{form.since_version} does not have"
        stated = attribute.type
        if stated != kind and stated:
            wanted = onnx.AttributeProto.AttributeType.Name(kind)
            actual_type = onnx.AttributeProto.AttributeType.Name(stated)
            return f"has attribute {name!r} of type {actual_type}, but {form.name}-{form.since_version} takes {wanted}"
        # Counting is enough here; the missing names are looked up only for the message.
        if name in required:
            present += 1
    if present < len(required):
        missing = sorted(required - {attribute.name for attribute in node.attribute})
        return f"lacks attribute {', '.join(map(repr, missing))}, which {form.name}-{form.since_version} requires"
    # The schema cannot express that exactly one of several attributes is given.
    if form.since_version >= _CONSTANT_FORMS and form.name == "Constant" and len(node.attribute) != 1:
        return f"has {count_of(len(node.attribute), 'attribute')}, and a Constant has exactly one, which is its value"
    return None


@schema_cache
def required_outputs(domain: str, operator: str) -> frozenset[int]:
    """Return the places of the outputs that an operator has in each of its versions; neither optional nor variadic ones."""
    single = defs.OpSchema.FormalParameterOption.Single
    always_present: frozenset[int] | None = None
    for schema in _schemas("" if is_onnx(domain) else domain, operator):
        # An output that is optional in one version may be missing in a model.
        own = frozenset(index for index, output in enumerate(schema.outputs) if output.option == single)
        always_present = own if always_present is None else always_present & own
    return always_present or frozenset()


@schema_cache
def newest_but_for_types(domain: str, operator: str, version: int) -> int:
    """Return the newest version of an operator that differs from `version` in element types only, as Relu-14 from Relu-6.

    Their schemas have the same texts, attributes, inputs and outputs.
    """
    schemas = list(_schemas("" if is_onnx(domain) else domain, operator))[::-1]
    newest = version
    for older, newer in pairwise(schemas):
        if older.since_version == newest and not newer.deprecated and _texts(older) == _texts(newer):
            newest = newer.since_version
    return newest


def _texts(schema: defs.OpSchema) -> tuple[object, ...]:
    """Return all parts of a schema except element types."""
    attributes = [
        (name, own.type, own.required, str(own.default_value), " ".join(own.description.split()))
        for name, own in sorted(schema.attributes.items())
    ]
    formal = [
        (own.name, own.option, " ".join(own.description.split())) for own in (*schema.inputs, *schema.outputs)
    ]
    return " ".join((schema.doc or "").split()), attributes, formal


def _span(low: int, high: int) -> str:
    if high >= _MAX_ARITY:
        return f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"
