"""Remarks are collected by whoever asks for them, and are warnings elsewhere."""

from __future__ import annotations

import threading

import pytest

from onnx_migrate.remarks import collected_remarks, remark


def test_remarks_are_collected_by_the_innermost_block() -> None:
    with collected_remarks() as outer:
        remark("one")
        with collected_remarks() as inner:
            remark("two")
        remark("three")
    assert (outer, inner) == (["one", "three"], ["two"])


def test_a_remark_that_nobody_collects_is_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="^left behind$"):
        remark("left behind")


def test_threads_collect_their_own() -> None:
    caught: list[str] = []

    def other() -> None:
        with collected_remarks() as remarks:
            remark("of the other")
        caught.extend(remarks)

    with collected_remarks() as own:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert (own, caught) == ([], ["of the other"])
