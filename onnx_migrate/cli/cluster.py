"""`--scheduler ADDRESS`: the workers of a Dask cluster as an executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

__all__ = ["cluster"]

_PATIENCE = 15
"""Seconds in which the scheduler must answer."""


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
        yield client.get_executor(pure=False)  # type: ignore[no-untyped-call]
