"""What a plug-in needs: it registers steps for operators of its own domain, up and down, as its module is imported.

docs/library.md has a template. A step is a function of a node and a `Rewriter`; its docstring says what changes and why the
result computes the same, and `onnx-migrate explain DOMAIN.OPERATOR-VERSION` prints it. Steps up are keyed by the version
that they reach, steps down by the one that they leave.
"""

from __future__ import annotations

from onnx_migrate.engine.steps.formula import Op, Value, formula
from onnx_migrate.engine.steps.lowering_registry import LostTypes, impossible, lowering, unchanged
from onnx_migrate.engine.steps.registry import adapter, compatible, unsupported
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.schema import declare_operator

__all__ = [
    "Exactness",
    "LostTypes",
    "LoweringRewriter",
    "Op",
    "Rewriter",
    "Value",
    "adapter",
    "compatible",
    "declare_operator",
    "formula",
    "impossible",
    "lowering",
    "unchanged",
    "unsupported",
]
