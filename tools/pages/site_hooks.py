"""What `mkdocs build` does besides: links out of docs/ work as on GitHub, and no page loads from another host.

README.md is the start page, the other pages at the root are pages, and files and folders elsewhere that a page links to,
such as those of examples/, are copied. A link is resolved in the repository first and then written for the site; one
that leads to no file stays as it is, and `--strict` refuses it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

__all__ = [
    "LINK",
    "in_repository",
    "in_site",
    "loaded_from_elsewhere",
    "on_files",
    "on_page_markdown",
    "on_post_page",
]

ROOT = Path(__file__).resolve().parents[2]

LINK = re.compile(r"(\]\(|(?:href|src|srcset)=\")([^)\s\"#]+)")
"""The target of a Markdown link or picture, or of an HTML one, without its anchor."""

_PAGES = {
    "README.md": "index.md",
    **{name: name for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")},
}
"""The pages at the root of the repository, and where they are in the site."""

_LOADED = re.compile(r"<(script|img|iframe|source|embed|link)\b([^>]*)>")
_FOREIGN = re.compile(r"(?:src|srcset|href|data)=\"?((?:https?:)?//[^\s\">]+)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages at the root, and the files outside docs/ that pages link to."""
    from mkdocs.structure.files import File

    for name, place in _PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    for page in list(files.documentation_pages()):
        for _, target in LINK.findall(page.content_string):
            path = in_repository(page.src_uri, target)
            if not path or path.startswith("docs/") or path in _PAGES or files.get_file_from_path(path):
                continue
            for file in _files(path):
                if files.get_file_from_path(file) is None:
                    files.append(File.generated(config, file, abs_src_path=str(ROOT / file)))
            if (ROOT / path).is_dir():
                files.append(File.generated(config, f"{path}/index.md", content=_listing(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Write the links of a page for the site."""
    return LINK.sub(lambda found: found[1] + in_site(page.file.src_uri, found[2]), markdown)


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Refuse a page that loads something from another host."""
    from mkdocs.exceptions import PluginError

    if found := loaded_from_elsewhere(output):
        raise PluginError(f"{page.file.src_uri} loads {found[0]}: pages load nothing from another host")
    return output


def loaded_from_elsewhere(html: str) -> list[str]:
    """Return the addresses of other hosts that a browser asks for to show a page."""
    found = [(kind, attributes, _FOREIGN.search(attributes)) for kind, attributes in _LOADED.findall(html)]
    return [
        address[1]
        for kind, attributes, address in found
        if address and not (kind == "link" and "canonical" in attributes)
    ]


def in_site(page: str, target: str) -> str:
    """Return where a link of a page leads, relative to the page, in the site."""
    path = in_repository(page, target)
    if path is None or not (ROOT / path).exists():
        return target
    place = _PAGES.get(path) or path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        place += "/index.md"
    return posixpath.relpath(place, posixpath.dirname(page) or ".")


def _files(path: str) -> list[str]:
    """Return the path of a file, or those of the files in a folder."""
    found = sorted((ROOT / path).rglob("*")) if (ROOT / path).is_dir() else [ROOT / path]
    return [item.relative_to(ROOT).as_posix() for item in found if item.is_file() and item.suffix != ".pyc"]


def _listing(folder: str) -> str:
    """Return a page with links to the files of a folder, which is what GitHub shows for a link to it."""
    names = [posixpath.relpath(path, folder) for path in _files(folder)]
    return "\n".join([f"# {folder}\n", *(f"- [{name}]({name})" for name in names)]) + "\n"


def in_repository(page: str, target: str) -> str | None:
    """Return the path in the repository that a link leads to, None for one that leads elsewhere."""
    if "://" in target or target.startswith(("mailto:", "/")):
        return None
    folder = "" if page in _PAGES.values() else posixpath.join("docs", posixpath.dirname(page))
    return posixpath.normpath(posixpath.join(folder, target))
