"""The types of an operator's inputs and outputs, from onnx.defs of the installed onnx."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onnx import defs

from onnx_migrate.standard.schema import is_onnx, schema_cache

__all__ = ["Constraints", "Formal", "constraints", "judge"]

Types = tuple[str | None, ...]
"""Types as onnx.defs writes them, such as "tensor(float)"; None if a type is not known."""

_ANY_TYPE = {("", "Constant", 1)}
"""Versions whose type constraints nobody applies. The schema of Constant-1 wants floats; exporters and runtimes use any type."""


@dataclass(frozen=True)
class Formal:
    """A formal input or output: its name, its type variable or type, the types allowed, and whether it repeats."""

    name: str
    variable: str
    allowed: frozenset[str]
    variadic: bool
    alike: bool
    """Whether all actual values of the parameter, and of others of that variable, have one type."""


@dataclass(frozen=True)
class Constraints:
    """The formal inputs and outputs of one version of an operator."""

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]

    def formal(self, index: int, *, output: bool) -> Formal | None:
        """Return the formal parameter of an actual input or output; None beyond the last."""
        formals = self.outputs if output else self.inputs
        if index < len(formals):
            return formals[index]
        return formals[-1] if formals and formals[-1].variadic else None


@schema_cache
def constraints(domain: str, operator: str, since_version: int) -> Constraints | None:
    """Return the type constraints of a version of an operator; None if onnx has none, or they were never applied."""
    name = "" if is_onnx(domain) else domain
    if (name, operator, since_version) in _ANY_TYPE:
        return None
    try:
        schema = defs.get_schema(operator, since_version, name)
    except defs.SchemaError:
        return None
    # onnx returns the nearest older version, which is another one.
    if schema.since_version != since_version:
        return None
    allowed = {
        parameter.type_param_str: frozenset(parameter.allowed_type_strs)
        for parameter in schema.type_constraints
    }
    return Constraints(
        tuple(_formal(parameter, allowed) for parameter in schema.inputs),
        tuple(_formal(parameter, allowed) for parameter in schema.outputs),
    )


def _formal(item: Any, allowed: dict[str, frozenset[str]]) -> Formal:
    variadic = item.option == defs.OpSchema.FormalParameterOption.Variadic
    return Formal(
        item.name,
        item.type_str,
        allowed.get(item.type_str, frozenset({item.type_str})),
        variadic,
        item.is_homogeneous or not variadic,
    )


@schema_cache
def judge(
    domain: str, operator: str, since_version: int, inputs: Types, outputs: Types
) -> tuple[str | None, Types]:
    """Return how a node's types contradict its operator, as a message without subject, and the types of its outputs.

    `inputs` and `outputs` are the known types of the node's values. The message is None if nothing contradicts; an
    output's type is None if it does not follow from the inputs.
    """
    operator_constraints = constraints(domain, operator, since_version)
    if operator_constraints is None:
        return None, outputs
    bound: dict[str, tuple[str, str]] = {}
    label = f"{operator}-{since_version}"
    complaint = _conflict(operator_constraints, inputs, bound, label, output=False)
    # A declared type counts more than a derived one.
    derived = tuple(
        known_type or _derived(operator_constraints, index, bound) for index, known_type in enumerate(outputs)
    )
    return complaint or _conflict(operator_constraints, derived, bound, label, output=True), derived


def _conflict(
    known: Constraints,
    types: Sequence[str | None],
    bound: dict[str, tuple[str, str]],
    label: str,
    *,
    output: bool,
) -> str | None:
    """Return the contradiction in the types of inputs or outputs; enter the types of type variables in `bound`."""
    direction = "output" if output else "input"
    for index, type_ in enumerate(types):
        formal = known.formal(index, output=output) if type_ else None
        if formal is None or type_ is None:
            continue
        if type_ not in formal.allowed:
            return f"has {type_} as {direction} {index} ({formal.name}), which {label} does not take there"
        # Some parameters accept values of different types.
        if not formal.alike:
            continue
        value_label = f"{direction} {index} ({formal.name})"
        # The first value of a type variable decides, and a message names both.
        other = bound.setdefault(formal.variable, (type_, value_label))
        if other[0] != type_:
            return f"has {type_} as {value_label} and {other[0]} as {other[1]}, which {label} takes only of one type"
    return None


def _derived(known: Constraints, index: int, bound: dict[str, tuple[str, str]]) -> str | None:
    formal = known.formal(index, output=True)
    if formal is None or not formal.alike:
        return None
    if formal.variable in bound:
        return bound[formal.variable][0]
    return next(iter(formal.allowed)) if len(formal.allowed) == 1 else None
