"""Writes docs/schema/, the JSON Schemas of all that is printed as JSON. `python -m tests.docs.json_schemas`."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from onnx_migrate import verdicts
from onnx_migrate.report.report import SCHEMA_VERSION
from tests.support.paths import ROOT

FOLDER = ROOT / "docs" / "schema"

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": ["number", "string"], "description": 'a number; "inf", "-inf" and "nan" are texts'}
SECONDS: Schema = {"type": "number", "minimum": 0}
VERSION: Schema = {
    "const": SCHEMA_VERSION,
    "description": "raised when a field is removed or changes its meaning, not when one is added",
}


def ref(name: str) -> Schema:
    """Return a reference to a definition of the same file."""
    return {"$ref": f"#/$defs/{name}"}


def optional(schema: Schema) -> Schema:
    """Return the schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    """Return a list of such values."""
    return {"type": "array", "items": schema}


def table(schema: Schema) -> Schema:
    """Return an object whose keys are names."""
    return {"type": "object", "additionalProperties": schema}


def one_of(*texts: str) -> Schema:
    """Return one of some texts."""
    return {"enum": list(texts)}


def described(schema: Schema, text: str) -> Schema:
    """Return the schema with a description."""
    return (
        {**schema, "description": text} if "$ref" not in schema else {"allOf": [schema], "description": text}
    )


def record(properties: Mapping[str, Schema], text: str = "", *, may_lack: tuple[str, ...] = ()) -> Schema:
    """Return an object that has all these keys, but for those that it may lack, and no other."""
    found: Schema = {"description": text} if text else {}
    required = [name for name in properties if name not in may_lack]
    return {
        **found,
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def of_type(hint: Any) -> Schema:
    """Return the schema of what a field of a dataclass becomes in JSON."""
    if hint is float:
        return NUMBER
    simple = {str: TEXT, int: WHOLE, bool: FLAG, type(None): {"type": "null"}}
    if hint in simple:
        return simple[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return one_of(*(item.value for item in hint))
    if isinstance(hint, type) and is_dataclass(hint):
        return ref(hint.__name__)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [of_type(item) for item in inner]}
    if origin is tuple and inner[-1] is Ellipsis:
        return many(of_type(inner[0]))
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": [of_type(item) for item in inner],
            "minItems": len(inner),
            "maxItems": len(inner),
        }
    raise TypeError(f"no schema for {hint}")


def of_dataclass(kind: type, **more: Schema) -> Schema:
    """Return the schema of a dataclass whose JSON has its fields, and some more."""
    hints = get_type_hints(kind)
    own = {item.name: of_type(hints[item.name]) for item in fields(kind)}
    return record({**own, **more}, " ".join((kind.__doc__ or "").split("\n\n")[0].split()))


_WHERE: dict[str, Schema] = {
    "scope": TEXT, "node": TEXT, "operator": TEXT, "from_version": optional(WHOLE), "to_version": optional(WHOLE),
}  # fmt: skip

DEFINITIONS: dict[str, Schema] = {
    "port": record(
        {"name": TEXT, "type": TEXT, "shape": optional(many({"type": ["integer", "string", "null"]}))},
        "An input or output. A dim is a number, a symbol or an expression of symbols, or null; no shape is null.",
    ),
    "summary": record(
        {
            "opset": described(optional(WHOLE), "of ai.onnx; null where the model imports none"), "ir_version": WHOLE,
            "opset_imports": table(WHOLE), "nodes": described(WHOLE, "in all bodies"), "weight_bytes": WHOLE,
            "inputs": many(ref("port")), "outputs": many(ref("port")),
        },
        "The model before or after.",
    ),
    "target": record(
        {
            "request": TEXT, "name": TEXT, "title": TEXT, "release": optional(TEXT), "opset": optional(WHOLE),
            "oldest_opset": optional(WHOLE), "ir_version": optional(WHOLE), "measured": FLAG, "later_than_table": FLAG,
            "release_assumed": FLAG, "source": TEXT, "table": TEXT, "table_sha256": TEXT,
        },
        "A runtime at a release, and the row of its table.",
    ),
    "request": record(
        {
            "targets": many(ref("target")), "options": described({"type": "object"}, "what was asked for besides the defaults"),
            "versions": table(TEXT), "command": described(optional(TEXT), "the command that does the same again"),
        },
        "What was asked for.",
    ),
    "operator": record(
        {
            "operator": TEXT, "before": WHOLE, "after": WHOLE,
            "steps": many(record({"pass": TEXT, "step": TEXT, "difference": WHOLE, "nodes": WHOLE})),
        },
        "An operator, how many nodes it had and has, and which steps changed that.",
    ),
    "node": record(
        {
            "operator": TEXT, "version": optional(WHOLE), "domain": TEXT, "inputs": many(TEXT), "outputs": many(TEXT),
            "attributes": table(TEXT),
        },
        "A node. `attributes` of a change are those that differ, as text.",
    ),
    "change": record(
        {
            "pass": TEXT, "scope": described(TEXT, "graph, or the path of a sub-graph or function"), "node": TEXT,
            "before": ref("node"), "after": optional(ref("node")), "kept_attributes": table(TEXT), "helpers": many(TEXT),
            "helper_nodes": many(ref("node")),
            "constants": table(record({"type": TEXT, "shape": many(WHOLE), "value": optional(TEXT)})), "reason": TEXT,
            "exactness": one_of("exact", "equivalent", "assumed"),
        },
        "A node that was changed, and why.",
    ),
    "note": record(
        {"step": TEXT, "code": TEXT, "message": TEXT, "subject": TEXT, "severity": one_of("info", "warning")},
        "Something to know; onnx-migrate explain CODE says more.",
    ),
    "dim": record(
        {"input": TEXT, "axis": WHOLE, "symbol": TEXT, "size": optional(WHOLE), "batch": FLAG},
        "An axis that was made dynamic, and the length that it had.",
    ),
    "error": record(
        {
            "code": TEXT, "kind": TEXT, "reason": TEXT, "hint": TEXT, **_WHERE,
        },
        "Why it failed; onnx-migrate explain CODE says more.",
    ),
    "refusal": record(
        {
            "code": TEXT, "reason": TEXT, "hint": TEXT,
            "where": optional(record(_WHERE)),
        },
        "Why an opset cannot be reached.",
    ),
    "objection": record(
        {"reason": TEXT, "scope": TEXT, "node": TEXT, "operator": TEXT, "nodes": WHOLE, "wrong": FLAG},
        "What stands in the way of a runtime.",
    ),
    "advice": record(
        {
            "runtime": ref("target"), "standing": TEXT, "objections": many(ref("objection")), "opset": optional(WHOLE),
            "ir_version": optional(WHOLE), "changes": many(record({"operators": TEXT, "nodes": WHOLE})),
            "obstacles": many(ref("objection")), "code": TEXT, "warnings": many(TEXT), "helps": many(TEXT),
            "releases": many(record({"from": TEXT, "standing": TEXT})),
        },
        "How the model stands with a runtime; `releases` with --for all only.",
        may_lack=("releases",),
    ),
    **{
        kind.__name__: of_dataclass(kind)
        for kind in (
            verdicts.FeedNote, verdicts.LoadFailure, verdicts.Distance, verdicts.Histogram, verdicts.Element, verdicts.Trial,
            verdicts.Blocker, verdicts.DynamicProof,
        )
    },
    "Comparison": of_dataclass(verdicts.Comparison, identical=FLAG),
    "ComparisonElsewhere": of_dataclass(verdicts.Comparison),
    "Side": record(
        {
            "failed": one_of("", "load", "run"), "reason": TEXT, "right": FLAG, "largest_absolute": optional(NUMBER),
            "largest_relative": optional(NUMBER), "allowed": optional(NUMBER), "comparisons": many(ref("ComparisonElsewhere")),
            "text": TEXT,
        },
        "One of the two models in another runtime.",
    ),
    "RuntimeProof": record(
        {
            "asked": TEXT, "runtime": TEXT, "outcome": TEXT, "passed": FLAG, "result": ref("Side"),
            "original": optional(ref("Side")), "text": TEXT, "notes": many(TEXT), "seconds": SECONDS,
        },
        "The proof in another runtime.",
    ),
    "FirstDifference": of_dataclass(verdicts.FirstDifference),
    "difference": record(
        {"body": TEXT, "subject": TEXT, "title": TEXT, "removed": many(TEXT), "added": many(TEXT)},
        "What differs at a node, a weight, an input, …: the lines of --diff.",
    ),
    "Verdict": of_dataclass(
        verdicts.Verdict, grade=one_of("", "bit-identical", "within-rounding", "within-tolerance", "differs")
    ),
}  # fmt: skip

_DONE: dict[str, Schema] = {
    "schema_version": VERSION,
    "tool": record({"name": TEXT, "version": TEXT, "onnx": TEXT}),
    "model": TEXT, "request": optional(ref("request")), "outcome": one_of("migrated", "unchanged"), "before": ref("summary"),
    "after": ref("summary"), "operators": many(ref("operator")),
    "file_bytes": optional(record({"before": WHOLE, "after": WHOLE})),
    "passes": many(TEXT), "changes": many(ref("change")), "notes": many(ref("note")), "verification": optional(ref("Verdict")),
    "dynamic": optional(ref("DynamicProof")), "proved_in": many(ref("RuntimeProof")), "dims": many(ref("dim")),
    "simplified": optional(record({
        "before": table(WHOLE), "after": table(WHOLE),
        "done": many(record({
            "kind": one_of("folded", "fused", "merged", "removed", "unused", "written", "added"), "operator": TEXT, "into": TEXT,
            "nodes": WHOLE,
        }, "Nodes of the main graph that simplification folded into constants, fused `into` others, and so on.")),
    })),
    "header_only": FLAG,
    "seconds": table(SECONDS),
}  # fmt: skip

_FAILED: dict[str, Schema] = {
    "schema_version": VERSION, "model": TEXT, "outcome": one_of("refused", "invalid", "failed"), "error": ref("error"),
    "request": optional(ref("request")), "before": optional(ref("summary")), "changes": many(ref("change")),
    "notes": many(ref("note")), "seconds": table(SECONDS), "blocked": optional(ref("change")),
    "verification": optional(ref("Verdict")), "proved_in": many(ref("RuntimeProof")),
    "first_difference": optional(ref("FirstDifference")),
}  # fmt: skip

_OF_BATCH: dict[str, Schema] = {
    "kind": {"const": "model"}, "output": optional(TEXT), "cached": FLAG, "status": TEXT, "total_seconds": SECONDS,
}  # fmt: skip

_INSPECTION: dict[str, Schema] = {
    "schema_version": VERSION, "model": TEXT, "producer": TEXT,
    "ir_version": WHOLE, "opset": optional(WHOLE), "opset_imports": table(WHOLE), "nodes": WHOLE,
    "operators": many(record({"domain": TEXT, "name": TEXT, "version": optional(WHOLE), "count": WHOLE})),
    "functions": many(TEXT), "inputs": many(ref("port")), "outputs": many(ref("port")), "weights": WHOLE, "weight_bytes": WHOLE,
    "external_files": many(TEXT), "problems": many(TEXT), "target": {"type": ["integer", "string"]},
    "changes": optional(many(ref("change"))), "notes": optional(many(ref("note"))), "refusal": optional(ref("refusal")),
    "reachable": many(WHOLE), "refusals": many(ref("refusal_of_opsets")),
    "domains": many(ref("reachable_domain")), "advice": many(ref("advice")),
}  # fmt: skip

DEFINITIONS["reachable_domain"] = record({
    "domain": TEXT, "opset": WHOLE, "reachable": many(WHOLE), "refusals": many(ref("refusal_of_opsets")),
})  # fmt: skip
DEFINITIONS["refusal_of_opsets"] = record({**DEFINITIONS["refusal"]["properties"], "opsets": many(WHOLE)})

_STEPS = many(record({
    "code": TEXT, "versions": TEXT, "kind": TEXT, "exactness": optional(TEXT), "reason": TEXT,
}))  # fmt: skip
_RELEASE: dict[str, Schema] = {
    "opset": optional(WHOLE), "oldest_opset": optional(WHOLE), "ir_version": optional(WHOLE), "measured": FLAG, "source": TEXT,
}  # fmt: skip

DEFINITIONS.update({
    "explained_operator": record(
        {
            "domain": TEXT, "operator": TEXT, "history": TEXT, "versions": many(WHOLE), "up": _STEPS, "down": _STEPS,
            "written_out": _STEPS,
        },
        "An operator, and the steps that bring it up and down.",
    ),
    "explained_runtime": record(
        {
            "name": TEXT, "title": TEXT, "newest": optional(TEXT), "notes": many(TEXT),
            "releases": many(record({"from": TEXT, **_RELEASE})),
        },
        "A runtime, and the rows of its table.",
    ),
    "explained_release": record(
        {
            **DEFINITIONS["target"]["properties"], "operators": optional(many(TEXT)), "lacking": many(TEXT),
            "faults": many(record({"operator": TEXT, "text": TEXT, "help": TEXT})), "notes": many(TEXT),
        },
        "One release of a runtime.",
    ),
    "explained_error": record(
        {
            "name": TEXT, "title": TEXT, "said": TEXT, "tool": TEXT, "stage": TEXT, "versions": TEXT,
            "severity": one_of("error", "warning"), "values": described(table(TEXT), "what stands in its places"),
            "meaning": many(TEXT), "causes": many(TEXT),
            "remedies": many(record({"command": optional(TEXT), "text": TEXT})), "alike": many(TEXT), "page": TEXT,
            "sources": many(TEXT),
            "model": record({
                "raises": optional(FLAG), "reasons": many(TEXT), "outlook": TEXT, "mends": optional(FLAG),
                "places": many(record(_WHERE)),
            }, "Whether the model that was given would raise it."),
        },
        "An error text that was recognised.",
        may_lack=("model",),
    ),
})  # fmt: skip

_CACHED = ("tool", "model", "request", "before", "after", "operators", "file_bytes", "passes", "changes", "notes", "verification",
           "dynamic", "proved_in", "dims", "simplified", "header_only", "seconds")  # fmt: skip

SCHEMAS: dict[str, Schema] = {
    "report": {
        "title": "onnx-migrate MODEL OUTPUT --json",
        "anyOf": [
            record({**_DONE, "output": optional(TEXT), "would_change": FLAG, "diff": many(ref("difference"))},
                   "A migration that was done.", may_lack=("would_change", "diff")),
            record(_FAILED, "A migration that was refused or failed."),
        ],
    },
    "batch": {
        "title": "a line of onnx-migrate batch --json-lines",
        "anyOf": [
            record({**_DONE, **_OF_BATCH}, "A model that is done; one that an earlier run did has no report.", may_lack=_CACHED),
            record({**_FAILED, **_OF_BATCH}, "A model that was refused or failed."),
            record(
                {
                    "kind": {"const": "totals"}, "schema_version": VERSION, "models": WHOLE, "ended": WHOLE, "preview": FLAG,
                    "complete": FLAG, "outcomes": table(WHOLE), "reasons": table(WHOLE), "verification": table(WHOLE),
                    "cached": WHOLE, "seconds": SECONDS,
                },
                "The last line.",
            ),
        ],
    },
    "journal": {
        "title": "a line of .onnx-migrate.jsonl, the journal of onnx-migrate batch --out-dir",
        **record(
            {
                "schema_version": VERSION, "source": TEXT, "output": TEXT,
                "content": described(table(TEXT), "digests of the files of the source"),
                "key": described({"type": "object"}, "options and versions, which --resume compares"),
                "outcome": one_of("migrated", "unchanged"), "verification": one_of("verified", "unverified", "not verified"),
                "doubt": TEXT, "written": described(table(TEXT), "digests of the files of the result"),
            }
        ),
    },
    "inspection": {
        "title": "onnx-migrate inspect MODEL... --json",
        **many({"anyOf": [record(_INSPECTION, "A model that could be read."), record(_FAILED, "One that could not.")]}),
    },
    "verdict": {
        "title": "onnx-migrate verify ORIGINAL OTHER --json",
        "anyOf": [
            record({
                "schema_version": VERSION, "original": TEXT, "other": TEXT, **DEFINITIONS["Verdict"]["properties"],
            }),
            record(_FAILED, "A comparison that could not be made."),
        ],
    },
    "explanation": {
        "title": "onnx-migrate explain ... --json",
        "anyOf": [
            record(
                {
                    "schema_version": VERSION, "recognised": {"const": True},
                    "codes": many(record({"code": TEXT, "text": TEXT, "page": TEXT}, "A code of onnx-migrate.")),
                    "steps": many(record({"code": TEXT, "heading": TEXT, "text": TEXT, "hint": TEXT})),
                    "operator": optional(ref("explained_operator")),
                    "runtime": optional({"anyOf": [ref("explained_release"), ref("explained_runtime")]}),
                    "errors": many(ref("explained_error")), "model": TEXT,
                },
                "A text that was recognised.",
                may_lack=("model",),
            ),
            record(
                {
                    "schema_version": VERSION, "recognised": {"const": False},
                    "near": record({
                        "names": many(TEXT), "errors": many(record({"name": TEXT, "title": TEXT})), "operators": many(TEXT),
                    }),
                },
                "A text that was not recognised, and what is nearest to it.",
            ),
            record(
                {
                    "schema_version": VERSION,
                    "groups": many(record({"title": TEXT, "known": many(record({"name": TEXT, "text": TEXT}))})),
                },
                "All that is known.",
            ),
            record(_FAILED, "A model, or a release of a runtime, that could not be read."),
        ],
    },
}  # fmt: skip
"""The schema of each kind of output, by the name of its file."""


def text(name: str) -> str:
    """Return the file of one kind of output, with the definitions that it uses."""
    body = SCHEMAS[name]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}-{SCHEMA_VERSION}.schema.json",
    }
    used: dict[str, Schema] = {}
    waiting = [body]
    while waiting:
        found = json.dumps(waiting.pop())
        for kind, definition in DEFINITIONS.items():
            if f'"#/$defs/{kind}"' in found and kind not in used:
                used[kind] = definition
                waiting.append(definition)
    return (
        json.dumps({**head, **body, "$defs": dict(sorted(used.items()))}, indent=1, ensure_ascii=False) + "\n"
    )


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (FOLDER / f"{name}-{SCHEMA_VERSION}.schema.json").write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
