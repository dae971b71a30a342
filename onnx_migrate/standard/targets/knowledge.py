"""How the operators of a model are known in a release of a runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from onnx_migrate.messages import count_of
from onnx_migrate.standard.targets.rows import Knowledge
from onnx_migrate.standard.targets.target import Target

__all__ = ["OperatorKnowledge", "UnknownOperator", "operator_knowledge"]


class UnknownOperator(NamedTuple):
    """An operator that is neither known to be there nor to be missing, and the number of its nodes."""

    operator: str
    nodes: int


@dataclass(frozen=True)
class OperatorKnowledge:
    """How it is known that a runtime has the operators of a model: measured if all are, not known if one is not."""

    runtime: str
    state: Knowledge
    nodes: int
    unknown: tuple[UnknownOperator, ...] = ()

    def __str__(self) -> str:
        if not self.unknown:
            return f"operators {self.state.value}"
        names = ", ".join(item.operator for item in self.unknown)
        of = sum(item.nodes for item in self.unknown)
        return f"operators not known: {names} ({of} of {count_of(self.nodes, 'node')})"

    @property
    def warning(self) -> str:
        """What a migration warns of where operators are not known."""
        return f"{self.runtime}: {self}. Whether it has them is neither measured nor read anywhere: run the result there"


def operator_knowledge(target: Target, nodes: Mapping[tuple[str, str], int]) -> OperatorKnowledge:
    """Return how the operators of a model are known, from the number of nodes by domain and operator.

    A Constant counts as known: where a target does not have it, it becomes an initializer.
    """
    found = {
        key: target.knowledge(*key) for key in nodes if key not in (("", "Constant"), ("ai.onnx", "Constant"))
    }
    unknown = tuple(
        UnknownOperator(
            f"{domain}.{operator}" if domain not in ("", "ai.onnx") else operator, nodes[domain, operator]
        )
        for (domain, operator), state in sorted(found.items())
        if state is Knowledge.UNKNOWN
    )
    read = any(state is Knowledge.READ for state in found.values())
    state = Knowledge.UNKNOWN if unknown else Knowledge.READ if read else Knowledge.MEASURED
    return OperatorKnowledge(str(target), state, sum(nodes.values()), unknown)
