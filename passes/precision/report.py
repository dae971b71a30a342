"""The values of the precision in a report: the effect of the change, and the ranges of the numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnx_migrate.json_form import selects
from onnx_migrate.reported import Outline, reported
from onnx_migrate.verdicts.precision_change import PrecisionChange
from onnx_migrate.verdicts.ranges import NodeRange, NumberRanges

__all__ = ["REPORT", "PrecisionReport"]

_BARS = 500
"""Largest number of nodes with a bar on the page."""


def _bars(ranges: NumberRanges) -> Mapping[str, Any]:
    """Return the ranges, and for the nodes with the largest values the start, length and kind of a bar, in percent.

    The scale is logarithmic, and goes from a thousandth of the type's smallest number to a thousand times its largest.
    """
    low, high = math.log(ranges.lowest / 1e3), math.log(ranges.highest) + math.log(1e3)

    def place(number: float) -> float:
        share = (math.log(number) - low) / (high - low) if number else 0.0
        return round(100 * min(1.0, max(0.0, share)), 1)

    bars: list[tuple[NodeRange, float, float, str]] = []
    for node in sorted(ranges.nodes, key=lambda node: -node.largest)[:_BARS]:
        left = place(node.smallest)
        kind = "failed" if node.largest > ranges.highest else "warning" if node.kept else "good"
        bars.append((node, left, max(0.5, round(place(node.largest) - left, 1)), kind))
    return {"ranges": ranges, "bars": bars}


def _outline(ranges: NumberRanges) -> Outline:
    """Return the nodes that keep their type although the user asked for a narrower one."""
    kept = frozenset(node.node for node in ranges.nodes if node.kept)
    return Outline(kept, f"Nodes that do not compute in {ranges.type} have a yellow border.", "wide")


@dataclass(frozen=True, kw_only=True)
class PrecisionReport:
    """The values of this feature: None if the migration kept the precision; `ranges` also if it ran no model."""

    ranges: NumberRanges | None = reported(
        NumberRanges, None, "numbers of nodes", page=_bars, outline=_outline
    )
    precision: PrecisionChange | None = reported(
        PrecisionChange,
        None,
        "nodes and weights that keep their type",
        details=lambda change: change.node_lines,
    )


REPORT = PrecisionReport
selects(PrecisionChange, "* kept_bytes operators reasons lines")
