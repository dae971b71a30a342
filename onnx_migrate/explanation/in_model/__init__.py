"""Whether a given model would raise an error, because of which nodes, and whether the remedy works for it."""

from onnx_migrate.explanation.in_model.questions import QUESTIONS
from onnx_migrate.explanation.in_model.verdict import ModelVerdict, ask_model

__all__ = ["QUESTIONS", "ModelVerdict", "ask_model"]
