"""The tool that changes constants finds them, and tells those that no test holds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.campaigns.proof.constants import changed, constants

SOURCE = '''
"""A module."""
from dataclasses import dataclass

LIMIT = 0.5
"""Largest error."""
_SIZES: tuple[int, ...] = (20, 1)
_TABLE = {"a": -2.0, "b": 1 << 10}
_ZERO, _FLAG, NAME = 0, True, "x"
lower = 3
_SUM = LIMIT * 2


@dataclass(frozen=True)
class Rule:
    factor: float = 8.0
    name: str = "x"


def within(error: float) -> bool:
    return error <= LIMIT
'''


@pytest.fixture
def module(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(SOURCE)
    return file


def test_constants_are_those_in_capitals_and_defaults_of_fields(module):
    found = [(one.name, one.value) for one in constants(module)]
    assert found == [
        ("LIMIT", 0.5),
        ("_SIZES", 20),
        ("_SIZES", 1),
        ("_TABLE", -2.0),
        ("_TABLE", 1024),
        ("Rule.factor", 8.0),
    ]


def test_each_is_multiplied_and_divided_alone(module):
    texts = {one.name: [data.decode() for _, data in changed(one)] for one in constants(module)}
    assert ["LIMIT = (5.0)" in texts["LIMIT"][0], "LIMIT = (0.05)" in texts["LIMIT"][1]] == [True, True]
    assert "(20, (10))" in texts["_SIZES"][0]  # 1 has no tenth
    assert len(texts["_SIZES"]) == 1
    assert all(compile(text, "m", "exec") for of in texts.values() for text in of)


@pytest.mark.long
def test_a_constant_that_no_test_holds_survives(module):
    from tests.campaigns.proof.constants import survivors

    (module.parent / "test_module.py").write_text(
        "from module import within\n\ndef test_limit():\n    assert within(0.4) and not within(0.6)\n"
    )
    (module.parent / "conftest.py").write_text(
        "import sys, os\nsys.path.insert(0, os.path.dirname(__file__))\n"
    )
    chosen = [one for one in constants(module) if one.name in ("LIMIT", "Rule.factor")]
    ended = list(survivors(module.parent, chosen, ["test_module.py"], sys.executable, 60))
    assert [(one.name, outcome) for one, _, outcome in ended] == [
        ("LIMIT", "killed"),
        ("LIMIT", "killed"),
        ("Rule.factor", "survived"),
        ("Rule.factor", "survived"),
    ]
    assert module.read_text() == SOURCE


def test_the_command_lists_constants():
    command = [sys.executable, "-m", "tests.campaigns.proof.constants", "onnx_migrate/verify", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert " = " in done.stdout
