"""What other tools say when they refuse a model, as data: error texts with placeholders, meaning and remedy.

The texts lie in `tables/`, one TOML file for each group of tools. `find` recognises them in whatever was pasted.
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
