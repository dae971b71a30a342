"""A report as one page of HTML that needs nothing beside it and no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from onnx_migrate._version import __version__
from onnx_migrate.errors import UsageError

__all__ = ["batch_page", "check_available", "model_page", "model_part", "row"]

_DRAWN = 100
"""Nodes drawn of each kind of change in a page for one model."""

_DRAWN_IN_BATCH = 5
"""The same where a page has many models."""

_KINDS = {
    "layer": "Conv ConvTranspose ConvInteger QLinearConv Gemm MatMul LSTM GRU RNN DeformConv Attention Einsum",
    "activation": "Relu LeakyRelu PRelu Elu Selu Celu Sigmoid HardSigmoid HardSwish Tanh Softmax LogSoftmax Hardmax Clip "
    "Softplus Softsign Gelu Mish Swish ThresholdedRelu",
    "pool": "AveragePool MaxPool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool MaxRoiPool RoiAlign",
    "normalization": "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization LRN RMSNormalization "
    "LpNormalization MeanVarianceNormalization Dropout",
    "shape": "Reshape Flatten Squeeze Unsqueeze Transpose Shape Expand Tile",
    "tensor": "Concat Split Slice Gather GatherND GatherElements Pad Resize Upsample ScatterND ScatterElements",
}
"""Operators by the kind that gives their colour, as readers of graph viewers know them."""

_KIND_OF = {operator: kind for kind, operators in _KINDS.items() for operator in operators.split()}


_FIELDS = ("error", "before", "after", "changes", "notes", "verification", "dynamic", "output", "seconds")
"""What not every report has."""


def check_available() -> None:
    """Raise UsageError where the template library is not installed."""
    _macros()


def model_page(report: Mapping[str, Any], *, sizes: tuple[str, str] | None = None) -> str:
    """Return the page of one model: a report's or a failure's dict, and the files' sizes before and after."""
    macros = _macros()
    part = model_part(report, sizes=sizes, drawn=_DRAWN)
    heading = macros.top(report["model"])
    return f"{heading}\n{part}\n{macros.bottom(__version__)}\n"


def model_part(
    report: Mapping[str, Any],
    *,
    number: int = 0,
    sizes: tuple[str, str] | None = None,
    drawn: int = _DRAWN_IN_BATCH,
) -> str:
    """Return the part of a page that shows one model; with a `number` above 0 it is one of a batch's."""
    from markupsafe import escape

    report = {**dict.fromkeys(_FIELDS), **report}
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for change in report["changes"] or ():
        before, after = change["before"], change["after"] or {}
        key = (
            before["operator"],
            before["version"],
            after.get("operator"),
            after.get("version"),
            change["reason"],
        )
        groups.setdefault(key, []).append(change)
    inner = _macros().model(
        report, sizes, list(groups.values()), lambda name: _KIND_OF.get(name, "other"), drawn
    )
    title = f"<h1>{escape(report['model'])}</h1>\n{inner}"
    if not number:
        return f"<main>\n{title}\n</main>"
    return f'<section class="model" id="m{number}">\n<p><a href="#">all models</a></p>\n{title}\n</section>'


def batch_page(
    rows: Sequence[Mapping[str, Any]], parts: Iterable[str], totals: Mapping[str, Any]
) -> Iterator[str]:
    """Give the page of a batch in pieces: the table of `row`s, then each model's part, made with numbers from 1 on."""
    macros = _macros()
    yield f"{macros.top('batch')}\n{macros.table(rows, totals)}\n"
    for part in parts:
        yield f"{part}\n"
    yield f"{macros.script()}\n{macros.bottom(__version__)}\n"


def row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the table of a batch shows of a model, from its JSON line and its "number"."""
    before, after = entry.get("before") or {}, entry.get("after") or {}
    opsets = [str(side["opset"]) for side in (before, after) if side]
    verification = entry.get("verification") or {}
    error = entry.get("error") or {}
    return {
        "number": entry["number"],
        "model": entry["model"],
        "outcome": entry["outcome"],
        "verified": verification.get("kind", "not asked for" if after else ""),
        "opset": " → ".join(dict.fromkeys(opsets)),
        "changes": len(entry.get("changes") or ()),
        "seconds": entry.get("total_seconds", 0.0),
        "reason": f"{error['code']}: {error['reason']}"
        if error
        else "by an earlier run"
        if entry.get("cached")
        else "",
    }


@cache
def _macros() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise UsageError(
            "a report in HTML needs Jinja2, which is not installed", hint="pip install 'onnx-migrate[html]'"
        ) from error
    environment = Environment(
        loader=PackageLoader("onnx_migrate.report", "."), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("report.html.jinja").module
