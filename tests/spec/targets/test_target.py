"""One runtime at one release."""

from __future__ import annotations

from onnx_migrate.spec.targets.target import Target
from tests.support.targets import targets_of

CHIP = """name = "chip"
title = "Chip"
operators = "{operators}"
[[release]]
from = "2.0"
opset = 13
source = "the manual"
[[operator]]
names = ["Add", "Clip"]
newest = 12
[[operator]]
names = ["Clip"]
newest = 11
types = ["float32"]
[[operator]]
names = ["Mod"]
from = "2.1"
[[operator]]
names = ["Gelu"]
domain = "com.microsoft"
source = "the wiki"
[[operator]]
names = ["Loop", "If"]
until = "2.0"
"""


def chip(operators: str, more: str = "") -> Target:
    (target,) = targets_of(CHIP.format(operators=operators) + more)
    return target


def test_of_a_listed_runtime_an_operator_without_a_row_is_missing() -> None:
    target = chip("listed")

    names = ("Add", "Clip", "Mod", "Loop", "Relu")
    assert [target.has("", name) for name in names] == [True, True, False, False, False]
    assert target.has("ai.onnx", "Add")
    assert target.has("com.microsoft", "Gelu")
    assert not target.has("", "Gelu")


def test_of_another_only_what_is_said_to_lack() -> None:
    target = chip("any", '[[operator]]\nnames = ["Relu", "Add"]\nlacking = true\n')

    names = ("Add", "Clip", "Mod", "Loop", "Relu", "Tan")
    assert [target.has("", name) for name in names] == [False, True, True, True, False, True]


def test_versions_and_sources() -> None:
    target = chip("any")

    assert [target.newest_version("", name) for name in ("Add", "Clip", "Mod")] == [12, 11, None]
    (gelu,) = target.rows_of("com.microsoft", "Gelu")
    (add,) = target.rows_of("", "Add")
    assert (target.source_of(gelu), target.source_of(add)) == ("the wiki", "the manual")


def test_a_report_says_that_a_row_was_only_read() -> None:
    target = chip("any")

    assert (str(target), target.qualified) == ("Chip 2.0", "Chip 2.0 (read, not measured)")
    found = target.as_dict()
    assert (found["name"], found["release"], found["opset"], found["measured"]) == ("chip", "2.0", 13, False)
    assert len(found["table_sha256"]) == 64
