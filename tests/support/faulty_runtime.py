"""Runtimes with faults: one that is off, refuses, crashes or hangs by words in a model's doc string, and sums that saturate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

__all__ = ["faulty", "saturating"]

_DRIVER = r"""
import os, re, sys, time
import numpy as np, onnxruntime
TITLE = "Faulty"
FLOOR = 16.0
def version(): return "Faulty 2.3.4"
def lack(): raise MemoryError("no more")
def load(path, example, outputs):
    data = open(path, "rb").read()
    for word, then in ((b"REFUSE", lambda: 1 / 0), (b"CRASH", os.abort), (b"HANG", lambda: time.sleep(60)), (b"LACK", lack)):
        if word in data:
            then()
    off = re.search(rb"OFF=([0-9.e-]+)", data)
    needs = re.search(rb"NEEDS=(\w+)", data)
    if needs and data.count(needs[1]) < 2:
        off = [b"", 1]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    def run(feed):
        if b"FAIL" in data:
            raise ValueError("it fails")
        found = session.run(None, feed)
        if off:
            found = [v + np.asarray(float(off[1]), v.dtype) for v in found]
        if b"NARROW" in data:
            found = [v.astype(np.int32) if v.dtype == np.int64 else v for v in found]
        return [v[None] for v in found] if b"AXIS" in data else found
    return run
"""


@pytest.fixture
def faulty(tmp_path_factory, monkeypatch):
    """Make "faulty" a runtime that is installed, and return where; its driver is in driver_facts.DRIVERS."""
    from onnx_migrate.verify.evaluators import driver_facts
    from onnx_migrate.verify.other_runtimes import places

    folder = tmp_path_factory.mktemp("drivers")
    (folder / "serve.py").write_bytes((driver_facts.DRIVERS / "serve.py").read_bytes())
    (folder / "faulty.py").write_text(_DRIVER, encoding="utf-8")
    monkeypatch.setattr(driver_facts, "DRIVERS", folder)
    places.place_of.cache_clear()
    yield places.place_of("faulty")
    places.place_of.cache_clear()


def _sum_in_int16(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], za: Any, zb: Any) -> np.ndarray[Any, Any]:
    """Multiply matrices as VPMADDUBSW does: two neighbouring products are added in int16, and what is beyond it is its end."""
    wide, long = a.astype(np.int64), b.astype(np.int64)
    if a.dtype == np.uint8 and b.dtype == np.int8:
        pairs = wide[..., 0::2, None] * long[0::2] + wide[..., 1::2, None] * long[1::2]
        product = np.clip(pairs, -(2**15), 2**15 - 1).sum(-2)
    else:
        product = wide @ long
    rows, columns = wide.sum(-1, keepdims=True), long.sum(0)
    return (product - rows * zb - columns * za + len(b) * np.int64(za) * zb).astype(np.int32)


@pytest.fixture
def saturating(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let ONNX Runtime compute MatMulInteger of even lengths in this process as on a processor without VNNI."""
    import onnxruntime
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    from onnx_migrate.verify.evaluators.quirks.integer_sums import saturates

    class MatMulInteger(OpRun):
        op_domain = ""

        def _run(self, a: Any, b: Any, za: Any = None, zb: Any = None) -> tuple[Any]:
            return (
                _sum_in_int16(a, b, *(0 if zero is None else zero.astype(np.int64) for zero in (za, zb))),
            )

    class Session(onnxruntime.InferenceSession):
        def __init__(self, model: bytes, *args: Any, **options: Any) -> None:
            super().__init__(model, *args, **options)
            self._evaluator = None
            if b"MatMulInteger" in model:
                self._evaluator = ReferenceEvaluator(
                    onnx.ModelProto.FromString(model), new_ops=[MatMulInteger]
                )

        def run(self, outputs: Any, feed: Any, *args: Any) -> Any:
            return (
                self._evaluator.run(outputs, feed) if self._evaluator else super().run(outputs, feed, *args)
            )

    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    saturates.cache_clear()
    yield
    saturates.cache_clear()
