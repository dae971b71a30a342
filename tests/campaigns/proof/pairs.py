"""Pairs of models that differ in one corner, held against `verify`.

    python -m tests.campaigns.proof.pairs                            # 1,000 pairs over all operators, seed 0
    python -m tests.campaigns.proof.pairs --pairs 200 --seed 3 --only Gather --save FOLDER

For each operator, changes and surroundings are drawn in turn. A pair counts if an input is found on which both models run and
differ. A third of the pairs may differ on ordinary inputs. The others need an extreme input, for example ties, large numbers
or another size. Each pair is compared as `onnx-migrate verify` does. With `--exact` it is also compared as a migration compares
a result that claims to be bit-identical. `--save` writes each pair that was verified, with its witness. The last line is the
share that was verified. The command exits with 1 if that is more than one pair in a hundred.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tests.campaigns.proof.base import Base, recorded, written
from tests.campaigns.proof.forked import Died, call, import_what_it_imports
from tests.campaigns.proof.mutations import changes
from tests.campaigns.proof.surroundings import SURROUNDINGS, Unfit
from tests.campaigns.proof.witness import Witness, search

__all__ = ["Pair", "Trial", "pairs", "trial"]

_TRIES = 60
"""Pairs without a witness, one after another, after which an operator is left out."""

_BASES = 12
"""Cases of one operator that are drawn from."""


@dataclass(frozen=True)
class Pair:
    """Two models that may differ, and how the second was made."""

    name: str
    operator: str
    kind: str
    change: str
    surrounding: str
    original: onnx.ModelProto
    other: onnx.ModelProto
    feed: dict[str, Any]


@dataclass
class Trial:
    """What became of a pair: its witness, the verdict of `verify`, and that on a claim of bit-identity."""

    witness: Witness | None
    skipped: str = ""
    verdict: str = ""
    reason: str = ""
    exact: str = ""
    undeclared: bool = False
    """Whether the outputs of both models have no declared shapes: those of the change are others."""


def trial(pair: Pair, *, exact: bool = False, corners_only: bool = False) -> Trial:
    """Search a witness and compare a pair; call it in a child, as kernels may crash.

    With `corners_only`, a pair that differs on ordinary inputs is not compared.
    """
    undeclared = _has_other_shapes(pair.original, pair.other)
    if undeclared:
        _undeclare(pair)
    found = search(pair.original, pair.other, pair.feed)
    if isinstance(found, str):
        return Trial(None, found)
    if corners_only and found.ordinary:
        return Trial(None, "differs on ordinary inputs")
    verdict, reason = _compared(pair)
    return Trial(found, "", verdict, reason, _claimed(pair) if exact else "", undeclared)


def _compared(pair: Pair) -> tuple[str, str]:
    from onnx_migrate import MigrateError
    from onnx_migrate.comparison import compare

    try:
        verdict = compare(pair.original, pair.other, isolated=False, timeout=40)
    except MigrateError as error:
        return "refused", str(error)
    return verdict.kind.value, verdict.reason


def _claimed(pair: Pair) -> str:
    """Return the verdict on the second model as the result of a pass that claims to keep every bit."""
    from onnx_migrate import MigrateError, files
    from onnx_migrate.model.model import Segment
    from onnx_migrate.verify import Settings
    from onnx_migrate.verify.prover import Prover

    try:
        original, other = files.load(pair.original), files.load(pair.other)
        with Prover(Settings(isolated=False)) as prover:
            return prover.verify(Segment(original, other, other, exact=True)).kind.value
    except MigrateError:
        return "refused"


def pairs(bases: list[Base], seed: int = 0) -> Iterator[list[Iterator[Pair]]]:
    """Yield one list: for each operator, its pairs in a random order that the seed decides."""
    by_operator = defaultdict(list)
    for base in bases:
        by_operator[base.operator].append(base)
    yield [_of_operator(name, of, seed) for name, of in sorted(by_operator.items())]


def _of_operator(name: str, bases: list[Base], seed: int) -> Iterator[Pair]:
    rng = Random(f"{seed} {name}")
    drawn = rng.sample(bases, min(len(bases), _BASES))
    lists = [_of_base(base, rng) for base in drawn]
    while lists:
        for one in list(lists):
            pair = next(one, None)
            if pair is None:
                lists.remove(one)
            else:
                yield pair


def _of_base(base: Base, rng: Random) -> Iterator[Pair]:
    for constant in (True, False):
        model, feed = _with_constants(base) if constant else (base.model, base.feed)
        if constant and len(feed) == len(base.feed):
            continue
        by_kind = defaultdict(list)
        for change in changes(model, rng):
            by_kind[change[0]].append(change)
        for changed in by_kind.values():
            rng.shuffle(changed)
        # A kind with many changes, as that of attributes, must not crowd out the others.
        while any(by_kind.values()):
            for kind in sorted(by_kind):
                if by_kind[kind]:
                    _, label, other = by_kind[kind].pop()
                    yield from _placed(base, model, feed, kind, label, other, rng)


def _placed(
    base: Base,
    model: onnx.ModelProto,
    feed: dict[str, Any],
    kind: str,
    label: str,
    other: onnx.ModelProto,
    rng: Random,
) -> Iterator[Pair]:
    name = "plain" if rng.random() < 0.4 else rng.choice(sorted(SURROUNDINGS))
    place = SURROUNDINGS[name]
    try:
        (original, given), (changed, _) = place(model, model, feed), place(model, other, feed)
    except Unfit:
        name, original, changed, given = "plain", model, other, feed
    yield Pair(base.name, base.operator, kind, label, name, original, changed, given)


def _has_other_shapes(*models: onnx.ModelProto) -> bool:
    """Return whether inference finds other shapes of outputs in the changed model, or fails."""
    try:
        known = [onnx.shape_inference.infer_shapes(_without_shapes(model)) for model in models]
    except Exception:
        return True
    shapes = [[value.type.SerializeToString() for value in model.graph.output] for model in known]
    return shapes[0] != shapes[1]


def _without_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return copy


def _undeclare(pair: Pair) -> None:
    """Remove the declared shapes of outputs, so that the interfaces of both models are equal."""
    for model in (pair.original, pair.other):
        model.CopyFrom(_without_shapes(model))


def _with_constants(base: Base) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return the model in which every tensor but the first that it is fed is a constant."""
    model = onnx.ModelProto()
    model.CopyFrom(base.model)
    inputs, feed = list(model.graph.input), dict(base.feed)
    del model.graph.input[:]
    for index, value in enumerate(inputs):
        array = base.feed.get(value.name)
        if index and isinstance(array, np.ndarray) and array.dtype.kind in "fiub":
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
            del feed[value.name]
        else:
            model.graph.input.append(value)
    model.ir_version = max(model.ir_version, 4)
    return model, feed


@dataclass
class Campaign:
    """The counts of a run."""

    save: Path | None
    exact: bool
    ordinary_left: int
    """How many more pairs count that differ on ordinary inputs; the rest must differ in a corner."""
    tried: int = 0
    counted: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    claims: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    operators: set[str] = field(default_factory=set)
    tables: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, pair: Pair) -> bool:
        """Try a pair and count it; return whether it has a witness."""
        self.tried += 1
        try:
            done: Trial = call(_quiet_trial, pair, self.exact, self.ordinary_left <= 0, seconds=90)
        except (Died, RuntimeError) as error:
            self.skipped[_kind_of_skip(str(error))] += 1
            return False
        if done.witness is None:
            self.skipped[done.skipped.split(" on ")[0]] += 1
            return False
        if done.undeclared:
            _undeclare(pair)
        self.counted += 1
        self.ordinary_left -= done.witness.ordinary
        self.verdicts[done.verdict] += 1
        if self.exact:
            self.claims[done.exact] += 1
        self.operators.add(pair.operator)
        for table, key in (
            ("change", pair.kind),
            ("surrounding", pair.surrounding),
            ("corner", _corner(done.witness)),
        ):
            self.tables[table][f"{key}|{done.verdict}"] += 1
        if "verified" in (done.verdict, done.exact):
            self._survivor(pair, done)
        return True

    def _survivor(self, pair: Pair, done: Trial) -> None:
        assert done.witness
        says = "verified" if done.verdict == "verified" else "verified as bit-identical"
        print(
            f"{self.counted:5} SURVIVED {says}: {pair.name}, {pair.change} ({pair.surrounding}); corner {done.witness.corner!r}:"
            f" {done.witness.difference}",
            flush=True,
        )
        if self.save is not None:
            _write(self.save, pair, done, self.counted)


def _kind_of_skip(text: str) -> str:
    if "Unloadable" in text:
        return "a model does not load"
    return text.split(":")[0][:60]


def _corner(witness: Witness) -> str:
    if witness.ordinary:
        return "on ordinary inputs"
    name = witness.corner.split(",")[0]
    return "sizes" if " of " in name else name


def _quiet_trial(pair: Pair, exact: bool, corners_only: bool = False) -> Trial:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    return trial(pair, exact=exact, corners_only=corners_only)


def _write(folder: Path, pair: Pair, done: Trial, number: int) -> None:
    assert done.witness
    operator = pair.operator.replace(":", "_").strip("_")
    place = folder / f"{operator}-{pair.kind.replace(' ', '_')}-{number:04}"
    place.mkdir(parents=True, exist_ok=True)
    onnx.save(pair.original, place / "a.onnx")
    onnx.save(pair.other, place / "b.onnx")
    # Sequences and maps become arrays of objects.
    feed = {
        k: np.asarray(v, object) if isinstance(v, (list, dict)) else v for k, v in done.witness.feed.items()
    }
    np.savez(place / "witness.npz", **feed)
    note = {
        "case": pair.name,
        "change": f"{pair.kind}: {pair.change}",
        "surrounding": pair.surrounding,
        "corner of the witness": done.witness.corner,
        "valid feeds without a difference before it": done.witness.feeds_without,
        "difference": done.witness.difference,
        "runtime": done.witness.runtime,
        "verify says": done.verdict,
        "as a claim of bit-identity": done.exact,
    }
    (place / "note.txt").write_text("".join(f"{key}: {value}\n" for key, value in note.items()))


def run(campaign: Campaign, bases: list[Base], wanted: int, seed: int, seconds: float) -> None:
    """Take pairs of all operators in turn until `wanted` have a witness, none is left, or the time is over."""
    end = time.perf_counter() + seconds
    rows = [[one, 0] for one in next(pairs(bases, seed))]
    while rows and campaign.counted < wanted:
        for row in list(rows):
            pair = next(row[0], None)
            hit = pair is not None and campaign.add(pair)
            row[1] = 0 if hit else row[1] + 1
            if pair is None or row[1] > _TRIES:
                rows.remove(row)
            if campaign.counted >= wanted or time.perf_counter() > end:
                return


def report(campaign: Campaign, seconds: float) -> dict[str, Any]:
    """Print the tables and return all figures."""
    for table, counts in campaign.tables.items():
        print(f"\n{table:24} verified    of")
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for key, number in counts.items():
            name, verdict = key.rsplit("|", 1)
            totals[name][1] += number
            totals[name][0] += number if verdict == "verified" else 0
        for name, (survived, number) in sorted(totals.items(), key=lambda row: -row[1][1]):
            print(f"{name:24} {survived:8} {number:5}")
    print(f"\nnot counted: {dict(campaign.skipped.most_common(8))}")
    share = campaign.verdicts["verified"] / max(1, campaign.counted)
    print(f"verdicts: {dict(campaign.verdicts)}; claimed bit-identical: {dict(campaign.claims)}")
    print(
        f"verified: {campaign.verdicts['verified']} of {campaign.counted} pairs ({share:.1%}), {seconds:.0f} s"
    )
    return {
        "counted": campaign.counted,
        "verdicts": dict(campaign.verdicts),
        "claims": dict(campaign.claims),
        "skipped": dict(campaign.skipped),
        **{table: dict(counts) for table, counts in campaign.tables.items()},
    }


def again(folder: Path, *, exact: bool) -> int:
    """Compare the pairs in a folder once more, list those that are verified, and return 1 if there are any."""
    verdicts: Counter[str] = Counter()
    files = sorted(folder.glob("*/a.onnx"))
    import_what_it_imports(_quiet_verdicts, next(_of_operator("", [next(written())], 0)), exact)
    for file in files:
        models = onnx.load(file), onnx.load(file.with_name("b.onnx"))
        pair = Pair(file.parent.name, "", "", "", "", *models, {})
        try:
            verdict, claim = call(_quiet_verdicts, pair, exact, seconds=90)
        except (Died, RuntimeError) as error:
            verdict, claim = "no result", str(error)[:60]
        verdicts[verdict] += 1
        if "verified" in (verdict, claim):
            print(f"{verdict} {claim}: {file.parent.name}", flush=True)
    print(f"{len(files)} pairs: {dict(verdicts)}")
    return int(verdicts["verified"] > 0)


def _quiet_verdicts(pair: Pair, exact: bool) -> tuple[str, str]:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    return _compared(pair)[0], _claimed(pair) if exact else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1000, help="pairs with a witness to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600.0, help="reports after so long")
    parser.add_argument(
        "--only", default="", metavar="OPERATOR", help="only operators whose name contains this"
    )
    parser.add_argument("--written", action="store_true", help="only the models that are written as text")
    parser.add_argument("--exact", action="store_true", help="also as results that claim to be bit-identical")
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="writes each verified pair there with its witness"
    )
    parser.add_argument(
        "--again", type=Path, metavar="FOLDER", help="compare the pairs that --save wrote, and no others"
    )
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.again:
        return again(asked.again, exact=asked.exact)
    bases = [*written(), *([] if asked.written else recorded())]
    bases = [base for base in bases if asked.only in base.operator]
    campaign, begin = Campaign(asked.save, asked.exact, asked.pairs // 3), time.perf_counter()
    import_what_it_imports(_quiet_trial, next(_of_operator("", bases[:1], 0)), asked.exact)
    run(campaign, bases, asked.pairs, asked.seed, asked.seconds)
    figures = report(campaign, time.perf_counter() - begin)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1))
    return 1 if campaign.verdicts["verified"] > 0.01 * campaign.counted else 0


if __name__ == "__main__":
    sys.exit(main())
