"""The models of a batch that run: on a terminal each with its time, elsewhere a line every 30 seconds."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from onnx_migrate.batching import Job, Summary
from onnx_migrate.cli.output.batch_progress import BatchProgress
from onnx_migrate.cli.output.running_models import RunningModels


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def running(limit: float = 120.0) -> tuple[RunningModels, Clock]:
    clock = Clock()
    models = RunningModels(limit, clock)
    models.plan(4)
    return models, clock


def test_a_line_is_due_every_30_seconds() -> None:
    models, clock = running()
    models.begin("slow.onnx")
    clock.now += 20
    models.begin("quick.onnx")
    assert models.due_line() == ""
    clock.now += 10
    assert models.due_line() == "0 of 4 models after 30 s; running: slow.onnx (30 s), quick.onnx (10 s)"
    assert models.due_line() == ""
    models.end("quick.onnx")
    clock.now += 30
    assert models.due_line() == "1 of 4 models after 60 s; running: slow.onnx (60 s); about 2:00 more"


def test_when_all_models_have_begun_their_limit_says_how_long_the_rest_takes() -> None:
    models, clock = running()
    for name in "abcd":
        models.begin(name)
    for name in "abc":
        models.end(name)
    clock.now += 50
    assert models.due_line().endswith("running: d (50 s); at most 1:10 more")


def test_a_second_attempt_goes_on_with_the_time_of_the_first() -> None:
    models, clock = running()
    models.begin("a")
    clock.now += 25
    models.begin("a")
    clock.now += 5
    assert "a (30 s)" in models.due_line()


def test_a_terminal_shows_each_model_with_its_time() -> None:
    models, clock = running()
    for number in range(10):
        models.begin(f"{number}.onnx")
    clock.now += 65
    stream = io.StringIO()
    Console(file=stream, width=80).print(models.picture())
    lines = stream.getvalue().splitlines()
    assert lines[0].strip() == "1:05  0.onnx"
    assert lines[8].strip() == "… and 2 more"
    assert "1:05 so far" in lines[-1]


@pytest.mark.parametrize(("quiet", "told"), [(False, 1), (True, 0)])
def test_a_batch_without_a_terminal_says_that_it_is_alive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: bool, told: int
) -> None:
    monkeypatch.setattr("onnx_migrate.cli.output.running_models._PERIOD", 0.0)
    progress = BatchProgress(lines=None, quiet=quiet)
    with progress:
        progress.planned(1)
        progress.started(Job("hang.onnx", None))
        progress.waiting()
        progress.finished(Summary())
    err = capsys.readouterr().err
    assert err.count("onnx-migrate: 0 of 1 models after 0 s; running: hang.onnx (0 s)") == told
