"""mkdocs.yml lists every page, and the links of all pages lead to files and headings, on GitHub and in the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.pages.site_hooks import in_repository, in_site, loaded_from_elsewhere

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


def prose(path: Path) -> str:
    """Return the text of a page without its code."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", lambda found: found[0].replace("](", "] ("), text)


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", prose(path)):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("\\", "").lower()
        slug, number = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-"), 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


@pytest.fixture(scope="module")
def headings() -> dict[Path, set[str]]:
    return {path: anchors(path) for path in PAGES}


def test_every_link_leads_to_a_file_and_a_heading(headings: dict[Path, set[str]]) -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            if "://" in target or target.startswith("mailto:"):
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.exists() or (anchor and anchor not in headings.get(path, {anchor})):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_the_site_has_every_page() -> None:
    listed = set(
        re.findall(r"(?m)^ +- (?:[^:\n]+: )?(\S+\.md)\b", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    )
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in (*docs.glob("*.md"), *docs.glob("maintainers/*.md"))}

    assert listed == pages | {
        "index.md",
        "errors/README.md",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    }


def test_links_lead_to_the_same_page_in_the_site() -> None:
    assert in_site("pipelines.md", "../examples/make/Makefile") == "examples/make/Makefile"
    assert in_site("library.md", "../examples/plugin") == "examples/plugin/index.md"
    assert in_site("pipelines.md", "../README.md") == "index.md"
    assert in_site("index.md", "docs/errors/README.md") == "errors/README.md"
    assert in_site("errors/not-onnx.md", "../../CONTRIBUTING.md") == "../CONTRIBUTING.md"
    assert in_site("errors/not-onnx.md", "README.md") == "README.md"
    assert in_site("CONTRIBUTING.md", "docs/maintainers/architecture.md") == "maintainers/architecture.md"
    assert in_site("index.md", "docs/no-such-page.md") == "docs/no-such-page.md"
    assert in_repository("index.md", "https://onnx.ai/") is None


def test_what_a_page_loads_from_another_host_is_found() -> None:
    assert loaded_from_elsewhere('<script src="https://unpkg.com/shim"></script>') == [
        "https://unpkg.com/shim"
    ]
    assert loaded_from_elsewhere('<link rel="stylesheet" href=//host/a.css>') == ["//host/a.css"]
    assert loaded_from_elsewhere('<a href="https://onnx.ai/">onnx</a><img src="images/a.png">') == []
