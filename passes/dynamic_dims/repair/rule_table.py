"""The table of repair rules, by operator.

A rule gets the context of one node and edits the node so that its outputs are right at all sizes. It returns the
values of the outputs where it knows more of them than onnx's inference, else None. It raises UnrepairableNode where
nothing it can write is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from onnx_migrate.standard.schema import is_onnx

from .domain import SampledValue
from .node_context import NodeContext

__all__ = ["RULES", "RepairRule", "apply_rule", "rule"]

RepairRule = Callable[[NodeContext], "list[SampledValue] | None"]
Rule = TypeVar("Rule", bound=RepairRule)

RULES: dict[tuple[str, str], RepairRule] = {}
"""By domain ("" for ai.onnx) and operator."""

_OF_CONSTANTS: set[tuple[str, str]] = set()
"""Operators whose rule also applies to nodes with constant inputs, since their output may have to vary."""


def rule(*operators: str, domain: str = "", of_constants: bool = False) -> Callable[[Rule], Rule]:
    """Return a decorator that enters a function as the rule of these operators.

    The driver calls it for nodes with an input that varies or has unknown rank; with `of_constants`, for all nodes.
    """

    def enter(repair: Rule) -> Rule:
        keys = [(domain, operator) for operator in operators]
        RULES.update(dict.fromkeys(keys, repair))
        _OF_CONSTANTS.update(keys if of_constants else ())
        return repair

    return enter


def apply_rule(context: NodeContext) -> list[SampledValue] | None:
    """Apply the rule of a node's operator; return the values of its outputs if the rule knows them."""
    key = "" if is_onnx(context.node.domain) else context.node.domain, context.node.op_type
    varying = any(value is not None and (value.varies or value.dims is None) for value in context.inputs)
    return RULES[key](context) if key in RULES and (varying or key in _OF_CONSTANTS) else None
