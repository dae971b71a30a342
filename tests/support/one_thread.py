"""Sessions of ONNX Runtime in tests run on one thread: another one of a session spins for 50 ms before it sleeps.

The tests of a verification take some milliseconds for each of thousands of sessions, and all processors have tests to run.
With OMP_NUM_THREADS=4, say, in the environment those of the project run on four; `.ci/run` does so for a part.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["install"]


def install() -> None:
    """Set the number of threads where nobody has set it: for sessions of the project, of tests, and for NumPy.

    Call it before NumPy is imported.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import onnxruntime

    original = onnxruntime.InferenceSession.__init__

    def begin(session: Any, model: Any, sess_options: Any = None, *args: Any, **more: Any) -> None:
        options = sess_options or onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.intra_op_num_threads or 1
        original(session, model, options, *args, **more)

    onnxruntime.InferenceSession.__init__ = begin
