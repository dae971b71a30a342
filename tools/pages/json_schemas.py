"""Writes docs/schema/, the JSON Schemas of all that is printed as JSON. `python -m tools.pages.json_schemas`.

`json_form.py` derives the schema of each value that is printed; here stand the objects that commands make of them.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from onnx_migrate.passes.simplify.simplification import Simplified

import onnx_migrate.inspection as inspections
from onnx_migrate import verdicts
from onnx_migrate.batching.job import STATES
from onnx_migrate.compatibility import Compatibility, RuntimeCompatibility
from onnx_migrate.difference import Difference
from onnx_migrate.explanation import (
    Answer,
    Explanation,
    Group,
    ModelVerdict,
    Unknown,
)
from onnx_migrate.json_form import (
    SCHEMA_VERSION,
    Schema,
    Seconds,
    printed_class,
    properties,
    record,
    schema,
    schema_of,
)
from onnx_migrate.reduction.result import ReductionReport
from onnx_migrate.report.data import ReportData
from onnx_migrate.report.diff_nodes import DiffEntry
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.feature_values import SECTIONS
from onnx_migrate.rewrite.change_log import Note
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "schema"

TEXT, WHOLE, FLAG, SECONDS = map(schema_of, (str, int, bool, Seconds))
TEXTS, COUNTS = schema_of(dict[str, str]), schema_of(dict[str, int])
VERSION: Schema = {
    "const": SCHEMA_VERSION,
    "description": "raised when a field is removed or changes its meaning, not when one is added",
}


def one_of(*texts: str) -> Schema:
    """Return one of some texts."""
    return {"enum": list(texts)}


NARROWER: dict[tuple[type, str], Schema] = {
    (Note, "severity"): one_of("info", "warning"),
    (Simplified, "kind"): one_of("folded", "fused", "merged", "removed", "unused", "written", "added"),
    (verdicts.Side, "failed"): one_of("", "load", "run"),
    (verdicts.Verdict, "grade"): one_of(
        "", "bit-identical", "within-rounding", "within-tolerance", "differs"
    ),
}
"""The values that a text may have."""

WHOLE_OBJECTS: dict[str, Schema] = {
    "Compatibility": record(
        {**properties(RuntimeCompatibility), "standing": TEXT},
        "How the model stands with a runtime.",
        may_lack=("releases",),
    ),
    "Explanation": record(
        {**properties(Explanation), "severity": one_of("error", "warning"), "model": schema_of(ModelVerdict)},
        "An error text that was recognised.",
        may_lack=("model",),
    ),
}
"""The definitions of values to which a command adds keys."""


def definition(name: str) -> Schema:
    """Return the definition of a class by its name."""
    if name in WHOLE_OBJECTS:
        return WHOLE_OBJECTS[name]
    kind = printed_class(name)
    found = schema(kind)
    found["properties"].update({key: values for (other, key), values in NARROWER.items() if other is kind})
    return found


_DONE: dict[str, Schema] = {**properties(ReportData), "schema_version": VERSION}
_FAILED: dict[str, Schema] = {**properties(Failure), "schema_version": VERSION}
_INSPECTION: dict[str, Schema] = {
    **properties(inspections.Inspection), "schema_version": VERSION, "advice": schema_of(list[Compatibility]),
}  # fmt: skip

_OF_BATCH: dict[str, Schema] = {
    "kind": {"const": "model"}, "output": schema_of(str | None), "state": one_of(*STATES), "cached": FLAG, "status": TEXT,
    "total_seconds": SECONDS,
    "loadable": {**FLAG, "description": "whether ONNX Runtime loads a model that was refused as invalid"},
    "left": {**WHOLE, "description": "what --best-effort left as it is, each with a note `not-fitted`"},
}  # fmt: skip

_CACHED = ("tool", "model", "request", "before", "after", "operators", "file_bytes", "passes", "changes", "notes", "verification",
           "dynamic", "proved_in", "header_only", "seconds", "operators_known",
           *(section.name for section in SECTIONS))  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "report": {
        "title": "onnx-migrate MODEL OUTPUT --json",
        "anyOf": [
            record({**_DONE, "output": schema_of(str | None), "rest": schema_of(str | None), "would_change": FLAG,
                    "diff": schema_of(list[DiffEntry])},
                   "A migration that was done.", may_lack=("rest", "would_change", "diff")),
            record(_FAILED, "A migration that was refused or failed."),
        ],
    },
    "batch": {
        "title": "a line of onnx-migrate batch --json-lines, and what --json prints",
        "anyOf": [
            record({**_DONE, **_OF_BATCH}, "A model that is done; one that an earlier run did has no report.", may_lack=_CACHED),
            record({**_FAILED, **_OF_BATCH}, "A model that was refused or failed."),
            record(
                {
                    "kind": {"const": "totals"}, "schema_version": VERSION, "models": WHOLE, "ended": WHOLE, "preview": FLAG,
                    "complete": FLAG, "outcomes": COUNTS, "states": COUNTS, "reasons": COUNTS, "verification": COUNTS,
                    "cached": WHOLE, "seconds": SECONDS,
                    "loadable": {**WHOLE, "description": "models refused as invalid although ONNX Runtime loads them"},
                    "left": {**WHOLE, "description": "results of which --best-effort left something as it is"},
                },
                "The last line.",
            ),
            record(
                {
                    "kind": {"const": "batch"}, "schema_version": VERSION, "models": schema_of(list[dict[str, Any]]),
                    "totals": {"type": "object"},
                },
                "What --json prints: the lines of the models, and the last one.",
            ),
        ],
    },
    "journal": {
        "title": "a line of .onnx-migrate.jsonl, the journal of onnx-migrate batch --out-dir",
        **record(
            {
                "schema_version": VERSION, "source": TEXT, "output": TEXT,
                "content": {**TEXTS, "description": "digests of the files of the source"},
                "key": {"type": "object", "description": "options and versions, which --resume compares"},
                "outcome": one_of("migrated", "unchanged"), "verification": one_of("verified", "unverified", "not verified"),
                "doubt": TEXT, "written": {**TEXTS, "description": "digests of the files of the result"},
            }
        ),
    },
    "inspection": {
        "title": "onnx-migrate inspect MODEL... --json",

            "type": "array",
            "items": {"anyOf": [record(_INSPECTION, "A model that could be read."), record(_FAILED, "One that could not.")]}
        ,
    },
    "verdict": {
        "title": "onnx-migrate verify ORIGINAL OTHER --json",
        "anyOf": [
            record({
                "schema_version": VERSION, "original": TEXT, "other": TEXT, **definition("Verdict")["properties"],
            }),
            record(_FAILED, "A comparison that could not be made."),
        ],
    },
    "difference": {
        "title": "onnx-migrate diff ORIGINAL OTHER --json",
        "anyOf": [
            record({"schema_version": VERSION, **properties(Difference)}, "How two models differ."),
            record(_FAILED, "A comparison that could not be made."),
        ],
    },
    "reduction": {
        "title": "onnx-migrate reduce MODEL --json",
        "anyOf": [
            record(
                {
                    "schema_version": VERSION,
                    "written": {**schema_of(list[str]), "description": "the paths of the written files"},
                    "command": {**TEXT, "description": "the shell command that reproduces the failure"},
                    **properties(ReductionReport),
                },
                "The smaller model is written.",
            ),
            record(_FAILED, "A reduction that could not be made."),
        ],
    },
    "explanation": {
        "title": "onnx-migrate explain ... --json",
        "anyOf": [
            record(
                {
                    "schema_version": VERSION, "recognised": {"const": True}, **properties(Answer), "model": TEXT,
                },
                "A text that was recognised.",
                may_lack=("model",),
            ),
            record(
                {
                    "schema_version": VERSION, "recognised": {"const": False},
                    "near": schema_of(Unknown),
                },
                "A text that was not recognised, and what is nearest to it.",
            ),
            record(
                {
                    "schema_version": VERSION,
                    "groups": schema_of(list[Group]),
                },
                "All that is known.",
            ),
            record(_FAILED, "A model, or a release of a runtime, that could not be read."),
        ],
    },
}  # fmt: skip
"""The schema of each kind of output, by the name of its file."""


_WIDTH = 130

_SHORT = 24
"""Letters up to which an object, as {"type": "integer"}, may share a line with others."""


def text(name: str) -> str:
    """Return the file of one kind of output, with the definitions that it uses."""
    body = SCHEMAS[name]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}-{SCHEMA_VERSION}.schema.json",
    }
    used: dict[str, Schema] = {}
    waiting: list[Any] = [body]
    while waiting:
        for kind in re.findall(r'"#/\$defs/(\w+)"', json.dumps(waiting.pop())):
            if kind not in used:
                used[kind] = definition(kind)
                waiting.append(used[kind])
    whole = {**head, **body, "$defs": dict(sorted(used.items()))}
    return "\n".join(_lines(whole)) + "\n"


def _lines(value: Any, indent: str = "", before: str = "", after: str = "") -> Iterator[str]:
    """Yield a JSON value: on one line if it is short, else those of its objects and lists that are not on lines of their own."""
    flat = f"{indent}{before}{json.dumps(value, ensure_ascii=False)}{after}"
    if len(flat) <= _WIDTH or not isinstance(value, (dict, list)):
        yield flat
        return
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        words = f"{before}{flat[len(indent) + len(before) :]}"
        yield from textwrap.wrap(words, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent} ")
        return
    named = isinstance(value, dict)
    items = (
        [(f"{json.dumps(key)}: ", item) for key, item in value.items()]
        if named
        else [("", item) for item in value]
    )
    yield f"{indent}{before}{'{' if named else '['}"
    line = f"{indent} "
    for place, (key, item) in enumerate(items, 1):
        comma = "," if place < len(items) else ""
        own = json.dumps(item, ensure_ascii=False)
        if isinstance(item, (dict, list)) and len(own) > _SHORT:
            if line.strip():
                yield line.rstrip()
            yield from _lines(item, f"{indent} ", key, comma)
            line = f"{indent} "
            continue
        word = f"{key}{own}{comma} "
        if line.strip() and len(line + word) > _WIDTH:
            yield line.rstrip()
            line = f"{indent} "
        line += word
    if line.strip():
        yield line.rstrip()
    yield f"{indent}{'}' if named else ']'}{after}"


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (FOLDER / f"{name}-{SCHEMA_VERSION}.schema.json").write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
