"""Runtimes that models are brought to, as data: what each release of a runtime takes.

One file per runtime lies in `tables/`; a user's own target is a file of the same form. `resolve` turns what a user asks for,
such as "tensorrt==8.6" or "./mychip.toml", into `Targets`. docs/targets.md describes the form of the files.
"""

from onnx_migrate.standard.targets.combined import Targets
from onnx_migrate.standard.targets.knowledge import OperatorKnowledge, operator_knowledge
from onnx_migrate.standard.targets.read import known_names, read_table, shipped, tables
from onnx_migrate.standard.targets.requests import resolve
from onnx_migrate.standard.targets.rows import (
    FORMS,
    PREDICATES,
    FaultRow,
    Knowledge,
    Lower,
    OperatorSupport,
    ReleaseRow,
    Table,
)
from onnx_migrate.standard.targets.target import Target, milestones

__all__ = [
    "FORMS",
    "PREDICATES",
    "FaultRow",
    "Knowledge",
    "Lower",
    "OperatorKnowledge",
    "OperatorSupport",
    "ReleaseRow",
    "Table",
    "Target",
    "Targets",
    "known_names",
    "milestones",
    "operator_knowledge",
    "read_table",
    "resolve",
    "shipped",
    "tables",
]
