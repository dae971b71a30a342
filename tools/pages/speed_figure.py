"""Draws the first table of docs/figures.md, for a light and a dark page. `python -m tools.pages.speed_figure`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from tests.support.paths import ROOT

__all__ = ["PICTURES", "Scheme", "drawing", "main", "rows"]

FIGURES = ROOT / "docs" / "figures.md"
_FONT = "-apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP = 800, 320, 140, 34, 58


@dataclass(frozen=True)
class Scheme:
    """Colours for a page: of text, of other text, of our bars and of the other bars."""

    text: str
    faint: str
    ours: str
    others: str


PICTURES = {
    ROOT / "docs" / "images" / "speed-light.svg": Scheme("#1f2328", "#59636e", "#0b7a6f", "#b6bec8"),
    ROOT / "docs" / "images" / "speed-dark.svg": Scheme("#f0f6fc", "#9ba5b1", "#2bb5a5", "#515a66"),
}


def main() -> None:
    """Write both pictures."""
    for path, scheme in PICTURES.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawing(scheme), encoding="utf-8")


def rows() -> tuple[str, list[tuple[str, float, str]]]:
    """Return what the table is of, and for each row its name, seconds and peak memory."""
    text = FIGURES.read_text(encoding="utf-8")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in _first_table(text)]
    return table[0][0].partition(" (")[0], [
        (re.sub("`", "", name), float(seconds), memory) for name, seconds, memory in table[2:]
    ]


def drawing(scheme: Scheme) -> str:
    """Return the picture as SVG, with its content as text for those who do not see it."""
    title, found = rows()
    longest = max(seconds for _, seconds, _ in found)
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    height = _TOP + _ROW * len(found) + 8
    said = "; ".join(f"{name}: {seconds:g} s{memory and f', {memory}'}" for name, seconds, memory in found)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-labelledby="t d" font-family="{_FONT}" font-size="15">',
        f'<title id="t">A model of {escape(title)}: seconds and peak memory</title>',
        f'<desc id="d">{escape(said)}</desc>',
        f'<text x="8" y="24" font-size="17" font-weight="600" fill="{scheme.text}">A model of {escape(title)}</text>',
        f'<text x="{_LEFT}" y="46" font-size="13" fill="{scheme.faint}">seconds, and peak memory</text>',
    ]
    for index, (name, seconds, memory) in enumerate(found):
        y = _TOP + index * _ROW
        ours = name.startswith("onnx-migrate")
        weight = ' font-weight="600"' if ours else ""
        width = round(seconds * scale, 1)
        lines += [
            f'<text x="{_LEFT - 10}" y="{y + 17}" text-anchor="end"{weight} font-size="14" fill="{scheme.text}">'
            f"{escape(_short(name))}</text>",
            f'<rect x="{_LEFT}" y="{y}" width="{width}" height="24" rx="3" fill="{scheme.ours if ours else scheme.others}"/>',
            f'<text x="{_LEFT + width + 8}" y="{y + 17}"{weight} fill="{scheme.text}">{seconds:g} s'
            f'<tspan fill="{scheme.faint}" font-weight="400">{memory and f"  {memory}"}</tspan></text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _first_table(text: str) -> list[str]:
    match = re.search(r"(?m)(^\|.*\|\n)+", text)
    assert match, "docs/figures.md has no table"
    return match[0].splitlines()


def _short(name: str) -> str:
    return name.replace("onnx-migrate: simplified and verified", "onnx-migrate (simplifies, verifies)")


if __name__ == "__main__":
    main()
