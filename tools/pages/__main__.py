"""Writes all generated files: python -m tools.pages. Pictures, which need a browser, have commands of their own."""

from __future__ import annotations

import os
import subprocess
import sys

MODULES = (
    "tools.pages.option_types",  # first, since others read the options
    "tools.pages.json_schemas",
    "tools.pages.commands_page",
    "tools.pages.man_page",
    "tools.pages.options_page",
    "tools.pages.errors_pages",
    "tools.pages.operators_page",
    "tools.pages.operators_down_page",
    "tools.pages.runtimes_page",
    "tools.steps.written_operators",
    "tools.steps.examples",
    "tools.report_texts",
)


def main() -> None:
    """Run each generator in a process of its own, so that it reads what the one before has written."""
    for module in MODULES:
        print(module, flush=True)
        subprocess.run(
            [sys.executable, "-m", module],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "COLUMNS": "100"},
        )


if __name__ == "__main__":
    main()
