"""What an executor of the caller's is given, and what becomes of a job that it refuses."""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future
from typing import Any

from onnx_migrate.batching.executors import submitting
from onnx_migrate.batching.job import MIGRATED, Job, Outcome
from onnx_migrate.batching.warm import run_warm
from onnx_migrate.batching.work import run_job

JOB = Job("in.onnx", "out.onnx", {"input_data": "x.npz"}, isolated=False)


class Recorder(Executor):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls.append((fn, *args))
        future: Future[Any] = Future()
        future.set_result(Outcome("elsewhere", None, MIGRATED))
        return future


def test_other_executors_get_absolute_paths_and_outcomes_keep_the_given_ones() -> None:
    recorder = Recorder()
    with submitting(recorder, 1, 5.0, None) as submit:
        outcome = submit.outcome(JOB, submit(JOB))

    ((function, sent, *limits),) = recorder.calls
    assert (function, limits) == (run_warm, [5.0, None])
    assert (sent.source, sent.output) == (os.path.abspath("in.onnx"), os.path.abspath("out.onnx"))
    assert sent.arguments["input_data"] == os.path.abspath("x.npz")
    assert outcome is not None
    assert (outcome.source, outcome.output) == ("in.onnx", "out.onnx")


def test_an_executor_that_does_not_accept_a_job_loses_it() -> None:
    class Closed(Recorder):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise RuntimeError("closed")

    with submitting(Closed(), 1, 5.0, None) as submit:
        outcome = submit.outcome(JOB, submit(JOB))

    assert outcome is not None
    assert (outcome.code, "RuntimeError: closed" in outcome.reason) == ("worker-lost", True)


def test_a_model_in_memory_is_migrated_in_this_process() -> None:
    recorder = Recorder()
    with submitting(recorder, 1, 5.0, None) as submit:
        submit(Job("memory://in.onnx", "memory://out.onnx", isolated=False))

    assert recorder.calls == [(run_job, Job("memory://in.onnx", "memory://out.onnx", isolated=True))]
