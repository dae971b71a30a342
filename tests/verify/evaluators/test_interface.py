"""What all runtimes have in common: how they are found, and what their errors say."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from onnx_migrate.verify import evaluators
from onnx_migrate.verify.evaluators import LEVELS, REFERENCE, open_model
from onnx_migrate.verify.evaluators.interface import (
    EvaluationError,
    Evaluator,
    one_line,
    raise_if_out_of_memory,
)
from tests.verify.harness import RELU, runnable


@pytest.mark.parametrize("configuration", [*LEVELS, REFERENCE])
def test_every_configuration_runs_a_model_by_names(configuration):
    model = open_model(runnable(RELU), configuration)
    assert isinstance(model, Evaluator)
    values = model.run({"x": np.float32([[-1, 2, -3, 4]])})
    assert {name: value.tolist() for name, value in values.items()} == {"y": [[0, 2, 0, 4]]}
    assert model.name.split()[0] in ("onnxruntime", "onnx.reference")


@pytest.mark.parametrize("configuration", [*LEVELS, REFERENCE])
def test_every_configuration_raises_one_kind_of_error_on_one_line(configuration):
    unknown = runnable("(float[4] x) => (float[4] y) { y = Rela(x) }")
    with pytest.raises(EvaluationError) as caught:
        open_model(unknown, configuration).run({"x": np.zeros(4, np.float32)})
    assert "\n" not in str(caught.value)
    with pytest.raises(EvaluationError) as caught:
        open_model(runnable(RELU), configuration).run({})
    assert not caught.value.loading
    assert caught.value.failed_to == "run"


def test_a_runtime_in_a_file_of_its_own_is_found(tmp_path, monkeypatch):
    (tmp_path / "echo_runtime.py").write_text(
        "from onnx_migrate.verify.evaluators.interface import Evaluator\n"
        "class Echo(Evaluator):\n"
        "    def __init__(self, runnable):\n"
        "        self.names = [output.name for output in runnable.proto().graph.output]\n"
        "    def run(self, inputs):\n"
        "        return dict.fromkeys(self.names, 7)\n"
        "LOADERS = {'echo': Echo}\n"
    )
    monkeypatch.setattr(evaluators, "__path__", [*evaluators.__path__, str(tmp_path)])
    evaluators._loaders.cache_clear()
    try:
        assert open_model(runnable(RELU), "echo").run({}) == {"y": 7}
        assert open_model(runnable(RELU), REFERENCE).name.startswith("onnx.reference")
    finally:
        evaluators._loaders.cache_clear()


def test_long_messages_are_cut():
    assert one_line("a\n  b") == "a b"
    assert len(one_line("x" * 1000)) == 400


@pytest.mark.parametrize(
    "error", [MemoryError("here"), RuntimeError("Failed to allocate memory for requested buffer of size 9")]
)
def test_a_lack_of_memory_is_not_an_error_of_the_model(error):
    with pytest.raises(MemoryError, match=str(error)):
        raise_if_out_of_memory(error)
    with pytest.raises(MemoryError, match="in words"):
        raise_if_out_of_memory(error, "in words")
    raise_if_out_of_memory(RuntimeError("Invalid shape"))


@pytest.mark.parametrize("configuration", [*LEVELS, REFERENCE])
def test_a_runtime_that_lacks_memory_raises_that(configuration, monkeypatch):
    model = open_model(runnable(RELU), configuration)

    def lacking(*args, **more):
        raise RuntimeError("std::bad_alloc")

    monkeypatch.setattr(
        model, "_session" if configuration in LEVELS else "_evaluator", SimpleNamespace(run=lacking)
    )
    with pytest.raises(MemoryError):
        model.run({"x": np.zeros((1, 4), np.float32)})
