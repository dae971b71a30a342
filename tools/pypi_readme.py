"""Rewrites README.md for PyPI, which does not resolve relative links.

`python -m tools.pypi_readme REPOSITORY TAG` makes each link to a file of the repository absolute, at the tag of the release.
GitHub resolves the relative links to the same commit.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

__all__ = ["with_absolute_links"]

_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s]+)(?=\))")
_PICTURE = re.compile(r'\b(src|srcset)="(?!\w+:)([^"]+)"')


def with_absolute_links(text: str, repository: str, tag: str) -> str:
    """Return Markdown with absolute links to files and pictures of a repository on GitHub, for example at the tag v1.0.0."""
    linked = _LINK.sub(rf"{repository}/blob/{tag}/\1", text)
    return _PICTURE.sub(rf'\1="{repository}/raw/{tag}/\2"', linked)


def main(repository: str, tag: str) -> None:
    """Rewrite README.md in the working folder."""
    path = Path("README.md")
    path.write_text(with_absolute_links(path.read_text(encoding="utf-8"), repository, tag), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
