"""Writes docs/errors/, a page for each code and each error text that is known. `python -m tools.pages.errors_pages`."""

from __future__ import annotations

from onnx_migrate.explanation import explanation_of
from onnx_migrate.explanation.overview import first_sentence, groups_of_codes
from onnx_migrate.report.codes import CODES
from onnx_migrate.standard.error_texts import ErrorText, error_texts, find
from tests.support.paths import ROOT

__all__ = ["FOLDER", "pages"]

FOLDER = ROOT / "docs" / "errors"

INDEX = """# Errors

These pages explain the errors of other tools that reject an ONNX model, with cause and fix, and the codes in
onnx-migrate's own messages.

- `onnx-migrate explain "…"` recognises a pasted text, a traceback or a log (`… 2>&1 | onnx-migrate explain -`). It
  fills in the numbers and names of your text.
- `onnx-migrate explain MODEL "…"` checks whether a model would raise the error, and names the nodes.

"""


def main() -> None:
    """Write the pages, and remove those of entries that are gone."""
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Return the text of every page, by its file name."""
    found = {f"{entry.name}.md": _of_text(entry) for entry in error_texts()}
    found |= {f"{code}.md": _of_code(code) for code in CODES}
    return {"README.md": _index(), **found}


def _index() -> str:
    tools: dict[str, list[ErrorText]] = {}
    for entry in error_texts():
        tools.setdefault(entry.tool, []).append(entry)
    lines = [INDEX]
    for tool, entries in tools.items():
        lines.append(f"## {tool}\n")
        lines += [f"- [{_escaped(entry.title or entry.example)}]({entry.name}.md)" for entry in entries]
        lines.append("")
    lines.append("## Codes of onnx-migrate\n")
    for group in groups_of_codes():
        lines.append(f"### {group.title}\n")
        lines += [f"- [{code}]({code}.md): {_escaped(line)}" for code, line in group.lines]
        lines.append("")
    return "\n".join(lines)


def _of_code(code: str) -> str:
    text = CODES[code]
    first = first_sentence(text)
    title = next(group.title for group in groups_of_codes() if code in dict(group.lines))
    return "\n".join(
        [
            f"# {code}: {_escaped(first)}\n",
            f"This is a code of onnx-migrate, in the group *{title.lower()}*. You see it after"
            " `onnx-migrate:` in an error, or beside a note in `--json` and `--html`.\n",
            f"{_escaped(text)}\n",
            f"`onnx-migrate explain {code}` prints this page. See also [all errors](README.md).\n",
        ]
    )


def _of_text(entry: ErrorText) -> str:
    (found,) = find(entry.example, [entry])
    item = explanation_of(found, entry.example)
    versions = f", {entry.versions}" if entry.versions else ""
    kind = "Warning of" if entry.severity == "warning" else "Error of"
    parts = [
        f"# {_escaped(item.title)}\n",
        f"{kind} {entry.tool}, {entry.stage}{versions}.\n",
        f"```\n{entry.example}\n```\n",
        f"{_escaped(' '.join(item.meaning))}\n",
    ]
    if item.causes:
        parts.append(f"**Cause.** {_escaped(' '.join(item.causes))}\n")
    parts.append("## Fix\n")
    for remedy in item.remedies:
        first, _, code = remedy.text.partition("\n")
        if remedy.command:
            parts.append(f"```sh\n{remedy.command}\n```\n")
        parts.append(f"{_escaped(first)}\n")
        if code:
            parts.append(f"```python\n{code}\n```\n")
    parts.append(
        '`onnx-migrate explain "…"` prints this with the names and numbers of your text. With a MODEL before the text, it'
        " also names the nodes that cause the error."
        f" `onnx-migrate explain {entry.name}` prints this page. See also [all errors](README.md).\n"
    )
    parts.append("Sources:\n")
    parts += [f"- <{source}>" for source in entry.sources]
    return "\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    """Return text in which Markdown sees no tags and no emphasis."""
    for mark in "*_<>[]|":
        text = text.replace(mark, f"\\{mark}")
    return text


if __name__ == "__main__":
    main()
