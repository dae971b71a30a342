"""Explains an error text, a code, an operator or a runtime, and suggests a solution, also for a given model.

`explain` recognises the pasted text. It runs no model, and reads only a model's structure.
"""

from onnx_migrate.explanation.asked import Answer, Unknown, explain
from onnx_migrate.explanation.error_text import Explanation, Remedy, explanation_of
from onnx_migrate.explanation.in_model import ModelVerdict, ask_model
from onnx_migrate.explanation.near import names
from onnx_migrate.explanation.overview import Group, overview

__all__ = [
    "Answer",
    "Explanation",
    "Group",
    "ModelVerdict",
    "Remedy",
    "Unknown",
    "ask_model",
    "explain",
    "explanation_of",
    "names",
    "overview",
]
