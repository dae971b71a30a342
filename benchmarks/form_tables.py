"""The files of the forms that releases computed right, and of those that failed, from what is kept of their runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path

from onnx_migrate.passes.targets.runtime_faults import faulty_nodes

from benchmarks.form_boxes import Sample, boxes, narrowed, of_kernels, widened
from benchmarks.form_samples import Kept, alike, learned, samples
from benchmarks.operator_cases import Case
from benchmarks.operator_rows import release_of
from onnx_migrate.files import load
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import CONTROL_FLOW
from onnx_migrate.standard.targets import FAILING, Box, holds, pairs_in, parse_forms, resolve
from onnx_migrate.standard.targets.releases import key
from tests.campaigns.runtimes.releases import run

__all__ = ["without_faults", "write_forms"]

_KERNELS = ("onnxruntime",)
"""The runtimes that give each node to a kernel, with the schema's defaults where an attribute is left out."""

_FUSING = ("opencv",)
"""The runtimes that fuse so many nodes that the pairs that were right are written, too."""

_NEARLY_ALL = {"onnxruntime": "1.17"}
"""The release from which on nothing but the forms that failed is written of a runtime."""


def write_forms(
    runtime: str, cases: Sequence[Case], into: Path, folder: Path, kept: Mapping[str, Kept], *, add: bool
) -> None:
    """Write the boxes of the forms of a runtime's releases, oldest first, from what is `kept` of them.

    `kept` has them by the version that was run. With `add`, boxes that are there are brought up to date, of releases of which not
    all is kept from which they were learned.
    """
    before = parse_forms(into.read_text(encoding="utf-8")) if add else None
    versions = {release_of(version): version for version in kept}
    if runtime == "onnxruntime":
        # What its newest computes otherwise than onnx recorded is no fault of the older ones.
        newest = list(kept.values())[-1]
        kept = {
            version: {name: one for name, one in own.items() if newest.get(name, one)[1] != "wrong"}
            for version, own in kept.items()
        }
    failing, last = into.name.endswith(FAILING), _NEARLY_ALL.get(runtime)
    releases = before.releases if before else tuple(versions)
    if last and not failing and not before:
        releases = (*(release for release in releases if key(release) < key(last)), last)
    found_boxes, found_pairs = [], []
    for at, release in enumerate(releases):
        version = versions.get(release, "")
        own = (
            without_faults(runtime, version, kept.get(version, {}), folder)
            if failing or release != last
            else {}
        )
        found = samples(cases, own, folder)
        fit = partial(_added, before.boxes[at], cases, own) if before else None
        known = dict(
            learned(found, own, folder, partial(_ends, runtime, version), ruled_out=failing, fit=fit)
        )
        if runtime in _KERNELS and not failing:
            for operator, own_boxes in known.items():
                failed = not all(one.right for one in found[operator])
                known[operator] = of_kernels(own_boxes, failed=failed)
        found_boxes.append(known)
        wanted = runtime in _FUSING and not failing
        found_pairs.append(_pairs(found, before.pairs[at] if before else {}) if wanted else {})
    into.write_text(_text(releases, found_boxes, found_pairs), encoding="utf-8")


def without_faults(runtime: str, version: str, kept: Kept, folder: Path) -> Kept:
    """Return what is kept without the models whose failing a fault of the release's table explains."""
    if not kept:
        return kept
    (target,) = resolve([f"{runtime}=={version}"])

    def has_a_fault(name: str) -> bool:
        path = folder / f"{name}.onnx"
        if not path.exists():
            return False
        model = load(path)
        opset = onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version) or 0
        return any(faulty.is_certain for faulty in faulty_nodes(target, model, opset))

    return {name: one for name, one in kept.items() if one[1] == "right" or not has_a_fault(name)}


def _ends(runtime: str, version: str, part: Path, names: Iterable[str]) -> Mapping[str, str]:
    return run(runtime, version, part, names).ended


def _pairs(found: Mapping[str, Sequence[Sample]], before: Mapping[str, Set[str]]) -> Mapping[str, Set[str]]:
    """Return the places and operators behind which operators were right, those of before too."""
    known = defaultdict[str, set[str]](set, {operator: set(pairs) for operator, pairs in before.items()})
    for operator, own in found.items():
        known[operator].update(pair for one in own if one.right for pair in pairs_in(one.facts))
    return known


def _text(
    releases: Sequence[str],
    found: Sequence[Mapping[str, Sequence[Box]]],
    pairs: Sequence[Mapping[str, Set[str]]],
) -> str:
    """Return what `parse_forms` reads: what is of several releases stands in one line."""
    of = defaultdict[str, list[int]](list)
    of_pairs = defaultdict[tuple[str, str], list[int]](list)
    for at, (known, behind) in enumerate(zip(found, pairs, strict=True)):
        for operator, own_boxes in sorted(known.items()):
            for box in own_boxes:
                plain = {name: sorted(taken) for name, taken in sorted(box.items())}
                of[json.dumps([operator, plain])].append(at)
        for operator, own in sorted(behind.items()):
            for pair in sorted(own):
                of_pairs[operator, pair].append(at)
    lines = [[operator, ats, box] for text, ats in of.items() for operator, box in (json.loads(text),)]
    together = defaultdict[str, list[str]](list)
    for (operator, pair), ats in of_pairs.items():
        together[json.dumps([operator, ats])].append(pair)
    lines += [[*json.loads(text), own] for text, own in together.items()]
    texts = [json.dumps(releases), *(json.dumps(line, separators=(",", ":")) for line in lines)]
    return "".join(f"{line}\n" for line in texts)


def _added(
    before: Mapping[str, Sequence[Box]],
    cases: Sequence[Case],
    kept: Mapping[str, tuple[str, str, str]],
    found: Mapping[str, Sequence[Sample]],
) -> Mapping[str, Sequence[Box]]:
    """Return the boxes of a release without what failed since, with the versions whose cases were run and what was right."""
    ran: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        if kept.get(case.name, ("", ""))[1] == "right":
            ran[case.operator].add(str(case.version))
    known = dict(before)
    for operator, own in found.items():
        if operator in before:
            versions = {name: like & ran[operator] for name, like in alike(operator).items()}
            known[operator] = narrowed(widened(before[operator], own, versions), own)
        new = [
            one
            for one in own
            if not (one.right and any(holds(box, one.facts) for box in known.get(operator, ())))
        ]
        if operator not in CONTROL_FLOW:
            known[operator] = [*known.get(operator, ()), *boxes(new)]
    return known
