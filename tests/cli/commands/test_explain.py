from __future__ import annotations

import pytest

from onnx_migrate.report.codes import CODES
from tests.cli.running import Run


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_explained(cli: Run, code: str) -> None:
    ended = cli("explain", code)

    assert (ended.code, ended.err) == (0, "")
    head, _, text = ended.out.partition("\n\n")
    assert head == code
    assert " ".join(text.split()) == " ".join(CODES[code].split())


@pytest.mark.parametrize("code", ["resize-11", "Softmax-13", "relu-14"])
def test_steps_are_explained(cli: Run, code: str) -> None:
    ended = cli("explain", code)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.lower().startswith(code.partition("-")[0].lower() + " ")
    assert f"→ {code.partition('-')[2]}: " in ended.out


def test_an_unknown_step_lists_the_known_steps_of_its_operator(cli: Run) -> None:
    ended = cli("explain", "resize-12")

    assert ended.code == 2
    assert "resize-11, resize-13" in ended.err
