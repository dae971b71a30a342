"""Checks the operators, attributes and values that a table names against the standard, ONNX Runtime and the other tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from onnx import AttributeProto, defs

from onnx_migrate.errors import require_onnxruntime
from onnx_migrate.messages import did_you_mean
from onnx_migrate.standard.allowed_values import allowed_values
from onnx_migrate.standard.schema import Signature, newest_opset, signature, versions
from onnx_migrate.standard.targets.rows import FaultRow, KernelRow, OperatorSupport, Range, Table, Values
from onnx_migrate.standard.toml_rows import WrongRow
from onnx_migrate.standard.unlisted_operators import EXPERIMENTAL_OPERATORS, RUNTIME_OPERATORS

__all__ = ["check_names"]

_DOMAINS = ("", "com.microsoft", "ai.onnx.ml")
"""The domains whose operators are known."""

_KINDS: Mapping[int, tuple[str, tuple[type, ...]]] = {
    int(AttributeProto.INT): ("whole numbers", (int,)),
    int(AttributeProto.FLOAT): ("numbers", (int, float)),
    int(AttributeProto.STRING): ("texts", (str,)),
    int(AttributeProto.INTS): ("lists", (tuple,)),
    int(AttributeProto.FLOATS): ("lists", (tuple,)),
    int(AttributeProto.STRINGS): ("lists", (tuple,)),
}
"""By attribute type: the word for its values in messages, and the Python types of these values in a table."""


def check_names(table: Table, others: Iterable[Table]) -> None:
    """Raise WrongRow for a name in a row on operators that none of its domain has; `others` are tables that are right.

    They know operators that are newer than the installed onnx, and those of com.microsoft.
    """
    operators_by_domain = _known(tuple(others))
    for at, own in enumerate(table.operators, 1):
        # Only these rows name inputs.
        for name in own.names if own.constant_inputs else ():
            _check_inputs(f"{table.file}: [[operator]] {at}", own.domain, name, own.constant_inputs)
    rows: list[tuple[str, OperatorSupport | FaultRow | KernelRow]] = [
        *((f"[[operator]] {at}", row) for at, row in enumerate(table.operators, 1)),
        *((f"[[fault]] {at}", row) for at, row in enumerate(table.faults, 1)),
        *((f"[[kernel]] {at}", row) for at, row in enumerate(table.kernels, 1)),
    ]
    for row_label, row in rows:
        for name in row.names:
            wrong = _unknown(name, row.domain, operators_by_domain)
            wrong = wrong or next(_of_attributes(row.domain, name, row.attributes), None)
            if wrong is not None:
                raise WrongRow(
                    f"{table.file}: {row_label} ({row.names[0]}): {wrong[0]}", wrong[1], placed=True
                )


def _check_inputs(place: str, domain: str, operator: str, inputs: Iterable[str]) -> None:
    schemas = defs.get_all_schemas_with_history()
    # Inputs got other names over the versions; a row may use any of them.
    input_names = {
        parameter.name
        for form in schemas
        if (form.domain, form.name) == (domain, operator)
        for parameter in form.inputs
    }
    listed = f"it has {', '.join(sorted(input_names))}" if input_names else "no schema lists them"
    for name in inputs:
        if name not in input_names:
            hint = did_you_mean(name, input_names) or listed
            raise WrongRow(f"{place} ({operator}): {operator} has no input {name!r}", hint, placed=True)


@cache
def _known(others: tuple[Table, ...]) -> Mapping[str, frozenset[str]]:
    """Return the operators of the domains that are known."""
    operators_by_domain: dict[str, set[str]] = {
        "": {unlisted.name for unlisted in (*EXPERIMENTAL_OPERATORS, *RUNTIME_OPERATORS)}
    }
    for schema in defs.get_all_schemas():
        operators_by_domain.setdefault(schema.domain, set()).add(schema.name)
    for table in others:
        for row in table.operators:
            operators_by_domain.setdefault(row.domain, set()).update(row.names)
    return {domain: frozenset(names) for domain, names in operators_by_domain.items()}


@cache
def _of_onnxruntime() -> frozenset[str]:
    """Return the operators of com.microsoft with a schema in the installed ONNX Runtime, even if it has no kernel for them.

    Raises UsageError if ONNX Runtime is not installed.
    """
    require_onnxruntime("the check of a row on com.microsoft", "or leave the row out")
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    return frozenset(schema.name for schema in get_all_operator_schema() if schema.domain == "com.microsoft")


def _unknown(name: str, domain: str, known: Mapping[str, frozenset[str]]) -> tuple[str, str] | None:
    names = known.get(domain, frozenset())
    # The schemas of ONNX Runtime are read only if a name is not found without them.
    if domain == "com.microsoft" and name not in names:
        names |= _of_onnxruntime()
    if name in names or domain not in _DOMAINS:
        return None
    elsewhere = next((other for other in _DOMAINS if name in known.get(other, ())), None)
    hint = (
        f'it is of another domain: domain = "{elsewhere or "ai.onnx"}"'
        if elsewhere is not None
        else did_you_mean(name, names)
    )
    return f"{domain or 'ai.onnx'} has no operator {name!r}", hint


def _of_attributes(domain: str, operator: str, attributes: Mapping[str, Values]) -> Iterator[tuple[str, str]]:
    """Yield the problems of the attributes that a row names for an operator, with a hint; an unknown operator may have any."""
    forms = [signature(domain, operator, version) for version in versions(domain, operator)]
    # Nothing is known about the attributes of such operators.
    if not forms or any(form.unchecked for form in forms):
        return
    attribute_names = {name for form in forms for name in form.attributes}
    for name, values in attributes.items():
        if name not in attribute_names:
            yield (
                f"{operator} has no attribute {name!r}",
                did_you_mean(name, attribute_names) or f"it has {', '.join(sorted(attribute_names))}",
            )
            continue
        yield from _of_values(domain, forms, name, values)


def _of_values(
    domain: str, forms: list[Signature], attribute: str, values: Values
) -> Iterator[tuple[str, str]]:
    operator = forms[-1].name
    kind_name, types = _KINDS.get(forms[-1].attributes.get(attribute, 0), ("", (object,)))
    allowed = {
        value
        # A value that any opset allows is no mistake.
        for opset in range(1, newest_opset() + 1)
        for value in allowed_values(domain, operator, attribute, opset) or ()
    }
    if isinstance(values, Range):
        if not {int, float, tuple}.intersection(types):
            yield f"the values of {operator}'s {attribute} are {kind_name}, which have no range", ""
        return
    for value in values:
        if not isinstance(value, types):
            yield f"the values of {operator}'s {attribute} are {kind_name}, not {value!r}", ""
        elif allowed and value not in allowed:
            hint = did_you_mean(str(value), allowed) or f"it is one of {', '.join(sorted(allowed))}"
            yield f"{operator}'s {attribute} is never {value!r}", hint
