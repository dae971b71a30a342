"""`python -m tests.campaigns.fuzz --cases 10000 --jobs 2`: tries random models; `--seed 12345` shows one and tries it again."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

import onnx

from tests.campaigns.fuzz.case import case_of
from tests.campaigns.fuzz.pool import Result, run

_CODE = re.compile(r"^[a-z]+(-[a-z]+)+$|^(truncated|empty|cycle|downgrade|usage)$")


def main() -> int:
    """Return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many seeds to try")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, help="show this one case, and try it as users do")
    parser.add_argument("--save", type=Path, metavar="FILE", help="with --seed: write its bytes to FILE")
    parser.add_argument(
        "--digests", type=Path, metavar="FILE", help="write a line per seed, to compare runs by"
    )
    options = parser.parse_args()
    if options.seed is not None:
        return _one(options.seed, options.save)
    start = time.monotonic()
    results = []
    for result in run(range(options.start, options.start + options.cases), options.jobs):
        results.append(result)
        for find in result.finds:
            print(f"seed {result.seed} ({result.kind}): {find}", flush=True)
        if len(results) % 500 == 0:
            print(f"{len(results)} cases, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    if options.digests:
        lines = [
            f"{item.seed} {item.result} {item.digest}\n"
            for item in sorted(results, key=lambda item: item.seed)
        ]
        options.digests.write_text("".join(lines), encoding="utf-8")
    _table(results, time.monotonic() - start)
    return int(any(result.finds for result in results))


def _one(seed: int, save: Path | None) -> int:
    case = case_of(seed)
    print(f"seed {seed}: {case.kind}, from {case.source}, passed as {case.passed_as}, {case.options}")
    try:
        model = onnx.ModelProto.FromString(case.data)
        try:
            print(onnx.printer.to_text(model) if len(case.data) < 200_000 else f"{len(case.data)} bytes")
        except Exception:  # the printer takes valid models alone
            print(str(model)[:20_000])
    except Exception as error:
        print(f"protobuf does not read it: {error}; {len(case.data)} bytes: {case.data[:200].hex(' ')}")
    if save:
        save.write_bytes(case.data)
    for isolated in (False, True):
        (result,) = run([seed], isolated=isolated)
        how = "native code in children" if isolated else "in one process"
        print(f"{how}: {result.result}, {result.seconds:.2f} s", *result.finds, sep="\n  ")
    return int(bool(result.finds))


def _table(results: list[Result], seconds: float) -> None:
    found = Counter(result.result for result in results)
    refused = {
        name: count for name, count in found.items() if _CODE.match(name) and name not in ("not compared",)
    }
    ours = {name: count for name, count in found.items() if name not in refused}
    print(f"\n{len(results)} cases in {seconds:.0f} s")
    for kind, count in sorted(Counter(result.kind for result in results).items()):
        print(f"  {kind:28}{count:7}")
    print("of these")
    for name, count in sorted(ours.items(), key=lambda item: -item[1]):
        print(f"  {name:28}{count:7}")
    print(f"  {'refused':28}{sum(refused.values()):7}")
    for name, count in sorted(refused.items(), key=lambda item: -item[1]):
        print(f"    {name:26}{count:7}")
    print(f"finds{sum(bool(result.finds) for result in results):33}")
    slowest = max(results, key=lambda item: item.seconds, default=None)
    if slowest:
        print(f"slowest: {slowest.seconds:.1f} s, seed {slowest.seed}")


if __name__ == "__main__":
    raise SystemExit(main())
