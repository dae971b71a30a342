"""README.md on PyPI: links to files of the repository are absolute, at the tag of the release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.pypi_readme import main, with_absolute_links

REPOSITORY = "https://github.com/owner/onnx-migrate"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[a](docs/a.md#b)", f"[a]({REPOSITORY}/blob/v1.0.0/docs/a.md#b)"),
        ("[a](#b) [c](https://x.org/y)", "[a](#b) [c](https://x.org/y)"),
        (
            '<source srcset="docs/a.png"><img src="docs/b.png" alt="[x]">',
            f'<source srcset="{REPOSITORY}/raw/v1.0.0/docs/a.png">'
            f'<img src="{REPOSITORY}/raw/v1.0.0/docs/b.png" alt="[x]">',
        ),
        ('<img src="https://x.org/b.png">', '<img src="https://x.org/b.png">'),
    ],
)
def test_relative_links_become_absolute(text: str, result: str) -> None:
    assert with_absolute_links(text, REPOSITORY, "v1.0.0") == result


def test_no_relative_link_of_the_readme_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "README.md"
    path.write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    main(REPOSITORY, "v1.0.0")

    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith((REPOSITORY, "#"))] == []
    main(REPOSITORY, "v1.0.0")
    assert path.read_text(encoding="utf-8") == text


def test_the_release_rewrites_the_readme_before_it_builds() -> None:
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")

    assert release.index("python -m tools.pypi_readme") < release.index("python -m build")
