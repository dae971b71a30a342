"""The functions for plug-ins: a plug-in registers steps for operators of its own domain, up and down, when it is imported.

docs/library.md has a template. A step is a function of a node and a `Rewriter`. Its docstring describes the change, and says
why the result computes the same. `onnx-migrate explain DOMAIN.OPERATOR-VERSION` prints the docstring. The key of a step up is
the version that it reaches, the key of a step down the version that it leaves.
"""

from __future__ import annotations

from onnx_migrate.engine.steps.formula import Op, Value, formula
from onnx_migrate.engine.steps.registration import (
    adapter,
    compatible,
    impossible,
    lowering,
    unchanged,
    unsupported,
)
from onnx_migrate.engine.steps.step import LostTypes
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
