"""The forms of nodes that a release was run with, right and wrong: of the cases of operators, of whole models and of their cuts.

In a model that is right, all nodes are; in a cut or a case that is not, the node that it is of is not. Where a whole model fails
although all of its nodes are right by themselves, the first node whose value is wrong is found by models that end there, and
counts as wrong after the nodes before it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from pathlib import Path

import onnx
from onnx.defs import OpSchema, get_all_schemas_with_history

from benchmarks.form_boxes import Sample, boxes, failing_boxes, widened
from benchmarks.model_cuts import cuts, forms_of, read_whole, write_cut
from benchmarks.operator_cases import Case
from benchmarks.operator_rows import UNFED
from onnx_migrate.standard.targets import AFTER, Box, NodeForm, holds

__all__ = ["Kept", "add_models", "alike", "learned", "samples", "wanted"]

Kept = Mapping[str, tuple[str, str, str]]
"""How models ended in a release by their names: what tells the file apart, how, and why."""

_BODIES = {"If", "Loop", "Scan"}
"""Operators of which a few right models say nothing: what they do hangs on their bodies."""

_MISSING = "NOT_IMPLEMENTED"
"""What ONNX Runtime says where it has no kernel for the types of a node."""

_ROUNDS = 8
"""How often the first wrong node of models that fail is looked for."""

_ALL = 1 << 20
"""More nodes than a model has."""


def add_models(models: Path, folder: Path) -> None:
    """Take the models of a folder, which has their data in io, and cut them, those that are not there yet."""
    for part in ("whole", "cuts", "io"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    index = folder / "cuts.json"
    counts = Counter[str](json.loads(index.read_text(encoding="utf-8"))) if index.exists() else Counter[str]()
    for path in sorted(models.glob("*.onnx")):
        data = models / "io" / f"{path.stem}.npz"
        if (folder / "whole" / path.name).exists():
            continue
        for name, cut in cuts(path, data, counts):
            write_cut(folder, f"cuts/{name}", cut)
        shutil.copy(data, folder / "io" / data.name)
        shutil.copy(path, folder / "whole" / path.name)
        index.write_text(json.dumps(counts), encoding="utf-8")


def wanted(folder: Path) -> dict[str, str]:
    """Return the names of the whole models and of their cuts, with what tells their files apart."""
    paths = [*sorted((folder / "cuts").glob("*.onnx")), *sorted((folder / "whole").glob("*.onnx"))]
    return {f"{path.parent.name}/{path.stem}": _digest(path) for path in paths}


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def samples(cases: Sequence[Case], kept: Kept, folder: Path) -> dict[str, list[Sample]]:
    """Return what was found in a release, by operator."""
    found: dict[str, list[Sample]] = defaultdict(list)
    known = {case.name: case for case in cases}
    for name, (digest, how, why) in kept.items():
        case = known.get(name)
        part = name.partition("/")[0]
        path = folder / f"{name}.onnx"
        if (
            how == "times out"
            or any(part in why for part in UNFED)
            or not path.exists()
            or (case and (case.digest != digest or case.empty))
        ):
            continue
        lowered = case is not None and case.others and "form_" not in name
        if how == "right":
            for form in _forms(path):
                found[_named(form)].append(Sample(form.facts, right=True))
        elif part == "cuts":
            form = _forms(path)[-1]
            found[_named(form)].append(Sample(form.facts, right=False))
        elif case is not None and not lowered:
            for form in _forms(path):
                if form.operator == case.operator:
                    missing = _MISSING in why and f"{case.operator}({case.version})" in why
                    found[_named(form)].append(Sample(form.facts, right=False, missing=missing))
    return found


def learned(
    found: dict[str, list[Sample]],
    kept: Kept,
    folder: Path,
    ends: Callable[[Path, Iterable[str]], Mapping[str, str]],
    *,
    ruled_out: bool = False,
    fit: Callable[[Mapping[str, Sequence[Sample]]], Mapping[str, Sequence[Box]]] | None = None,
) -> Mapping[str, Sequence[Box]]:
    """Return the boxes of the operators of a release, in none of which is a whole model that fails.

    With `ruled_out` they are those of what failed, and a node of each whole model that fails is in one. `ends` runs models of a
    folder in the release and returns how they end. What it finds is added to the samples, of which `fit` makes the boxes.
    """
    fit = fit or partial(_known, ruled_out=ruled_out)
    failing = [
        name
        for name, (_, how, _) in kept.items()
        if name.startswith("whole/") and how not in ("right", "times out")
    ]
    known = fit(found)
    for _ in range(_ROUNDS):
        unexplained = [
            name
            for name in failing
            if (folder / f"{name}.onnx").exists()
            and all(_held(known)(form) is not ruled_out for form in _forms(folder / f"{name}.onnx"))
        ]
        if not unexplained:
            break
        for name in unexplained:
            wrong = _named_in(kept[name][2], folder / f"{name}.onnx") or _first_wrong(folder, name, ends)
            for form in wrong or _forms(folder / f"{name}.onnx"):
                found[_named(form)].append(Sample(form.facts, right=False))
        known = fit(found)
    return known


def _known(found: Mapping[str, Sequence[Sample]], *, ruled_out: bool) -> dict[str, list[Box]]:
    return {
        operator: failing_boxes(own) if ruled_out else widened(boxes(own), own, alike(operator))
        for operator, own in found.items()
        if ruled_out or operator not in _BODIES
    }


@cache
def alike(operator: str) -> Mapping[str, frozenset[str]]:
    """Return for each version of an operator those from which it differs in types alone, by its schema."""
    versions = sorted(
        (one for one in get_all_schemas_with_history() if one.name == operator and not one.domain),
        key=lambda one: one.since_version,
    )
    found: dict[str, frozenset[str]] = {}
    for _, group in groupby(versions, key=_signature):
        own = frozenset(str(one.since_version) for one in group)
        found |= dict.fromkeys(own, own)
    return found


def _signature(schema: OpSchema) -> object:
    parts = [[(one.name, one.option) for one in part] for part in (schema.inputs, schema.outputs)]
    attributes = sorted(
        (name, str(own.type), own.required, own.default_value.SerializeToString())
        for name, own in schema.attributes.items()
    )
    return parts, attributes


def _held(known: Mapping[str, Sequence[Box]]) -> Callable[[NodeForm], bool]:
    return lambda form: any(holds(box, form.facts) for box in known.get(_named(form), ()))


def _named_in(why: str, path: Path) -> list[NodeForm]:
    """Return the form of the node whose name an error says; nothing where it says none."""
    nodes = [
        node.name
        for node in onnx.load(path, load_external_data=False).graph.node
        if node.op_type != "Constant"
    ]
    said = [
        at
        for at, name in enumerate(nodes)
        if name and re.search(rf"(?<![\w/.]){re.escape(name)}(?![\w/.])", why)
    ]
    forms = _forms(path)
    return [forms[max(said, key=lambda at: len(nodes[at]))]] if said and len(forms) == len(nodes) else []


def _first_wrong(
    folder: Path, name: str, ends: Callable[[Path, Iterable[str]], Mapping[str, str]]
) -> list[NodeForm]:
    """Return the form of the first node of a model whose value is wrong in the release; nothing if that cannot be found."""
    whole = read_whole(folder / f"{name}.onnx", folder / "io" / f"{name.partition('/')[2]}.npz")
    if whole is None:
        return []
    part, low, high = folder / "part", -1, len(whole.data) - 1
    (part / "io").mkdir(parents=True, exist_ok=True)

    def fails(at: int) -> bool:
        cut = whole.cut(whole.data[at], _ALL)
        if cut is None:
            return False
        write_cut(part, "part", cut)
        return ends(part, ["part"])["part"] != "right"

    if not fails(high):
        return []
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    output = whole.proto.graph.node[whole.data[high]].output[0]
    places = [node.output[0] for node in whole.proto.graph.node if node.op_type != "Constant"]
    form = _forms(folder / f"{name}.onnx")[places.index(output)]
    print(f"{name}: the first wrong is {form.operator} after {form.facts[AFTER]}", flush=True)
    return [form]


def _named(form: NodeForm) -> str:
    return f"{form.domain}.{form.operator}" if form.domain else form.operator


@cache
def _forms(path: Path) -> tuple[NodeForm, ...]:
    try:
        return tuple(forms_of(path))
    except onnx.shape_inference.InferenceError:
        return ()
