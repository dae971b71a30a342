"""Functions and iterators of the user that yield inputs: how they are found, what they may yield, and how many are taken."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.inputs import spool
from onnx_migrate.verify.inputs.given import GivenInputs
from onnx_migrate.verify.inputs.stored import StoredInputs
from onnx_migrate.verify.inputs.user_inputs import Feeds
from tests.verify.harness import net

GRAPH = "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def feeds(data: Any, **options: Any) -> Feeds:
    return GivenInputs(data, **options).bind(net(GRAPH))


SCRIPT = """
import numpy as np
from beside import START
def three():
    for at in range(3):
        yield {"x": np.full((2, 3), START + at, np.float32)}
def fails():
    yield {"x": np.zeros((2, 3), np.float32)}
    raise KeyError("weather")
def load_data():
    return [{"x": np.ones((2, 3), np.float32)}]
number = 3
def wrong():
    yield np.zeros((2, 3), np.float32)
def none():
    return iter(())
def shape():
    yield {"x": np.zeros((2, 3), np.float32)}
    yield {"x": np.zeros((2, 4), np.float32)}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("START = 5")
    (tmp_path / "loader.py").write_text(SCRIPT)
    return tmp_path / "loader.py"


def test_a_function_of_a_file_or_of_a_module_yields_feeds(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [feed.inputs["x"][0, 0] for feed in feeds(f"{script}:three").sets] == [5, 6, 7]
    assert len(feeds(str(script)).sets) == 1
    monkeypatch.syspath_prepend(script.parent)
    found = feeds("loader:three")
    assert [feed.name for feed in found.sets] == ["loader:three 0", "loader:three 1", "loader:three 2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}:fails", "raises after 1 set of inputs: KeyError: 'weather'"),
        ("{}:missing", "cannot be loaded: AttributeError.*give MODULE:FUNCTION"),
        ("{}:number", "number is a int, and no function"),
        ("{}:wrong", "yields a ndarray, and no dict of arrays"),
        ("{}:none", "yields no inputs"),
        ("{}:shape", r"shape 1: input 'x' is float32\[2, 4\], expected float\[2, 3\]"),
        ("no.such:module", "cannot be loaded: ModuleNotFoundError"),
        ("/no/file.py:f", "there is no file /no/file.py"),
        ("x={}:three", "yields inputs by name.*leave x= out"),
    ],
)
def test_a_function_that_fails_says_how(script: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        feeds(text.format(script))
    assert re.search(message, caught.value.with_hint)
    assert caught.value.code == "input-data"


def endless() -> Iterator[dict[str, Any]]:
    buffer = np.zeros((2, 3), np.float32)
    for at in itertools.count():
        buffer[:] = at
        yield {"x": buffer}


def test_a_generator_without_end_is_limited_and_its_buffer_is_copied() -> None:
    found = feeds(endless, most=4)
    assert [feed.inputs["x"][0, 0] for feed in found.sets] == [0, 1, 2, 3]
    assert found.notes == ("the first 4 sets of inputs of endless were used; --max-inputs takes more",)
    assert len(feeds(endless(), most=4).sets) == 4
    assert not feeds(itertools.islice(endless(), 4), most=4).notes


def test_a_function_runs_once_for_all_models() -> None:
    calls = []

    def load() -> list[dict[str, Any]]:
        calls.append(1)
        return [{"x": X}]

    given = GivenInputs(load)
    given.bind(net(GRAPH))
    given.bind(net(GRAPH.replace("[2,3] y", "[N,3] y")))
    given.bind(net(GRAPH.replace("2,3", "N,3")))
    assert len(calls) == 1


def test_many_inputs_go_to_files_that_end_with_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_IN_MEMORY", 60)
    given = GivenInputs(endless, most=5)
    found = given.bind(net(GRAPH))
    assert sum(isinstance(feed.inputs, StoredInputs) for feed in found.sets) == 3
    assert [feed.inputs["x"][1, 2] for feed in found.sets] == [0, 1, 2, 3, 4]
    folder = given._spool._folder.path
    assert os.listdir(folder)
    del given, found
    assert not folder.exists()
