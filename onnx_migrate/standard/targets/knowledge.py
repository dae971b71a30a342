"""How the operators of a model are known in a release of a runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from onnx_migrate.messages import count_of, first_of
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.standard.targets.measured_forms import Box, NodeForm, holds, pairs_in
from onnx_migrate.standard.targets.rows import Knowledge
from onnx_migrate.standard.targets.target import Target

__all__ = ["OperatorKnowledge", "UnknownOperator", "operator_knowledge"]

_Counts = Mapping[tuple[str, str], int]
"""Numbers of nodes by domain and operator."""
_Forms = Callable[[], Iterable[NodeForm]]


_SHOWN = 8
"""Number of operators that a sentence names."""


class UnknownOperator(NamedTuple):
    """An operator that may not run, and the number of its nodes that we cannot vouch for."""

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
        names = ", ".join(operator.operator for operator in self.unknown)
        of = sum(operator.nodes for operator in self.unknown)
        return f"operators not known: {names} ({of} of {count_of(self.nodes, 'node')})"

    @property
    def sentence(self) -> str:
        """The state of knowledge as a sentence that names the runtime."""
        if not self.unknown:
            source = (
                "tested by us"
                if self.state is Knowledge.MEASURED
                else "by its documentation, not tested by us"
            )
            return f"{self.runtime}: supports every operator of the result ({source})"
        names = first_of([operator.operator for operator in self.unknown], _SHOWN)
        of = sum(operator.nodes for operator in self.unknown)
        nodes = f"{of} of {count_of(self.nodes, 'node')}"
        return f"{self.runtime}: we do not know whether it supports {names} as the model uses them ({nodes})"

    @property
    def warning(self) -> str:
        """The warning of a migration if the support of some operators is not known."""
        return f"{self.sentence}. Please test the result there"


def operator_knowledge(target: Target, nodes: _Counts, forms: _Forms) -> OperatorKnowledge:
    """Return how well we know the operators of a model, from the number of nodes by domain and operator, and their forms.

    If forms were measured, a node is known if its form was right and did not fail in another place. If pairs were
    measured too, the node's form must have been right behind each operator before it. A Constant always counts as
    known: for a target without Constant, it becomes an initializer.
    """
    nodes = {key: count for key, count in nodes.items() if _named(*key) != "Constant"}
    if target.boxes is not None:
        counts = (
            _unmeasured(target.boxes, nodes, forms)
            or _in_boxes(target.failing, nodes, forms)
            or _behind_others(target.pairs, forms)
        )
        state = Knowledge.READ if target.table.built_from else Knowledge.MEASURED
    else:
        knowledge_by_operator = {key: target.knowledge(*key) for key in nodes}
        counts = {key: nodes[key] for key, own in knowledge_by_operator.items() if own is Knowledge.UNKNOWN}
        # A form may fail although the runtime has the operator.
        counts = counts or _in_boxes(target.failing, nodes, forms)
        state = Knowledge.READ if Knowledge.READ in knowledge_by_operator.values() else Knowledge.MEASURED
    unknown = tuple(UnknownOperator(_named(*key), count) for key, count in sorted(counts.items()))
    runtime = f"{target} (assumed release)" if target.assumed else str(target)
    return OperatorKnowledge(runtime, Knowledge.UNKNOWN if unknown else state, sum(nodes.values()), unknown)


def _unmeasured(boxes: Mapping[str, Sequence[Box]], nodes: _Counts, forms: _Forms) -> _Counts:
    """Return how many nodes are in no box; their forms are found only if all operators have boxes."""
    unmeasured = {key: count for key, count in nodes.items() if _named(*key) not in boxes}
    return unmeasured or _counts(
        forms(), lambda name, facts: not any(holds(box, facts) for box in boxes[name])
    )


def _in_boxes(boxes: Mapping[str, Sequence[Box]], nodes: _Counts, forms: _Forms) -> _Counts:
    """Return how many nodes are in a box; their forms are found only if one of the operators has boxes."""
    if not any(_named(*key) in boxes for key in nodes):
        return {}
    return _counts(
        forms(), lambda name, facts: any(holds(box, facts, failing=True) for box in boxes.get(name, ()))
    )


def _behind_others(pairs: Mapping[str, Set[str]], forms: _Forms) -> _Counts:
    """Return how many nodes stand behind an operator without a measurement of that pair; empty if pairs do not count."""
    return _counts(
        forms() if pairs else (), lambda name, facts: not pairs_in(facts) <= pairs.get(name, frozenset())
    )


def _counts(forms: Iterable[NodeForm], is_unknown: Callable[[str, Mapping[str, str]], bool]) -> _Counts:
    """Return how many forms are not known, by their operator and their facts."""
    return Counter(
        (form.domain, form.operator)
        for form in forms
        if is_unknown(_named(form.domain, form.operator), form.facts)
    )


def _named(domain: str, operator: str) -> str:
    return f"{domain}.{operator}" if not is_onnx(domain) else operator
