"""The command line over the library: one file for each command in commands/, shared options, and output."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from onnx_migrate.errors import UsageError

__all__ = ["main"]


def main() -> None:
    """Run the command line with the arguments of the process; the entry point of the console script.

    One command leaves few cycles, and each search for them visits all that it has made, so there is none; `batch` turns
    it on again.
    """
    gc.disable()
    # OpenBLAS's threads, which the import of NumPy starts, sleep at once; else each spins for 0.1 s. The least it takes is 4.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        from onnx_migrate.cli.stop_signals import end_on_signals, ignore_interrupts
        from onnx_migrate.errors import UsageError

        end_on_signals()
        from onnx_migrate.cli.app import run
        from onnx_migrate.process.copied import allow_copies

        allow_copies()
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, ImportError, MemoryError, SystemError) as error:
        sys.exit(f"onnx-migrate: failed: its modules cannot be loaded: {str(error) or 'memory is exhausted'}")
    except UsageError as error:  # the options of installed features are read before any command
        _refuse(error)
    try:
        run()
    except (
        UsageError
    ) as error:  # commands import the parts of installed features in a report before they catch errors
        _refuse(error)
    finally:
        ignore_interrupts()  # all is done: Python is about to end, and would print a traceback
        gc.freeze()  # and would search for cycles at its end


def _refuse(error: UsageError) -> NoReturn:
    """Print the error of an installed package, and end."""
    print(f"onnx-migrate: {error.code}: {error.with_hint}", file=sys.stderr)  # noqa: T201
    sys.exit(2)
