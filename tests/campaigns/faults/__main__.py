"""`python -m tests.campaigns.faults [SCENARIO...]`: every fault at every call of every scenario, and what came of them."""

from __future__ import annotations

import sys

from tests.campaigns.faults.campaign import main

if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
