"""docs/errors/ is what the tables of error texts and the codes say."""

from __future__ import annotations

from onnx_migrate.report.codes import CODES
from onnx_migrate.standard.error_texts import error_texts
from onnx_migrate.standard.schema import newest_opset
from tests.harness import SUPPORTED
from tests.support.skips import Elsewhere, skip_if
from tools.pages.errors_pages import FOLDER, pages

pytestmark = skip_if(
    newest_opset() != SUPPORTED,
    "the pages are written with the newest onnx, which knows all operators",
    Elsewhere.NEWEST,
)


def test_the_pages_are_up_to_date() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == pages(), "run python -m tools.pages.errors_pages"


def test_every_code_and_every_error_text_has_a_page_that_the_index_names() -> None:
    written = pages()
    index = written["README.md"]
    names = [*CODES, *(entry.name for entry in error_texts())]
    assert len(names) == len(set(names)) == len(written) - 1
    for name in names:
        assert f"({name}.md)" in index


def test_the_title_of_a_page_is_the_sentence_that_people_search_for() -> None:
    written = pages()
    for entry in error_texts():
        title = written[f"{entry.name}.md"].partition("\n")[0].replace("\\", "")
        assert title == f"# {entry.title or entry.example}", entry.name
        assert len(title) < 300, entry.name


def test_snippets_are_as_ruff_formats_them() -> None:
    """`ruff format` formats Python in Markdown: pages that it would change would never be up to date."""
    for name, text in pages().items():
        for snippet in text.split("```python\n")[1:]:
            code = snippet.partition("```")[0]
            compile(code, name, "exec")
            assert "import onnx\n\n" in code, name
