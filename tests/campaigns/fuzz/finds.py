"""What the fuzzer found and was mended: one file in finds/ for each, with what has to come of it.

A file has lines of `name: value`, an empty line, and a model in ONNX's text format, or in hexadecimal if there is `hex: yes`.
`result` is verified, unverified, not compared, or the code of the error; `options` are arguments of `migrate`; `set` has
a statement that changes the model `m`, or sets its bytes, `data`, for what the text format cannot say.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onnx import parser

from tests.campaigns.fuzz.case import Case

__all__ = ["FINDS", "find"]

FINDS = sorted((Path(__file__).parent / "finds").glob("*.txt"))


def find(path: Path) -> tuple[Case, str]:
    """Return the case in a file, and what has to come of it."""
    head, _, body = path.read_text(encoding="utf-8").partition("\n\n")
    fields = dict(line.partition(": ")[::2] for line in head.splitlines())
    if fields.get("hex"):
        data = bytes.fromhex(body)
    else:
        model = parser.parse_model(body)
        names: dict[str, Any] = {"m": model}
        exec(fields.get("set", ""), names)
        data = names.get("data", model.SerializeToString())
    kind = "bytes" if fields.get("hex") else "mutated"
    return Case(0, kind, path.name, data, json.loads(fields.get("options", "{}"))), fields["result"]
