"""The contents of a page, of one model or of a batch, as values that the template only has to place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from onnx_migrate.errors import Where
from onnx_migrate.plural import size_text
from onnx_migrate.report.codes import CODES
from onnx_migrate.report.html.diagram_parts import Drawing
from onnx_migrate.report.html.grouping import Group, grouped
from onnx_migrate.report.html.node_diagram import draw_blocked
from onnx_migrate.report.html.operator_view import OperatorView
from onnx_migrate.report.html.verification_view import VerificationView, shape_text
from onnx_migrate.report.report import AS_DECLARED

__all__ = ["Fact", "Failure", "ModelPage", "Note", "Port", "Row", "anchor"]


@dataclass(frozen=True)
class Fact:
    """A figure with its label; `new` if the migration changed it."""

    label: str
    value: str
    new: bool = False


@dataclass(frozen=True)
class Port:
    """An input or output of the model; `after` is "" if there is no result."""

    side: str
    name: str
    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class Note:
    """A note that is not about one changed node; `severity` is "info", "warning", "good" or "failed"."""

    severity: str
    text: str


@dataclass(frozen=True)
class Failure:
    """Why a model was not migrated, and a drawing of the node that could not be migrated, if it is known."""

    code: str
    meaning: str
    place: str
    reason: str
    hint: str
    drawing: Drawing | None
    texts: tuple[str, ...]


@dataclass(frozen=True)
class ModelPage:
    """All that a page shows of one model; fields without content are empty or None."""

    name: str
    outcome: str
    output: str
    cached: bool
    failure: Failure | None
    facts: tuple[Fact, ...]
    ports: tuple[Port, ...]
    changed: int
    groups: tuple[Group, ...]
    notes: tuple[Note, ...]
    trials: tuple[Note, ...]
    proved_in: tuple[Note, ...]
    verification: VerificationView | None
    seconds: tuple[Fact, ...]
    targets: tuple[Note, ...] = ()
    command: str = ""
    versions: str = ""
    operators: OperatorView = field(default_factory=OperatorView)

    @classmethod
    def of(cls, report: Mapping[str, Any], *, listed: int) -> ModelPage:
        """Prepare the dict of a report or of a failure; at most `listed` nodes are listed for one drawing."""
        changes = report.get("changes") or ()
        before, after = report.get("before"), report.get("after")
        dynamic = report.get("dynamic") or {"trials": (), "notes": ()}
        seconds = report.get("seconds") or {}
        return cls(
            name=report["model"],
            outcome=report["outcome"],
            output=report.get("output") or "" if "error" not in report else "",
            cached=bool(report.get("cached")),
            failure=_failure(report) if "error" in report else None,
            facts=(
                *_facts(before, after, report.get("file_bytes")),
                *([Fact("changed nodes", f"{len(changes):,}")] if before else ()),
                *([Fact("time", f"{sum(seconds.values()):.2f} s")] if seconds else ()),
            ),
            ports=_ports(before, after) if before else (),
            changed=len(changes),
            groups=grouped(changes, listed=listed),
            notes=tuple(Note(item["severity"], item["message"]) for item in report.get("notes") or ()),
            trials=(
                *map(_trial, dynamic["trials"]),
                *(Note("info", text) for text in dynamic["notes"]),
            ),
            proved_in=tuple(map(_proved_in, report.get("proved_in") or ())),
            verification=VerificationView.of(report["verification"]) if report.get("verification") else None,
            seconds=tuple(Fact(stage, f"{value:.3f} s") for stage, value in seconds.items()),
            operators=OperatorView.of(report),
            **_request(report.get("request")),
        )


@dataclass(frozen=True)
class Row:
    """The row of a model in the table of a batch; `reason` says why it was not migrated."""

    anchor: str
    model: str
    outcome: str
    verified: str
    opset: str
    changes: str
    seconds: float
    reason: str

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Row:
        """Prepare the object of a model's JSON line."""
        before, after = entry.get("before") or {}, entry.get("after") or {}
        error, verification = entry.get("error"), entry.get("verification")
        reason = "done by an earlier run" if entry.get("cached") else ""
        if error:
            reason = f"{error['code']}: {error['reason']}"
        return cls(
            anchor(entry["model"]),
            entry["model"],
            entry["outcome"],
            verification["kind"]
            if verification
            else entry.get("status") or ("not verified" if after else ""),
            " → ".join(dict.fromkeys(str(side["opset"]) for side in (before, after) if side)),
            f"{len(entry['changes']):,}" if after else "",
            entry["total_seconds"],
            reason,
        )


def anchor(model: str) -> str:
    """Return the HTML id of a model's part in the page of a batch; it depends on the name only."""
    return f"m{hashlib.blake2b(model.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"


def _facts(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, sizes: Mapping[str, int] | None
) -> Iterable[Fact]:
    if before is None:
        return
    result = after or before
    yield _both("opset", before["opset"], result["opset"])
    for domain, version in before["opset_imports"].items():
        if domain not in ("", "ai.onnx") and version != result["opset_imports"].get(domain):
            yield _both(domain, version, result["opset_imports"].get(domain, "not imported"))
    yield _both("IR version", before["ir_version"], result["ir_version"])
    yield _both("nodes", f"{before['nodes']:,}", f"{result['nodes']:,}")
    if "weight_bytes" in before:  # the report of an older version does not have it
        yield _both("weights", size_text(before["weight_bytes"]), size_text(result["weight_bytes"]))
    if sizes:
        yield _both("file", size_text(sizes["before"]), size_text(sizes["after"]))


def _request(request: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a page shows of a request."""
    if request is None:
        return {}
    options = ", ".join(f"{name}={value!r}" for name, value in request["options"].items())
    return {
        "targets": tuple(map(_target, request["targets"])),
        "command": request["command"] or f"migrate(…{', ' if options else ''}{options})",
        "versions": ", ".join(f"{name} {number}" for name, number in request["versions"].items() if number),
    }


def _target(target: Mapping[str, Any]) -> Note:
    takes = [f"opsets up to {target['opset']}"] if target["opset"] else []
    takes += [f"IR versions up to {target['ir_version']}"] if target["ir_version"] else []
    name = f"{target['title']} {target['release'] or ''}".rstrip()
    measured = "measured" if target["measured"] else "read, not measured"
    source = f" ({target['source']})" if target["source"] else ""
    return Note("info", f"{name}{': ' if takes else ''}{', '.join(takes)}; {measured}{source}")


def _both(label: str, old: object, new: object) -> Fact:
    return Fact(label, f"{old}" if old == new else f"{old} → {new}", new=old != new)


def _ports(before: Mapping[str, Any], after: Mapping[str, Any] | None) -> tuple[Port, ...]:
    found = []
    for side in ("inputs", "outputs"):
        for old, new in zip_longest(before[side], after[side] if after else ()):
            result = shape_text(new["shape"]) if new else ""
            found.append(Port(side[:-1], old["name"], old["type"], shape_text(old["shape"]), result))
    return tuple(found)


def _failure(report: Mapping[str, Any]) -> Failure:
    error, blocked = report["error"], report.get("blocked")
    drawing, texts = draw_blocked(blocked) if blocked else (None, None)
    fields = ("scope", "node", "operator", "from_version", "to_version")
    where = Where(*(error[field] for field in fields)) if error["node"] or error["operator"] else None
    return Failure(
        error["code"],
        CODES.get(error["code"], ""),
        str(where or ""),
        error["reason"],
        error["hint"],
        drawing,
        tuple(texts.texts) if texts else (),
    )


def _proved_in(proof: Mapping[str, Any]) -> Note:
    grade = (
        "failed" if not proof["passed"] else "good" if proof["outcome"] in ("right", "gained") else "warning"
    )
    return Note(grade, ". ".join((f"{proof['runtime']}: {proof['text']}", *proof["notes"])))


def _trial(trial: Mapping[str, Any]) -> Note:
    sizes = ", ".join(f"{name}={size}" for name, size in trial["sizes"])
    if trial["problem"]:
        return Note("failed", f"{sizes}: {trial['problem']}")
    return Note("good", f"{sizes}: {AS_DECLARED}")
