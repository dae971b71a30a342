"""The program that runs a foreign runtime: `serve.py DRIVER`, the path of a file beside it, and then sys.path.

It reports the runtime. Then it reads requests as lines of JSON on stdin, and answers each with a line on stdout. The request
{"load": MODEL, "inputs": NPZ, "outputs": NAMES} gives {"loaded": true}. The request {"run": NPZ, "write": NPZ} gives {"ran":
true}. An error gives {"error": words}. The program runs in any Python from 3.7 on, with NumPy and nothing of this package.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Serve until stdin ends."""
    # The runtime may be installed in a folder of its own.
    sys.path[:0] = sys.argv[2:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of native code must not mix with the answers

    def answer(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    _die_with_parent()
    try:
        import numpy as np

        spec = importlib.util.spec_from_file_location("onnx_migrate_driver", sys.argv[1])
        assert spec is not None
        assert spec.loader is not None
        driver = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(driver)
        answer({"runtime": driver.version(), "python": ".".join(map(str, sys.version_info[:2]))})
    except Exception as error:
        answer({"missing": _words(error)})
        return
    run: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                run = None  # frees the one before
                run = driver.load(request["load"], _read(request["inputs"]), request["outputs"])
                answer({"loaded": True})
            else:
                results = [np.asarray(value) for value in run(_read(request["run"]))]
                np.savez(request["write"], *[_plain(value) for value in results])
                answer({"ran": True})
        except Exception as error:
            answer({"error": _words(error)})


def _read(path: str) -> dict[str, Any]:
    import numpy as np

    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _plain(value: Any) -> Any:
    return value.astype("U") if value.dtype == object else value


def _words(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    if isinstance(error, MemoryError):
        return "MemoryError: " + text  # the text alone may not show that memory ran out
    # RKNN's errors are whole tracebacks, and only the last line describes the error.
    return text.splitlines()[-1].strip() if text.startswith("Traceback (most recent call last)") else text


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    main()
