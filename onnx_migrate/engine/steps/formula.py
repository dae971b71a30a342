"""Formulas: the definition of an operator, written once as a function of its inputs and attributes.

A formula is the step down below the version `since`, and the replacement for targets that lack the operator. If the
oldest opset already has the operator, the formula is only used for such targets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import CO_VARARGS, unwrap
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto, defs, helper

from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.registration import LoweringAdapter, decomposition, lowering, names
from onnx_migrate.engine.steps.step import Direction, LostTypes, Step
from onnx_migrate.engine.steps.step_docs import reason_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.expressions import FLOATS, HALVES, INTEGERS, Array, Result, Value
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.rewrite.op import Op
from onnx_migrate.standard.schema import newest_opset, schema_cache

__all__ = [
    "EQUIVALENT",
    "EXACT",
    "FLOATS",
    "HALVES",
    "INTEGERS",
    "Array",
    "AttributeProto",
    "Formula",
    "LostTypes",
    "Op",
    "Result",
    "TensorProto",
    "Value",
    "formula",
    "formulas",
    "unregistered",
]

EXACT, EQUIVALENT = Exactness.EXACT, Exactness.EQUIVALENT

Function = Callable[..., Result]


@dataclass(frozen=True)
class Formula:
    """A formula of one operator: its function, and the kinds of the function's parameters."""

    domain: str
    operator: str
    since: int
    without: bool
    """Whether it is only for targets that lack the operator, and is no step down."""
    function: Function
    inputs: tuple[str, ...]
    """The positional parameters, which are the inputs."""
    variadic: bool
    """Whether the last parameter takes all further inputs."""
    attributes: dict[str, Any]
    """The keyword-only parameters, which are attributes, with their defaults if the schema has none."""
    handed_on: tuple[str, ...] = ()
    """Further attributes; the function gets those that the node has."""


_formulas: list[Formula] = []


def formula(
    *operators: str,
    since: int,
    exactness: Exactness = EXACT,
    types: LostTypes = LostTypes.REFUSED,
    without: bool = False,
    form: int = 0,
    direct: int = 0,
    handed_on: str = "",
) -> Callable[[Function], Function]:
    """Register the function as the definition of these operators, from version `since`; "domain::Operator" for others.

    Its first parameter is the `Op` that writes nodes. Further ones are the inputs (None if absent, `*values` for all that
    follow). Keyword-only ones are the attributes by their names, with the values of the schema if the node has none.
    It returns the output, or one value for each. The first paragraph of its docstring is the reason that reports give.
    `**attributes` are the node's attributes named in `handed_on`; the formula passes them to the nodes it writes.

    With `form` the formula writes nodes in the forms of this opset if the model's is older. Their own steps then convert
    them to the older opset. So an operator of another domain has one formula, in the best form that the standard has for it.
    `direct` is the lowest opset at which no further lowering is needed, by default `form`.

    The formula is only for targets that lack the operator if `without` is set, or if `since` is below the oldest target.
    Otherwise it is also the step down; `types` is applied before that step.
    """

    def register(function: Function) -> Function:
        formulas = [
            _formula(*_split(name), since, function, without=without, handed_on=names(handed_on))
            for name in names(*operators)
        ]
        # All operators of one formula have one adapter.
        adapt = _adapter(formulas[0], form)
        for registered in formulas:
            if registered.without:
                decomposition(
                    registered.operator, domain=registered.domain, exactness=exactness, direct=direct or form
                )(adapt)
            else:
                lowering(registered.operator, leaves=since, exactness=exactness, types=types)(adapt)
        _formulas.extend(formulas)
        return function

    return register


def unregistered(function: Function, operator: str, form: int = 0) -> Step:
    """Return a formula as a decomposition of one operator ("domain::Operator" for others), for the one pass that needs it."""
    decomposed = _formula(*_split(operator), 1, function, without=True)
    adapt = _adapter(decomposed, form)
    reason = reason_of(function)
    return Step(
        Direction.WITHOUT,
        decomposed.domain,
        decomposed.operator,
        adapt=adapt,
        reason=reason,
        exactness=EQUIVALENT,
    )


def formulas() -> list[Formula]:
    """Return the formulas that are registered so far."""
    return list(_formulas)


def _split(name: str) -> tuple[str, str]:
    domain, _, operator = name.rpartition("::")
    return domain, operator


def _formula(
    domain: str,
    operator: str,
    since: int,
    function: Function,
    *,
    without: bool,
    handed_on: Sequence[str] = (),
) -> Formula:
    plain = unwrap(function)
    code, defaults = plain.__code__, plain.__kwdefaults__ or {}
    positional, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    return Formula(
        domain,
        operator,
        since,
        without or since <= OLDEST or bool(domain),
        function,
        code.co_varnames[1:positional],
        bool(code.co_flags & CO_VARARGS),
        {name: defaults.get(name) for name in code.co_varnames[positional:end]},
        tuple(handed_on),
    )


def _adapter(formula: Formula, form: int = 0) -> LoweringAdapter:
    """Return the adapter that replaces a node by a formula of its inputs and attributes."""
    count, variadic, attributes = len(formula.inputs), formula.variadic, formula.attributes

    @wraps(formula.function)
    def adapt(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
        op = Op(rw)
        _check_node(op, formula, form)
        own = rw.version
        rw.version = max(rw.version, form)
        input_count = max(count, len(node.input)) if variadic else count
        # Omitted inputs are None.
        values = [op.input(index) for index in range(input_count)]
        settings = {}
        if attributes:
            version = own if formula.without else formula.since  # whose form the node has
            defaults = _defaults(formula.domain, node.op_type, version)
            for name, default in attributes.items():
                # An attribute without a default in the schema has the default of the formula.
                settings[name] = rw.get(name, defaults.get(name, default))
        if formula.handed_on:
            settings |= {
                name: attribute_value
                for name, attribute_value in op.attributes.items()
                if name in formula.handed_on
            }
        op.end(formula.function(op, *values, **settings))

    return adapt


def _check_node(op: Op, formula: Formula, form: int) -> None:
    """Refuse a node that a formula of another domain does not cover: unknown attributes, unknown inputs, forms not installed."""
    newest, node = newest_opset(), op.rw.node
    # The installed onnx must be able to infer the types of the written nodes.
    if form > newest:
        op.refuse(
            f"it is written in the form of opset {form}, and the installed onnx knows {newest}",
            code="needs-newer-onnx",
            hint="pip install --upgrade onnx",
        )
    if not formula.domain:
        return
    known_attributes = (*formula.attributes, *formula.handed_on)
    unknown = [attribute.name for attribute in node.attribute if attribute.name not in known_attributes]
    if unknown:
        op.refuse(f"it has an attribute {unknown[0]!r}, which its formula does not know", code="no-equal")
    # The formula would ignore such an input and compute something else.
    further = [name for name in node.input[len(formula.inputs) :] if name]
    if further and not formula.variadic:
        op.refuse(f"it has an input {further[0]!r}, which its formula does not know", code="no-equal")


@schema_cache
def _defaults(domain: str, operator: str, version: int) -> dict[str, Any]:
    """Return the default values that the schema of an operator gives its attributes; none if onnx has no schema."""
    try:
        schema = defs.get_schema(operator, version, domain)
    except defs.SchemaError:
        return {}
    defaults = {}
    for name, attribute in schema.attributes.items():
        # Type 0 says that the attribute has no default.
        if attribute.default_value.type:
            value = helper.get_attribute_value(attribute.default_value)
            defaults[name] = value.decode() if isinstance(value, bytes) else value
    return defaults
