from __future__ import annotations

import pickle

import pytest

from onnx_migrate.isolate.endings import Crashed, Ending, OutOfMemory, Raised, TimedOut, names_lack_of_memory


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Raised("KeyError", "gone"), "KeyError: gone"),
        (Raised("KeyError", ""), "KeyError"),
        (Crashed("SIGSEGV"), "the process crashed (SIGSEGV)"),
        (TimedOut(1.5), "not done after 1.5 s"),
        (OutOfMemory(3 << 30), "out of memory (limit 3.0 GB)"),
        (OutOfMemory(None), "out of memory"),
    ],
)
def test_endings_read_as_messages_and_pickle(ending: Ending, text: str) -> None:
    assert str(ending) == text
    assert pickle.loads(pickle.dumps(ending)) == ending


def test_what_names_lack_of_memory() -> None:
    assert names_lack_of_memory("terminate called after throwing an instance of 'std::bad_alloc'")
    assert not names_lack_of_memory("Segmentation fault")
