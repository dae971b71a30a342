"""The report of one migration, which prints itself as text, as JSON and as an HTML page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from onnx_migrate.json_form import json_of
from onnx_migrate.report.data import ReportData

__all__ = ["Report"]


@dataclass(frozen=True)
class Report(ReportData):
    """The report of a migration: the fields of `ReportData`, as values, as text, as JSON and as an HTML page."""

    def __str__(self) -> str:
        return self.text()

    def text(self, *, verbose: bool = False) -> str:
        """Return the report as the command line prints it; `verbose` shows every changed node."""
        from onnx_migrate.report.text import report_text

        return report_text(self, everything=verbose)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON's types; docs/json.md has the schema."""
        content: dict[str, Any] = json_of(self)
        return content

    def json(self, *, indent: int | None = 2) -> str:
        """Return `as_dict` as the text of a JSON object."""
        return json.dumps(self.as_dict(), indent=indent)

    def html(self) -> str:
        """Return the report as a page that needs no other file. Raises UsageError without jinja2 ("onnx-migrate[html]")."""
        from onnx_migrate.report.html.render import model_page

        return model_page(self)
