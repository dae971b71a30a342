"""The end of a batch: groups of equal messages, the slowest models, the next steps, Markdown and CSV."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from onnx_migrate.batching import Outcome, Summary
from onnx_migrate.batching.job import STATES
from onnx_migrate.cli.output.batch_summary import (
    Ended,
    csv_text,
    grouped,
    markdown_text,
    next_steps,
    print_table,
    slowest,
)

HUNG = Outcome(
    "hang.onnx",
    "out/hang.onnx",
    "migrated",
    verification="unverified",
    doubt="timed out after 9 s",
    late=True,
)
KILLED = Outcome("killed.onnx", None, "failed", "timed-out", "the model timed out after 9 s", 9.0)
UNSURE = Outcome("odd.onnx", "out/odd.onnx", "migrated", verification="unverified", doubt="no inputs\nfit")
REQUIRED = Outcome("strict.onnx", None, "failed", "unverified", "could not be compared")
GOOD = Outcome("good.onnx", "out/good.onnx", "migrated", verification="verified", seconds=1.25)


def refused(name: str, node: str) -> Outcome:
    return Outcome(name, None, "refused", "no-equal", f"{name}: node '{node}' has no equal")


def summary_of(*outcomes: Outcome, models: int = 0, allow: bool = False) -> Summary:
    summary = Summary(models=models or len(outcomes), complete=not models, allow_unverified=allow)
    for outcome in outcomes:
        summary.add(outcome)
    return summary


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(HUNG, "timed-out"), (KILLED, "timed-out"), (UNSURE, "unverified"), (REQUIRED, "unverified"), (GOOD, "migrated")],
    ids=lambda value: value if isinstance(value, str) else value.source,
)  # fmt: skip
def test_a_model_has_one_state(outcome: Outcome, state: str) -> None:
    assert outcome.state == state
    assert outcome.as_dict()["state"] == state
    assert state in STATES


@pytest.mark.parametrize(
    ("outcomes", "allow", "done", "ok"),
    [
        ((GOOD,), False, True, True),
        ((GOOD, UNSURE), False, True, False),
        ((GOOD, UNSURE), True, True, True),
        ((HUNG,), False, True, False),
        ((HUNG,), True, True, True),
        ((KILLED,), True, False, False),
        ((REQUIRED,), True, False, False),
    ],
)
def test_unverified_is_a_success_only_where_that_is_allowed(
    outcomes: tuple[Outcome, ...], allow: bool, done: bool, ok: bool
) -> None:
    summary = summary_of(*outcomes, allow=allow)
    assert (summary.done, summary.ok) == (done, ok)


def test_equal_messages_are_one_group_whatever_the_names_in_them() -> None:
    outcomes = (refused("d/b.onnx", "n1"), refused("a.onnx", "n2"), UNSURE, GOOD)
    groups = grouped(map(Ended.of, outcomes))

    assert [(group.state, group.models) for group in groups] == [
        ("migrated", ("good.onnx",)),
        ("unverified", ("odd.onnx",)),
        ("refused", ("a.onnx", "d/b.onnx")),
    ]
    assert groups[2].reason == "no-equal: node 'n2' has no equal"
    assert groups[1].reason == "no inputs fit"


@pytest.mark.parametrize(
    ("one", "other", "groups"),
    [
        ("it ends at byte 12 of 1,024", "it ends at byte 7 of 99", 1),
        ("data lies in one.onnx.data", "data lies in other.onnx.data", 1),
        ("Conv fails", "Relu fails", 2),
    ],
)
def test_numbers_and_names_of_files_make_no_group(one: str, other: str, groups: int) -> None:
    outcomes = (
        Outcome("d/one.onnx", None, "failed", "x", one),
        Outcome("d/other.onnx", None, "failed", "x", other),
    )
    assert len(grouped(map(Ended.of, outcomes))) == groups


def test_the_table_has_a_line_for_each_reason_and_what_did_not_end() -> None:
    summary = summary_of(HUNG, GOOD, models=5)
    console = Console(file=io.StringIO(), width=20)
    print_table(console, summary, [Ended.of(HUNG), Ended.of(GOOD)], running=1)

    assert [" ".join(line.split()) for line in console.file.getvalue().splitlines()] == [  # type: ignore[attr-defined]
        "models status reason", "1 migrated", "1 timed-out timed out after 9 s", "hang.onnx", "1 stopped", "2 not started",
    ]  # fmt: skip


def test_the_slowest_five_are_listed_of_more() -> None:
    entries = [Ended.of(Outcome(f"{n}.onnx", None, "migrated", seconds=float(n))) for n in range(7)]
    assert slowest(entries) == "slowest: 6.onnx 6.0 s, 5.onnx 5.0 s, 4.onnx 4.0 s, 3.onnx 3.0 s, 2.onnx 2.0 s"
    assert slowest(entries[:5]) == ""


def test_the_next_steps_name_the_options() -> None:
    told = " ".join(next_steps(summary_of(HUNG, refused("a.onnx", "n"), models=4), out_dir=True))
    assert "2 models without a result" in told
    assert all(option in told for option in ("--resume", "--timeout", "--allow-unverified"))
    assert "--resume" not in " ".join(next_steps(summary_of(HUNG), out_dir=False))
    assert not list(next_steps(summary_of(GOOD), out_dir=True))
    assert not list(next_steps(summary_of(UNSURE, allow=True), out_dir=True))


def test_csv_and_markdown_have_a_row_for_each_model() -> None:
    odd = Outcome('o,"|<b>.onnx', None, "failed", "crashed", "a\nb")
    entries = [Ended.of(outcome) for outcome in (odd, GOOD, HUNG)]

    rows = list(csv.DictReader(io.StringIO(csv_text(entries))))
    assert [(row["model"], row["status"], row["reason"]) for row in rows] == [
        ("good.onnx", "migrated", ""), ("hang.onnx", "timed-out", "timed out after 9 s"),
        ('o,"|<b>.onnx', "failed", "crashed: a b"),
    ]  # fmt: skip
    text = markdown_text(summary_of(odd, GOOD, HUNG), entries)
    assert "**3 models**: 1 failed, 1 migrated, 1 timed-out" in text
    assert '| o,"\\|&lt;b>.onnx | failed |' in text
    assert {line.replace("\\|", "").count("|") for line in text.splitlines()[2:]} == {8}
