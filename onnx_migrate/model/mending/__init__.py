"""Repairs parts of a model that the standard forbids and ONNX Runtime accepts; the repaired model has ONNX Runtime's meaning."""

from __future__ import annotations

from onnx_migrate.model.mending.float_types import mend_float_types
from onnx_migrate.model.mending.mend import mend
from onnx_migrate.model.mending.tensors import Mending

__all__ = ["Mending", "mend", "mend_float_types"]
