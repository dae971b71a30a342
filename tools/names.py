"""Measures the names and comments of the source: python -m tools.names [--files].

A local name is generic if it says nothing about its value: `found`, `given`, `item`. `--files` lists the files with the most of
them. The ceilings may only fall; tests/test_names.py checks them.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# fmt: off
GENERIC = frozenset((
    "asked", "done", "found", "given", "item", "items", "kept", "known", "left", "made", "obj", "one", "place", "places", "res",
    "said", "stuff", "taken", "temp", "thing", "tmp", "told", "val", "what", "which",
))
# fmt: on
"""Names that fit any value."""


@dataclass(frozen=True)
class Measure:
    """What some files have: the number of local names, the generic ones, lines, and lines that are a comment."""

    names: int
    generic: int
    lines: int
    comments: int

    @property
    def generic_share(self) -> float:
        """The share of local names that are generic."""
        return self.generic / max(self.names, 1)

    @property
    def comment_share(self) -> float:
        """The share of lines with a comment."""
        return self.comments / max(self.lines, 1)


def sources() -> list[Path]:
    """Return the files of the package and its passes."""
    return sorted([*(ROOT / "onnx_migrate").rglob("*.py"), *(ROOT / "passes").rglob("*.py")])


def local_names(tree: ast.AST) -> Iterator[str]:
    """Yield each name once for each function that binds it: parameters and variables."""
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = function.args
            names = {
                argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            }
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.add(node.id)
            yield from names - {"self", "cls", "_"}


def measure(paths: list[Path]) -> Measure:
    """Return what these files have."""
    names, lines, comments = Counter[str](), 0, 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        names.update(local_names(ast.parse(text)))
        lines += text.count("\n")
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        marks = ("# noqa", "# type:", "# fmt:")
        comments += sum(
            token.type == tokenize.COMMENT and not token.string.startswith(marks) for token in tokens
        )
    generic = sum(count for name, count in names.items() if name in GENERIC)
    return Measure(sum(names.values()), generic, lines, comments)


def main() -> None:
    """Print the measures, and with `--files` those of the files with the most generic names."""
    whole = measure(sources())
    print(f"generic local names {whole.generic_share:.1%}, comments {whole.comment_share:.2%} of lines")
    if "--files" in sys.argv:
        files = sorted(sources(), key=lambda path: -measure([path]).generic)
        for path in files[:20]:
            print(f"{measure([path]).generic:4} {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
