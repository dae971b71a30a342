"""Pairs of models that are equal: none may be reported as different.

    python -m tests.campaigns.proof.equal                          # 300 pairs
    python -m tests.campaigns.proof.equal --pairs 60 --seed 3 --save FOLDER
    pip install onnxslim                                           # adds its results

A rewrite or an optimiser makes the second model of the first. A pair counts if `witness.search` finds no input on which
the models differ. Pairs that stay unverified are counted apart. The command exits with 1 if a pair is reported as different.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import onnx

from tests.campaigns.proof.base import Base, recorded, written
from tests.campaigns.proof.forked import Died, call, import_what_it_imports
from tests.campaigns.proof.rewrites import REWRITES
from tests.campaigns.proof.surroundings import Unfit
from tests.campaigns.proof.witness import search
from tests.support.paths import FIXTURES

__all__ = ["fixtures", "judged"]

_NOT_COUNTED = ("unfit", "not equal", "no result")

_LEAST_FEEDS = 3
"""Valid feeds on which both models must agree for a pair to count as equal."""


def fixtures() -> Iterator[Base]:
    """Yield the models of the fixtures with a recorded feed."""
    for file in sorted(FIXTURES.glob("*.onnx")):
        model = onnx.load(file)
        data = np.load(file.with_name(f"{file.stem}.io.npz"))
        feed = {value.name: data[value.name] for value in model.graph.input if value.name in data.files}
        yield Base(file.stem, model, feed, "fixture")


def judged(base: Base, name: str) -> tuple[str, str, bytes]:
    """Return the verdict on a rewritten model, its reason, and the model; "unfit" or "not equal" if the pair does not count."""
    import onnxruntime

    from onnx_migrate import MigrateError
    from onnx_migrate.comparison import compare

    onnxruntime.set_default_logger_severity(4)
    other = onnx.ModelProto()
    other.CopyFrom(base.model)
    try:
        REWRITES[name](other)
    except Unfit as error:
        return "unfit", str(error), b""
    if other.SerializeToString() == base.model.SerializeToString():
        return "unfit", "nothing changed", b""
    found = search(base.model, other, base.feed)
    if not isinstance(found, str):
        return "not equal", f"{found.corner}: {found.difference}", b""
    if not found.startswith("equal on") or int(found.split()[2]) < _LEAST_FEEDS:
        return "unfit", found, b""
    try:
        verdict = compare(base.model, other, isolated=False, timeout=60)
    except MigrateError as error:
        return "refused", str(error), other.SerializeToString()
    return verdict.kind.value, verdict.reason, other.SerializeToString()


def _pairs(seed: int, table: dict[str, Counter[str]], *, only_written: bool) -> Iterator[tuple[Base, str]]:
    """Yield models with the rewrite that is to be tried; the rewrite of which the fewest pairs count comes first."""
    rng = Random(seed)
    bases = [*fixtures(), *written()]
    others = [] if only_written else list(recorded())
    bases += rng.sample(others, min(len(others), 150))
    left = {name: rng.sample(bases, len(bases)) for name in REWRITES}
    while any(left.values()):
        counts = {
            name: sum(n for key, n in table[name].items() if key not in _NOT_COUNTED)
            for name in left
            if left[name]
        }
        name = min(counts, key=lambda name: counts[name])
        yield left[name].pop(), name


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--written", action="store_true", help="only fixtures and models that are written as text"
    )
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="writes each pair that is not verified there"
    )
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    counted, begin = 0, time.perf_counter()
    import_what_it_imports(judged, next(written()), "nodes renamed")
    for base, name in _pairs(asked.seed, table, only_written=asked.written):
        if counted >= asked.pairs:
            break
        try:
            verdict, reason, data = call(judged, base, name, seconds=120)
        except (Died, RuntimeError) as error:
            verdict, reason, data = "no result", str(error), b""
        table[name][verdict] += 1
        if verdict in _NOT_COUNTED:
            continue
        counted += 1
        if verdict != "verified":
            print(f"{verdict.upper()}: {base.name}, {name}: {reason[:200]}", flush=True)
            if asked.save:
                _write(asked.save, base, name, verdict, reason, data)
    totals = sum(table.values(), Counter[str]())
    for name, counts in table.items():
        print(f"{name:32} {dict(counts)}")
    print(f"{counted} equal pairs: {dict(totals)}, {time.perf_counter() - begin:.0f} s")
    if asked.json:
        asked.json.write_text(json.dumps(table, indent=1))
    return int(totals["differs"] > 0)


def _write(folder: Path, base: Base, name: str, verdict: str, reason: str, data: bytes) -> None:
    place = folder / f"equal-{base.name}-{name.replace(' ', '_').replace('*', 'x')}"
    place.mkdir(parents=True, exist_ok=True)
    onnx.save(base.model, place / "a.onnx")
    (place / "b.onnx").write_bytes(data)
    np.savez(place / "witness.npz")
    (place / "note.txt").write_text(
        f"an equal pair ({name}) of {base.name}\nverify says: {verdict}\nreason: {reason}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
