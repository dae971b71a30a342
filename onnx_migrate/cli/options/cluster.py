"""`--scheduler ADDRESS`: an executor that runs on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

__all__ = ["cluster"]

_TIMEOUT = 15
"""Seconds within which the scheduler must answer, and be reachable again when the connection is lost."""


class _Cluster(Executor):
    """An executor over a Dask client.

    The futures of Dask's own executor, `client.get_executor()`, never end when the connection to the scheduler is lost.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` on a worker; the future raises the exception of the call, or of the cluster."""
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

        # `pure=False`, because Dask otherwise returns an earlier result for equal arguments.
        self._client.submit(fn, *args, pure=False, **kwargs).add_done_callback(settle)
        return future


@contextmanager
def cluster(address: str | None) -> Iterator[Executor | None]:
    """Yield an executor for the scheduler at `address`, None for no address. Raises UsageError if it does not answer."""
    if address is None:
        yield None
        return
    from onnx_migrate.errors import UsageError

    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "--scheduler needs Dask, which is not installed", hint="run pip install 'onnx-migrate[dask]'"
        ) from error
    try:
        client = Client(address, timeout=_TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{address}: no Dask scheduler answers: {error}", hint="give an address such as tcp://host:8786"
        ) from error
    with client:
        yield _Cluster(client)
