"""Prints what becomes of the node-test cases at older opsets.

python -m tests.campaigns.conformance.lowered_table [--shipped] [--setting SETTING] [--tool TOOL] [--list]
    [--only NAME] [TARGET ...]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence

from tests.campaigns.conformance.judge import SETTINGS
from tests.campaigns.conformance.lowered import OURS, TARGETS, lowered_outcomes, names_above


def main(argv: Sequence[str] | None = None) -> int:
    """Print what became of the cases at each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", type=int, default=TARGETS)
    parser.add_argument("--shipped", action="store_true", help="bind nothing")
    parser.add_argument("--setting", choices=[*SETTINGS], default="as shipped")
    parser.add_argument("--tool", choices=[OURS, "onnx.version_converter"], default=OURS)
    parser.add_argument("--list", action="store_true", help="print every case that does not pass")
    parser.add_argument("--only", default="", help="a regular expression for names of cases")
    options = parser.parse_args(argv)
    bad = 0
    for target in options.targets:
        names = [name for name in names_above(target) if re.search(options.only, name)]
        found = lowered_outcomes(
            names, target, setting=options.setting, bound=not options.shipped, tool=options.tool
        )
        kinds = Counter(outcome.kind for outcome in found.values())
        print(f"to {target}: {kinds['passed']} of {len(names)} passed; {dict(kinds)}", flush=True)
        bad += kinds["wrong"] + kinds["illegal"] + kinds["crashed"] + kinds["hung"]
        if options.list:
            for name, outcome in sorted(found.items(), key=lambda item: (item[1].kind, item[1].text)):
                if not outcome.passed:
                    print(f"  {outcome.kind} {name}: {' '.join(outcome.text.split())[:260]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
