"""Runtimes that users migrate models for, as data: the operators and opsets that each release supports.

One file per runtime lies in `tables/`; a user's own target is a file of the same form. `resolve` turns a user's
request, such as "tensorrt==8.6" or "./mychip.toml", into `Targets`. docs/targets.md describes the form of the files.
"""

from typing import TYPE_CHECKING

from onnx_migrate.lazy_names import lazy_names

if TYPE_CHECKING:
    from onnx_migrate.standard.targets.combined import Targets
    from onnx_migrate.standard.targets.knowledge import OperatorKnowledge, operator_knowledge
    from onnx_migrate.standard.targets.measured_forms import (
        AFTER,
        BEHIND,
        ENDING,
        FAILING,
        LAST,
        SELDOM,
        SIZE,
        Box,
        NodeForm,
        holds,
        pairs_in,
        parse_forms,
    )
    from onnx_migrate.standard.targets.read import known_names, shipped, tables
    from onnx_migrate.standard.targets.requests import resolve
    from onnx_migrate.standard.targets.rows import (
        FORMS,
        PREDICATES,
        FaultRow,
        KernelRow,
        Knowledge,
        Lower,
        OperatorSupport,
        Table,
    )
    from onnx_migrate.standard.targets.target import Target, milestones

__all__ = [
    "AFTER",
    "BEHIND",
    "ENDING",
    "FAILING",
    "FORMS",
    "LAST",
    "PREDICATES",
    "SELDOM",
    "SIZE",
    "Box",
    "FaultRow",
    "KernelRow",
    "Knowledge",
    "Lower",
    "NodeForm",
    "OperatorKnowledge",
    "OperatorSupport",
    "Table",
    "Target",
    "Targets",
    "holds",
    "known_names",
    "milestones",
    "operator_knowledge",
    "pairs_in",
    "parse_forms",
    "resolve",
    "shipped",
    "tables",
]

__getattr__ = lazy_names(
    __name__,
    {
        "combined": "Targets",
        "knowledge": "OperatorKnowledge operator_knowledge",
        "measured_forms": "AFTER BEHIND ENDING FAILING LAST SELDOM SIZE Box NodeForm holds pairs_in parse_forms",
        "read": "known_names shipped tables",
        "requests": "resolve",
        "rows": "FORMS PREDICATES FaultRow KernelRow Knowledge Lower OperatorSupport Table",
        "target": "Target milestones",
    },
)
