from __future__ import annotations

from onnx_migrate.explanation.overview import first_sentence, groups_of_codes, overview
from onnx_migrate.report.codes import CODES
from onnx_migrate.standard.error_texts import error_texts
from onnx_migrate.standard.targets import known_names


def test_every_code_is_in_one_group() -> None:
    assert [code for group in groups_of_codes() for code, _ in group.lines] == list(CODES)
    assert all(group.lines for group in groups_of_codes())


def test_every_error_text_is_listed_under_its_tool() -> None:
    listed = [name for group in overview()[len(groups_of_codes()) :] for name, _ in group.lines]
    assert sorted(listed) == sorted([*(entry.name for entry in error_texts()), *known_names()])
    assert overview()[-1].title == "Runtimes"


def test_the_first_sentence() -> None:
    assert first_sentence("Opset 1.2 is old. Next.") == "Opset 1.2 is old."
    assert first_sentence("no end") == "no end"
