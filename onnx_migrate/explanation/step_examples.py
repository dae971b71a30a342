"""Examples of steps: the nodes of a small graph before and after. `python -m tools.steps.examples` writes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["FILE", "step_example"]

FILE = Path(__file__).with_name("step_examples.txt")


def step_example(code: str) -> str:
    """Return the example of a step by its code; "" for a step that only claims or refuses, and for a long text."""
    return _examples().get(code, "")


@cache
def _examples() -> dict[str, str]:
    examples = (part.partition("\n") for part in FILE.read_text(encoding="utf-8").split("\n\n"))
    return {code: example.rstrip() for code, _, example in examples}
