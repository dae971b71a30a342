"""The steps of operators, one file for each family: to newer versions, to older ones, and where a target lacks the operator.

Here is what a file of steps needs besides formulas, whose names `onnx_migrate.engine.steps.formula` has.
"""

from onnx_migrate.engine.steps.lowering_registry import LostTypes, impossible, lowering, unchanged
from onnx_migrate.engine.steps.registry import adapter, compatible, unsupported
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.rewrite.rewriter import Rewriter

__all__ = [
    "Exactness",
    "LostTypes",
    "LoweringRewriter",
    "Rewriter",
    "adapter",
    "compatible",
    "impossible",
    "lowering",
    "unchanged",
    "unsupported",
]
