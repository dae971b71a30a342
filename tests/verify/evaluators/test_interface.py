"""What runtimes share, and the changes to a model's interface before it runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify import Runnable, evaluators
from onnx_migrate.verify.evaluators import LEVELS, REFERENCE, UNOPTIMIZED, open_model
from onnx_migrate.verify.evaluators.interface import (
    EvaluationError,
    Evaluator,
    one_line,
    raise_if_out_of_memory,
    with_defaults_as,
    with_extra_outputs,
    without_static_shapes,
)
from tests.support.versions import RUNTIME
from tests.verify.harness import RELU, check, net, runnable


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


RESIZE = """(float[1,1,13,13] x) => (float[1,1,25,25] y) {{
    [resize] r = Resize<mode = "linear"> (x, "", {given}) [add] y = Add (r, c)
}}"""
SKIP = np.arange(625, dtype=np.float32).reshape(1, 1, 25, 25)


@pytest.mark.parametrize(("skip", "kind"), [(SKIP, Kind.VERIFIED), (SKIP + 1, Kind.DIFFERS)])
def test_an_original_with_a_wrongly_inferred_length_is_run_without_static_shapes(skip, kind):
    scales = runnable(RESIZE.format(given="s"), s=[1.0, 1, 25 / 13, 25 / 13], c=SKIP)
    sizes = runnable(RESIZE.format(given='"", s'), s=[1, 1, 25, 25], c=skip)
    verdict = check(scales, sizes, kind, exact=sizes)
    assert verdict.exact == (kind is Kind.VERIFIED)
    refused = ["Incompatible dimensions" in note for note in verdict.notes]
    assert refused == ([True] if RUNTIME >= (1, 28) else []), "older runtimes load it with its shapes"


def test_without_static_shapes_nothing_is_declared_and_the_numbers_stay():
    model = net(
        "(float[2,4] x, float[4] w) => (float[2,4] y) <float[4] w = {1, 2, 3, 4}> { a = Mul(x, w) y = Relu(a) }"
    )
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [2, 4]))
    flexible = without_static_shapes(runnable(model))
    graph = flexible.proto().graph
    assert not any(dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim)
    assert len(graph.input[0].type.tensor_type.shape.dim) == 2, "the rank stays"
    assert not graph.output[0].type.tensor_type.HasField("shape")
    assert not graph.value_info
    x = np.float32([[1, -1, 1, -1], [2, 2, 2, 2]])
    given, other = (open_model(each, UNOPTIMIZED).run({"x": x})["y"] for each in (runnable(model), flexible))
    assert np.array_equal(given, other)


def test_inner_values_become_outputs_once():
    exposed = with_extra_outputs(
        runnable("(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }"), ["a", "y", "a"]
    )
    values = open_model(exposed, UNOPTIMIZED).run({"x": np.float32([1, -1])})
    assert values["a"].tolist() == [-1, 1]
    assert list(values) == ["y", "a"]


def test_external_data_is_found_in_the_folder_of_the_file(tmp_path):
    model = net("(float[4] x) => (float[4] y) { y = Add(x, w) }", w=[1.0, 2, 3, 4])
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    whole = Runnable(tmp_path / "m.onnx")
    assert whole.external_data.folder == tmp_path
    again = whole.with_structure(whole.proto())
    assert open_model(again, UNOPTIMIZED).run({"x": np.zeros(4, np.float32)})["y"].tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="path or a structure"):
        Runnable().proto()


@pytest.mark.parametrize(
    ("ir", "other_lists", "fed", "listed"),
    [
        (6, [], set(), ["x"]),
        (6, ["w"], set(), ["x", "w"]),
        (6, [], {"w"}, ["x", "w"]),
        (3, [], set(), ["x", "w"]),
    ],
)
def test_initializers_are_listed_as_inputs_where_the_other_model_lists_them_or_they_are_fed(
    ir, other_lists, fed, listed
):
    text = "(float[2] x{}) => (float[2] y) {{ y = Add (x, w) }}"
    one = net(text.format(", float[2] w"), ir=ir, w=[1, 2])
    other = net(text.format(", float[2] w" if other_lists else ""), ir=ir, w=[1, 2])
    found = with_defaults_as(runnable(one), runnable(other), fed).proto()
    assert [value.name for value in found.graph.input] == listed
    assert [tensor.name for tensor in found.graph.initializer] == ["w"]
