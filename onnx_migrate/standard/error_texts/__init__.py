"""The error texts of other tools that refuse a model, as data: texts with placeholders, meaning and remedy.

The texts lie in `tables/`, one TOML file for each group of tools. `find` recognises them in any text that a user
pastes.
"""

from onnx_migrate.standard.error_texts.find import RecognisedText, find
from onnx_migrate.standard.error_texts.pasted import plain, words_of
from onnx_migrate.standard.error_texts.rows import Check, ErrorText, Mend, Sentence, error_texts

__all__ = [
    "Check",
    "ErrorText",
    "Mend",
    "RecognisedText",
    "Sentence",
    "error_texts",
    "find",
    "plain",
    "words_of",
]
