from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from onnx_migrate import process
from onnx_migrate.process.limits import Limits, less_memory, memory_limit


def test_memory_is_three_quarters_of_the_machine_unless_given() -> None:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert Limits.of(5, None) == Limits(5, whole * 3 // 4)
    assert Limits.of(5, 1 << 30) == Limits(5, 1 << 30)


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA covers mappings on Linux")
def test_the_limit_is_of_the_child_alone() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    inside = process.run("resource:getrlimit", resource.RLIMIT_DATA, limits=Limits(memory=1 << 30))
    assert isinstance(inside, process.Returned)
    assert inside.value[0] == 1 << 30
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


LESS = """
from onnx_migrate.process.limits import data_size, less_memory, memory_limit

def taken(more, size):
    before = memory_limit()
    try:
        with less_memory(more):
            assert memory_limit() <= data_size() + more
            return len(bytes(size)), None
    except MemoryError:
        return 0, memory_limit() == before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA covers mappings on Linux")
def test_a_block_may_take_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "less_memory_in_child.py").write_text(LESS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for more, size, expected in ((64 << 20, 16 << 20, (16 << 20, None)), (64 << 20, 256 << 20, (0, True))):
        ending = process.run("less_memory_in_child:taken", more, size, limits=Limits(memory=1 << 30))
        assert isinstance(ending, process.Returned), ending
        assert ending.value == expected


def test_a_process_without_a_limit_gets_none() -> None:
    before = memory_limit()
    with less_memory(1 << 20):
        assert memory_limit() == before
    assert memory_limit() == before
