"""The values that features add to a report: one class with the fields that each feature declares.

Type checkers read feature_values.pyi, which `python -m tools.pages.option_types` writes from the declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx_migrate.engine.features import features
from onnx_migrate.reported import sections
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["SECTIONS", "FeatureValues", "recorded_values"]

_PARTS = tuple(part for feature in reversed(features()) if (part := feature.reported) is not None)
"""A dataclass takes the fields of its last base first: those of the first feature by name."""


@dataclass(frozen=True, kw_only=True)
class FeatureValues(*_PARTS):
    """The values of a report that features declare in their modules `report`."""


SECTIONS = sections(FeatureValues)
"""How a report shows each of these values."""


def recorded_values(log: ChangeLog) -> dict[str, Any]:
    """Return the values that passes recorded in a log, by the names that a report gives them."""
    facts = {section.name: log.fact(section.fact, "", "") for section in SECTIONS}
    return {name: fact for name, fact in facts.items() if fact is not None}
