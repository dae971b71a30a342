"""Renders reports as one self-contained HTML page, which loads no other file and needs no network.

The output is deterministic: equal reports give equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import onnx

from onnx_migrate._version import __version__
from onnx_migrate.errors import UsageError, Where
from onnx_migrate.messages import share_text
from onnx_migrate.model.graphs import node_label, producers
from onnx_migrate.model.model import Model
from onnx_migrate.report.body_view import BodyView
from onnx_migrate.report.codes import CODES
from onnx_migrate.report.data import ModelSummary, ReportData
from onnx_migrate.report.diff_view import DiffView, file_names
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.html import contents
from onnx_migrate.report.html.contents import Row, anchor
from onnx_migrate.report.html.error_plot import error_plot
from onnx_migrate.report.html.grouping import asked_notes, change_anchors, grouped, grouped_by_request, titled
from onnx_migrate.report.html.node_diagram import draw_blocked
from onnx_migrate.report.html.overview import drawings, graph_drawings, layout_available
from onnx_migrate.report.node_version import node_version
from onnx_migrate.report.request import tool_versions
from onnx_migrate.rewrite.change_log import Change
from onnx_migrate.verdicts import FirstDifference, Verdict

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "batch_page",
    "check_available",
    "comparison_page",
    "difference_page",
    "inspection_page",
    "model_page",
    "model_part",
]

_LISTED = 2_000
"""Largest number of nodes listed for one drawing on the page of one model."""

_LISTED_IN_BATCH = 50
"""The same for each model on the page of a batch."""

_BOXES, _BOXES_IN_BATCH = 150, 40
"""Boxes of a graph on the page of one model, and of each on the page of a batch, which draws nothing inside them.

More are no overview: 150 boxes already take five screens, and graphlay 20 ms."""


def check_available() -> None:
    """Raise UsageError if the template library is not installed."""
    _macros()


def model_page(report: ReportData | Failure, output: str | None = None) -> str:
    """Return the page of one model, which was written to `output` if not None."""
    return _alone(report, contents.state_of(report), output)


def comparison_page(original: Model, other: Model, verdict: Verdict) -> str:
    """Return the page of two models that were compared; the nodes of the first value that differs are beside each other."""
    report = ReportData(
        " and ".join(file_names(original.name, other.name)),
        ModelSummary.of(original.proto),
        ModelSummary.of(other.proto),
        (),
        tuple(_first_nodes(original.proto, other.proto, verdict.first_difference)),
        (),
        verdict,
    )
    page = _macros("two_models").comparison(report, grouped(enumerate(report.changes), listed=_LISTED))
    return _whole(report.model, page)


def difference_page(view: DiffView, summary: Sequence[tuple[str, str]]) -> str:
    """Return the page of two models beside each other; `summary` has a label and a text for each kind of thing that differs."""
    title = " and ".join(view.names)
    figures = ReportData(title, *view.summaries, (), tuple(change for _, change in view.changes), ())
    groups = grouped(view.changes, listed=_LISTED)
    anchors = {entry.place: f"entry-{entry.place}" for entry in view.entries} | change_anchors(groups)
    numbers = count()
    drawn = [
        [(drawing, next(numbers)) for drawing in each]
        for each in graph_drawings(chain.from_iterable(view.graphs), boxes=_BOXES, inside=True)
    ]
    folded = any(not drawing.whole for drawing, _ in chain.from_iterable(drawn))
    page = _macros("two_models").difference(view, summary, figures, groups, drawn, folded, anchors, _LISTED)
    return _whole(title, page)


def inspection_page(
    model: str, summary: ModelSummary, text: str, bodies: Iterable[BodyView], changes: Iterable[Change]
) -> str:
    """Return the page of a model before its migration: the `text` of the inspection, and the graphs with planned changes."""
    groups = grouped(enumerate(changes), listed=_LISTED)
    drawn = list(chain.from_iterable(graph_drawings(bodies, boxes=_BOXES, inside=True)))
    page = _macros("inspection").inspection(model, summary, text, drawn, groups, change_anchors(groups))
    return _whole(model, page)


def _alone(report: ReportData | Failure, state: str, output: str | None) -> str:
    macros = _macros()
    return _whole(report.model, macros.alone(report.model, state, output, report, _LISTED, _BOXES, True))


def _whole(title: str, content: str) -> str:
    """Return a page with this content."""
    macros = _macros()
    return f"{macros.top(title)}\n{content}\n{macros.bottom(__version__)}\n"


def _first_nodes(
    original: onnx.ModelProto, other: onnx.ModelProto, first: FirstDifference | None
) -> Iterator[Change]:
    """Yield the two nodes of the first value that differs as a change of the one to the other."""
    if first is None:
        return
    before = producers(original.graph).get(first.original_value)
    after = producers(other.graph).get(first.value)
    if before is not None and after is not None:
        nodes = [node.SerializeToString() for node in (before, after)]
        versions = [node_version(node, model) for model, node in ((original, before), (other, after))]
        where = Where("graph", node_label(before), before.op_type)
        yield Change("verify", where, nodes[0], versions[0], nodes[1], versions[1], (), "")


def model_part(report: ReportData | Failure | None, model: str, state: str, output: str | None) -> str:
    """Return the part of the page of a batch that shows one model; one without a report was done by an earlier run."""
    part = _macros().part(
        anchor(model), model, state, output, report, _LISTED_IN_BATCH, _BOXES_IN_BATCH, False
    )
    return f"{part}\n"


def batch_page(rows: Sequence[Row], parts: Iterable[str], totals: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page of a batch in pieces: the table of `rows`, the `parts` of the models, and the script."""
    macros = _macros()
    yield f"{macros.top('batch')}\n{macros.table(rows, totals)}\n"
    yield from parts
    yield f"{macros.bottom(__version__, batch=True)}\n"


def _sections(report: ReportData) -> Iterator[tuple[str, Markup]]:
    """Yield the title and the content of each section that a feature adds to the page of a result."""
    from markupsafe import Markup

    environment = _environment()
    for section, value in report.recorded:
        if section.template is not None and section.page is not None:
            template = environment.from_string(section.template.read_text(encoding="utf-8"))
            content = template.render(section.page(value))
        else:
            lines = list(section.details(value))
            content = environment.get_template("details.html.jinja").render(lines=lines) if lines else ""
        if content:
            yield section.title[0].upper() + section.title[1:], Markup(content)


def _prose(text: str) -> Markup:
    """Return a text as HTML, with text between backticks as <code>."""
    from markupsafe import Markup, escape

    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # an unpaired backtick is part of a name
        return escape(text)
    return Markup().join(
        Markup("<code>{}</code>").format(piece) if index % 2 else escape(piece)
        for index, piece in enumerate(pieces)
    )


_BREAKS = re.compile(r"(?<=[/_:-])(?=\w)|(?<=[a-z0-9])(?=[A-Z])")
"""The places at which a name may continue on the next line: after a separator, and before a capital letter."""


def _breakable(name: str) -> Markup:
    """Return a name as HTML that a narrow screen breaks between its words."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(map(escape, _BREAKS.split(name)))


def _macros(template: str = "report") -> Any:
    """Return the macros of a template. Raises UsageError if the template library is not installed."""
    return _environment().get_template(f"{template}.html.jinja").module


@cache
def _environment() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise UsageError(
            "a report in HTML needs Jinja2, which is not installed",
            hint="run pip install 'onnx-migrate[html]'",
        ) from error
    environment = Environment(
        loader=PackageLoader("onnx_migrate.report.html", "."), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["prose"] = _prose
    environment.filters["titled"] = titled
    environment.filters["breakable"] = _breakable
    environment.tests["failure"] = lambda report: isinstance(report, Failure)
    names = {name: getattr(contents, name) for name in contents.__all__}
    environment.globals.update(
        names,
        codes=CODES,
        tool_versions=tool_versions,
        sections=_sections,
        grouped_by_request=grouped_by_request,
        draw_blocked=draw_blocked,
        error_plot=error_plot,
        share_text=share_text,
        change_anchors=change_anchors,
        asked_notes=asked_notes,
        drawings=drawings,
        layout_available=layout_available,
    )
    return environment
