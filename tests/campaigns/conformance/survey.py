"""Judges many cases in child processes, where native code may crash or hang."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures

import onnxruntime as ort

from onnx_migrate.batching.pool import LocalPool, WorkerEndedError
from tests.campaigns.conformance.cases import Case
from tests.campaigns.conformance.judge import Outcome, judge

__all__ = ["Task", "survey"]

Task = tuple[Case, str, str, int]
"""A case, a setting, a tool and the opset to reach."""

Work = Callable[[Sequence[Task]], list[Outcome]]

CHUNK = 16


def survey(
    tasks: Sequence[Task], *, workers: int = 2, seconds: float = 60.0, work: Work | None = None
) -> dict[Task, Outcome]:
    """Judge each task; one that ends its process has the outcome "crashed", one that takes too long "hung".

    `work` is what the children call instead of `judge`.
    """
    work = work or _judge
    chunks = [tasks[start : start + CHUNK] for start in range(0, len(tasks), CHUNK)]
    found: dict[Task, Outcome] = {}
    lost: list[Task] = []
    for chunk, outcomes in zip(chunks, _run(work, chunks, workers, CHUNK * seconds), strict=True):
        if isinstance(outcomes, Outcome):
            lost.extend(chunk)
        else:
            found.update(zip(chunk, outcomes, strict=True))
    for task, outcomes in zip(lost, _run(work, [[task] for task in lost], workers, seconds), strict=True):
        found[task] = outcomes if isinstance(outcomes, Outcome) else outcomes[0]
    return found


def _run(
    work: Work, chunks: Sequence[Sequence[Task]], workers: int, seconds: float
) -> Iterator[list[Outcome] | Outcome]:
    """Yield the outcomes of each chunk in order, or the one outcome that ended it."""
    with LocalPool(workers) as pool:
        scheduled = [pool.schedule(work, chunk, timeout=seconds) for chunk in chunks]
        for future in scheduled:
            yield _outcomes(future, seconds)


def _outcomes(future: futures.Future[list[Outcome]], seconds: float) -> list[Outcome] | Outcome:
    try:
        return future.result()
    except TimeoutError:
        return Outcome("hung", f"not done after {seconds:g} s")
    except WorkerEndedError as error:
        return Outcome("crashed", str(error))


def _judge(tasks: Iterable[Task]) -> list[Outcome]:
    ort.set_default_logger_severity(4)
    warnings.simplefilter("ignore")  # overflows in onnx.reference, old protobuf fields
    return [judge(*task) for task in tasks]
