"""A runtime that is ONNX Runtime with faults: by words in a model's doc string it is off, refuses, crashes or hangs."""

from __future__ import annotations

import pytest

__all__ = ["faulty"]

_DRIVER = r"""
import os, re, sys, time
import numpy as np, onnxruntime
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
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
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
    """Make "faulty" a runtime that is installed, and return where; its driver is in foreign.DRIVERS."""
    from onnx_migrate.verify.elsewhere import places, rounding
    from onnx_migrate.verify.evaluators import foreign

    folder = tmp_path_factory.mktemp("drivers")
    (folder / "serve.py").write_bytes((foreign.DRIVERS / "serve.py").read_bytes())
    (folder / "faulty.py").write_text(_DRIVER, encoding="utf-8")
    monkeypatch.setattr(foreign, "DRIVERS", folder)
    monkeypatch.setitem(foreign.TITLES, "faulty", "Faulty")
    monkeypatch.setitem(rounding.FLOORS, "faulty", 16.0)
    places.place_of.cache_clear()
    yield places.place_of("faulty")
    places.place_of.cache_clear()
