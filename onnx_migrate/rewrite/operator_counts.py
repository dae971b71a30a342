"""How many nodes of each operator a model has, and how each pass changed these numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import onnx

from onnx_migrate.model.graphs import LocatedBody, bodies, function_key
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import is_onnx

__all__ = ["PassEffect", "nodes_by_operator", "operator_counts", "operator_name", "record_effect"]


@dataclass(frozen=True)
class PassEffect:
    """The effect of one run of a pass: the difference in nodes by operator, and the range of its changes in the log."""

    pass_name: str
    difference: tuple[tuple[str, int], ...]
    first_change: int
    end_change: int


def operator_name(domain: str, op_type: str) -> str:
    """Return the name of an operator in tables, with the domain unless that is ONNX's own."""
    return op_type if is_onnx(domain) else f"{domain}.{op_type}"


def operator_counts(found: Iterable[LocatedBody]) -> dict[str, int]:
    """Return the number of nodes by operator in all these bodies, in the order of their names."""
    named: Counter[str] = Counter()
    for key, number in _counted(found).items():
        named[operator_name(*key)] += number
    return dict(sorted(named.items()))


def nodes_by_operator(proto: onnx.ModelProto) -> dict[tuple[str, str], int]:
    """Return the number of nodes by domain and operator in all bodies of a model, without calls of local functions."""
    functions = {function_key(function)[:2] for function in proto.functions}
    return {key: number for key, number in _counted(bodies(proto)).items() if key not in functions}


def _counted(found: Iterable[LocatedBody]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for located in found:
        counts.update(located.operators)
    return counts


def record_effect(
    log: ChangeLog, pass_name: str, before: dict[str, int], after: dict[str, int], first_change: int
) -> None:
    """Record the effect of a pass in the log, if it had any; its changes begin at `first_change`."""
    names = sorted({*before, *after})
    differences = ((name, after.get(name, 0) - before.get(name, 0)) for name in names)
    effect = tuple((name, difference) for name, difference in differences if difference)
    if effect or len(log.changes) > first_change:
        log.record_fact(
            pass_name, str(first_change), PassEffect(pass_name, effect, first_change, len(log.changes))
        )
