"""The sections of docs/runtimes.md on each runtime, from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from onnx_migrate.standard.targets import Table, Target, milestones
from onnx_migrate.standard.targets.rows import OperatorSupport, Range, ReleaseRow, Values
from tools.pages.step_pages import slug

__all__ = ["Sources", "contents", "known", "operator_states", "ordered", "section", "span"]


def contents(tables: Iterable[Table]) -> str:
    """Return the table of contents, those that were measured first."""
    lines = [
        "| runtime | `--for` | releases | opset | IR version | operators | known from |",
        "|---|---|---|---|---|---|---|",
    ]
    for table in ordered(tables):
        first, last = table.releases[0], table.releases[-1]
        releases = f"{first.since} to {table.newest or last.since}" if first.since else ""
        opsets = _both(_opset(first), _opset(last))
        versions = _both(_cell(first.ir_version), _cell(last.ir_version))
        cells = (f"[{table.title}](#{slug(table.title)})", f"`{table.name}`", releases, opsets, versions)
        lines.append(f"| {' | '.join(cells)} | {operator_states(milestones(table)[-1])} | {known(table)} |")
    return "\n".join(lines) + "\n"


def ordered(tables: Iterable[Table]) -> list[Table]:
    """Return the tables in the order of the page: measured before read, then by title."""
    rank = ["measured", "partly measured", "read"]
    return sorted(tables, key=lambda table: (rank.index(known(table)), table.title.lower()))


def known(table: Table) -> str:
    """Return whether the rows of a table were measured or read."""
    count = sum(row.measured for row in table.releases)
    return "measured" if count == len(table.releases) else "partly measured" if count else "read"


def section(table: Table) -> str:
    """Return the section of a runtime."""
    sources = Sources()
    notes = (*table.notes, *dict.fromkeys(row.note for row in table.releases if row.note))
    parts = [f"## {table.title}\n", _asked(table), *(f"{note}\n" for note in notes)]
    if all(row.opset is None for row in table.releases):
        parts.append(
            "It accepts every opset. A model keeps its own, unless its operators need another one.\n"
        )
    elif table.newer == "tried":
        parts.append(
            "It also tries newer opsets. A model that has no older form keeps its opset, with a warning.\n"
        )
    parts += [_releases(table, sources), _faults(table), _restrictions(table, sources)]
    parts += [_operators(table, sources), str(sources)]
    return "\n".join(part for part in parts if part)


class Sources:
    """The sources of a section, numbered in the order in which they are first named."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def cite(self, source: str, measured: bool) -> str:
        """Return how a row says where it is from."""
        if source and source not in self._texts:
            self._texts.append(source)
        how = "measured" if measured else "read"
        return f"{how} [{self._texts.index(source) + 1}]" if source else how

    def __str__(self) -> str:
        lines = [f"{at}. {text}" for at, text in enumerate(self._texts, 1)]
        if len(lines) > 5:
            lines = ["<details><summary>Sources</summary>\n", *lines, "\n</details>"]
        return "\n".join(lines) + "\n"


def _asked(table: Table) -> str:
    release = table.default or table.newest or table.releases[-1].since
    lines = [f"`--for {table.name}{f'=={release}' if release else ''}`"]
    if table.aliases:
        lines.append(f"also {', '.join(f'`{alias}`' for alias in table.aliases)}")
    for bundle in table.bundles:
        pairs = ", ".join(
            f"{own} has {release}" for own, release in bundle.releases.items() if own != release
        )
        lines.append(f"also `{bundle.names[0]}=={next(iter(bundle.releases))}`: {bundle.title} {pairs}")
    if table.packages:
        lines.append(f"installed as {', '.join(f'`{package}`' for package in table.packages)}")
    if table.default:
        lines.append(f"without a release, and with none installed: {table.default}")
    return "; ".join(lines) + ".\n"


def _releases(table: Table, sources: Sources) -> str:
    forms = any(map(_forms, table.releases))
    lines = [
        "| from | opset | IR version | Resize |" + (" wants |" if forms else "") + " known from |",
        "|---" * (5 + forms) + "|",
    ]
    for row in table.releases:
        own = f" {_forms(row)} |" if forms else ""
        lines.append(
            f"| {_names(row)} | {_opset(row)} | {_cell(row.ir_version)} | {_resize(row)} |{own}"
            f" {sources.cite(row.source, row.measured)} |"
        )
    return "\n".join(lines) + (f"\n\nUp to {table.newest}.\n" if table.newest else "\n")


def _names(row: ReleaseRow) -> str:
    return f"{row.since} ({', '.join(row.names)})" if row.names else row.since


def _resize(row: ReleaseRow) -> str:
    return row.resize_form + ("" if row.resize_axes else ", all axes")


def _forms(row: ReleaseRow) -> str:
    forms = [f"`{form}`" for form in sorted(row.write)]
    if not row.functions:
        forms.insert(0, "no functions")
    if row.static:
        forms.append("fixed dims only")
    if row.inputs_first:
        forms.append("no initializers before the inputs")
    if row.rank:
        forms.append(f"up to {row.rank} axes")
    for what, types in (("values", row.types), ("inputs", row.input_types), ("outputs", row.output_types)):
        if types:
            forms.append(f"{what} of {', '.join(types)}")
    return ", ".join(forms)


def _faults(table: Table) -> str:
    lines = []
    for fault in table.faults:
        releases = span(fault.since, fault.until)
        help_ = f": {fault.help}" if fault.help else ""
        lines.append(
            f"- **{', '.join(fault.names)}**{f', {releases}' if releases else ''}: {fault.text}{help_}."
        )
    return "Computed wrongly (`runtime-fault`):\n\n" + "\n".join(lines) + "\n" if lines else ""


def _restrictions(table: Table, sources: Sources) -> str:
    lines = [
        f"| {', '.join(row.names)} | {span(row.since, row.until)} | {_taken(row)} | {sources.cite(row.source, row.measured)} |"
        for row in table.operators
        if row.limits or row.constant_inputs
    ]
    if not lines:
        return ""
    return "\n".join(["| operators | releases | takes only | known from |", "|---|---|---|---|", *lines, ""])


def _operators(table: Table, sources: Sources) -> str:
    rows = [row for row in table.operators if not (row.limits or row.constant_inputs)]
    if not rows:
        return ""
    lines = ["| operators | releases | newest version | known from |", "|---|---|---|---|"]
    for row in rows:
        names = ", ".join(row.names) + (f" ({row.domain})" if row.domain else "")
        lines.append(
            f"| {'not ' if row.lacking else ''}{names} | {span(row.since, row.until)} | {_cell(row.newest)} |"
            f" {sources.cite(row.source, row.measured)} |"
        )
    title = f"Operators: {operator_states(milestones(table)[-1])}"
    return "\n".join([f"<details><summary>{title}</summary>\n", *lines, "\n</details>\n"])


def operator_states(target: Target) -> str:
    """Return how many operators a release is known to have, how that is known, how many it lacks, and what of the others."""
    named = {
        (row.domain, name)
        for row in target.table.operators
        for name in row.names
        if target.rows_of(row.domain, name)
    }
    states = Counter(target.knowledge(*key).value if target.has(*key) else "missing" for key in named)
    parts = [f"{states[state]} {state}" for state in ("measured", "read", "missing") if states[state]]
    others = {
        "listed": "others missing",
        "any": "others read, all of the standard",
        "unknown": "others not known",
    }
    rest = others[target.table.extent] if parts else others[target.table.extent].replace("others ", "")
    return f"{', '.join(parts)}; {rest}" if parts else rest


def span(since: str, until: str) -> str:
    """Return which releases a row holds for."""
    if since and until:
        return f"{since} to before {until}"
    return f"from {since}" if since else f"before {until}" if until else "all"


def _taken(row: OperatorSupport) -> str:
    parts = [f"`{name}` {_values(values)}" for name, values in row.attributes.items()]
    if row.types:
        parts.append(f"elements of {', '.join(row.types)}")
    if row.rank:
        parts.append(f"up to {row.rank} axes")
    if row.constant_inputs:
        parts.append(f"constant {', '.join(row.constant_inputs)}")
    return "; ".join(parts)


def _values(values: Values) -> str:
    if isinstance(values, Range):
        return str(values)
    return ", ".join(str(list(value)) if isinstance(value, tuple) else str(value) for value in values)


def _opset(row: ReleaseRow) -> str:
    if row.opset is None:
        return f"from {row.oldest}" if row.oldest else "any"
    return f"{row.oldest} to {row.opset}" if row.oldest and row.oldest != row.opset else str(row.opset)


def _cell(number: int | None) -> str:
    return "" if number is None else str(number)


def _both(first: str, last: str) -> str:
    return first if first == last else f"{first or '?'} … {last or '?'}"
