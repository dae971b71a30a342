"""`--scheduler ADDRESS`: the workers of a Dask cluster as an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

__all__ = ["cluster"]

_PATIENCE = 15
"""Seconds in which the scheduler must answer, and come back when the connection is lost."""


class _Cluster(Executor):
    """A Dask client as an executor.

    Dask's own, `client.get_executor()`, leaves futures open for ever when the scheduler is lost on the way.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Let a worker call `fn`; the future raises what the call, or the cluster, raises."""
        future: Future[Any] = Future()

        def settle(task: Any) -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                value = task.result()
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(value)

        self._client.submit(fn, *args, pure=False, **kwargs).add_done_callback(settle)
        return future


@contextmanager
def cluster(address: str | None) -> Iterator[Executor | None]:
    """Give the executor of the scheduler at `address`; None without one. Raises UsageError if it cannot be reached."""
    if address is None:
        yield None
        return
    from onnx_migrate.errors import UsageError

    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "--scheduler needs Dask, which is not installed", hint="pip install 'onnx-migrate[dask]'"
        ) from error
    try:
        client = Client(address, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UsageError(f"{address}: no scheduler answers: {error}", hint="as in tcp://host:8786") from error
    with client:
        yield _Cluster(client)
