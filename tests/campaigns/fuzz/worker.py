"""The child of a pool: reads seeds from its input, one a line, and writes what came of each as a line of JSON."""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import time

from tests.campaigns.fuzz.case import case_of, prepare
from tests.campaigns.fuzz.oracle import Outcome, check
from tests.campaigns.fuzz.pool import MEMORY

__all__ = ["main"]


def main() -> None:
    """Run the cases that the parent asks for until it closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # native code prints
    logging.disable(logging.CRITICAL)
    isolated = "--isolated" in sys.argv
    limit = 4 << 30
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    prepare()
    answers.write(b"ready\n")
    for line in sys.stdin:
        start, before = time.perf_counter(), _peak()
        case = case_of(int(line))
        answers.write(b" ")  # what ends the process from here on is not the inference that makes the models
        try:
            outcome = check(case, isolated=isolated)
        except Exception as error:
            outcome = Outcome("exception", (f"exception outside of migrate: {error!r}",))
        finds = list(outcome.finds)
        if _peak() > max(MEMORY, before):
            finds.append(f"memory: {_peak() >> 20} MB")
        seconds = time.perf_counter() - start
        answer = {
            "kind": case.kind,
            "result": outcome.result,
            "finds": finds,
            "digest": outcome.digest,
            "seconds": seconds,
        }
        answers.write(json.dumps(answer).encode() + b"\n")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


if __name__ == "__main__":
    main()
