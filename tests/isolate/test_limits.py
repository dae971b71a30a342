from __future__ import annotations

import os
import sys

import pytest

from onnx_migrate import isolate
from onnx_migrate.isolate.limits import Limits


def test_memory_is_three_quarters_of_the_machine_unless_given() -> None:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert Limits.of(5, None) == Limits(5, whole * 3 // 4)
    assert Limits.of(5, 1 << 30) == Limits(5, 1 << 30)


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA covers mappings on Linux")
def test_the_limit_is_of_the_child_alone() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    inside = isolate.run("resource:getrlimit", resource.RLIMIT_DATA, limits=Limits(memory=1 << 30))
    assert isinstance(inside, isolate.Returned)
    assert inside.value[0] == 1 << 30
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
