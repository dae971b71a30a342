"""The pause of the garbage collector ends with its block, whatever happens in it."""

from __future__ import annotations

import gc

import pytest

from onnx_migrate.engine.gc_pause import paused_garbage_collection


def test_collection_is_off_in_the_block_and_on_after_it_even_after_an_error() -> None:
    assert gc.isenabled()

    with pytest.raises(ValueError, match="inside"), paused_garbage_collection():
        raise ValueError("inside" if not gc.isenabled() else "collected")

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_garbage_collection(), paused_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
