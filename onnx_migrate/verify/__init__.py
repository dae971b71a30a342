"""Whether two models compute the same, and whether a model is truly dynamic: measured by running them."""

from __future__ import annotations

from onnx_migrate.verify.equivalence.task import ready_worker, verify
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.inputs.user_inputs import Feed, Feeds, InputData
from onnx_migrate.verify.kernel import Tolerance
from onnx_migrate.verify.settings import Settings

__all__ = [
    "Feed",
    "Feeds",
    "InputData",
    "Runnable",
    "Settings",
    "Tolerance",
    "ready_worker",
    "verify",
]
