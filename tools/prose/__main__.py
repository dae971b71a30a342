"""Prints the share of sentences with a finding for each kind of text. `python -m tools.prose --help`."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tools.prose.rules import Finding, findings
from tools.prose.sentences import Sentence, sentences
from tools.prose.texts import blocks_of, kinds_of

__all__ = ["Judged", "Share", "ceilings", "judged", "lowered", "main", "shares"]

ROOT = Path(__file__).resolve().parents[2]

CEILINGS = Path(__file__).with_name("ceilings.toml")

TEXTS = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md",
    "docs", "onnx_migrate", "passes", "tools",
)  # fmt: skip
"""Files and folders to check if the command line has none."""


@dataclass(frozen=True)
class Judged:
    """A sentence of a file with its findings."""

    path: str
    kind: str
    sentence: Sentence
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Share:
    """How many sentences of one kind have a finding."""

    faulty: int
    sentences: int

    @property
    def percent(self) -> float:
        """Sentences with a finding, as a share of all."""
        return 100 * self.faulty / max(self.sentences, 1)


def judged(paths: Iterable[Path]) -> Iterator[Judged]:
    """Yield every sentence of the files, and of the files in the folders."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".md", ".py", ".toml"):
                yield from _of_file(file)


def _of_file(file: Path) -> Iterator[Judged]:
    name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.as_posix()
    for kind in kinds_of(name):
        for sentence in sentences(blocks_of(file, kind)):
            yield Judged(name, kind, sentence, tuple(findings(sentence)))


def shares(found: Iterable[Judged]) -> dict[str, Share]:
    """Return the share of each kind of text."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for item in found:
        counts[item.kind][0] += bool(item.findings)
        counts[item.kind][1] += 1
    return {kind: Share(*count) for kind, count in counts.items()}


def ceilings() -> dict[str, float]:
    """Return the largest share of each kind, in percent."""
    return dict(tomllib.loads(CEILINGS.read_text(encoding="utf-8"))["percent"])


def lowered(text: str, found: dict[str, Share]) -> str:
    """Return the text of the file of ceilings with each number lowered to the share of today; none rises."""

    def line(match: re.Match[str]) -> str:
        share = found.get(match["kind"].strip('"'))
        today = math.ceil(10 * share.percent) / 10 if share else math.inf
        return f"{match['kind']} = {min(today, float(match['limit']))}"

    return re.sub(r'(?m)^(?P<kind>[a-z"][a-z" ]*) = (?P<limit>[\d.]+)$', line, text)


def main(arguments: list[str] | None = None) -> int:
    """Check the files of the command line, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.prose", description=sys.modules["tools.prose"].__doc__
    )
    parser.add_argument("--list", action="store_true", help="print each finding with its file and line")
    parser.add_argument("--lower", action="store_true", help="lower each ceiling to the share of today")
    parser.add_argument("--kind", help="check only this kind of text")
    parser.add_argument("paths", nargs="*", type=Path, help="files and folders; by default the whole project")
    options = parser.parse_args(arguments)
    found = [
        item
        for item in judged([path.resolve() for path in options.paths] or [ROOT / name for name in TEXTS])
        if options.kind in (None, item.kind)
    ]
    if options.list:
        _print_findings(found)
    if options.lower and not options.paths and not options.kind:
        text = lowered(CEILINGS.read_text(encoding="utf-8"), shares(found))
        CEILINGS.write_text(text, encoding="utf-8")
    return _print_shares(shares(found), ceilings(), enforced=not options.paths and not options.kind)


def _print_findings(found: Iterable[Judged]) -> None:
    for item in found:
        for finding in item.findings:
            text = item.sentence.text
            print(f"{item.path}:{item.sentence.line}: {finding.rule}: {finding.advice}: {text[:160]}")


def _print_shares(found: dict[str, Share], limits: dict[str, float], *, enforced: bool) -> int:
    """Print a line for each kind of text, and return the exit code."""
    code = 0
    for kind, share in sorted(found.items()):
        limit = limits.get(kind, 0.0)
        above = enforced and round(share.percent, 1) > limit
        code |= above
        ceiling = f", ceiling {limit:.1f} %{': TOO HIGH' if above else ''}" if enforced else ""
        print(f"{kind:12} {share.faulty:5} of {share.sentences:5} sentences, {share.percent:4.1f} %{ceiling}")
    return code


if __name__ == "__main__":
    sys.exit(main())
