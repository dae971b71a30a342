"""Writes docs/options.md from the declarations of the options. `python -m tools.pages.options_page`."""

from __future__ import annotations

from onnx_migrate.declared import Declared, declared
from onnx_migrate.options import Options
from tests.support.paths import ROOT

__all__ = ["PAGE", "main", "page"]

PAGE = ROOT / "docs" / "options.md"

HEAD = """# Options

These are the keywords of `onnx_migrate.migrate`, with their types, defaults and names on the command line. `batch` and
`Session.migrate` accept them too. [Commands](commands.md) describes the command line, and [the library](library.md)
shows examples.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page for the options as they are declared."""
    return "\n".join([HEAD, *map(_section, declared(Options))])


def _section(option: Declared) -> str:
    flags = [f"`{flag}`" for flag in option.flags[:1]]
    facts = [f"`{option.type}`", f"default `{option.default!r}`", *flags]
    text = option.text[:1].upper() + option.text[1:]
    return f"## {option.name}\n\n{', '.join(facts)}\n\n{text.rstrip('.')}.\n"


if __name__ == "__main__":
    main()
