"""Models in a process of a foreign runtime's: what is handed over, what comes back, what ends it."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

from onnx_migrate.model.weights import Weights
from onnx_migrate.process import Limits
from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import EvaluationError, driver_facts
from onnx_migrate.verify.evaluators.driver_facts import drivers
from onnx_migrate.verify.evaluators.foreign import Foreign, ForeignProcess, NotInstalled, Place
from tests.support.paths import ROOT
from tests.verify.harness import RELU, net, runnable

_DRIVER = """
import os, time, numpy
TITLE = "Relu"
FLOOR = 16.0
def version(): return "relu 1"
def load(path, example, outputs):
    data = open(path, "rb").read()
    if b"crash" in data: os.abort()
    if b"hang" in data: time.sleep(60)
    shape = example["x"].shape
    def run(feed):
        assert feed["x"].shape == shape, "other shapes than at loading"
        if feed["x"].size == 8:
            os.write(2, b"it only takes four\\n")
            raise ValueError("no eight")
        if feed["x"].size == 12: return []
        return [numpy.maximum(feed["x"], 0) if feed["x"].dtype.kind == "f" else feed["x"]]
    return run
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "relu.py").write_text(_DRIVER, encoding="utf-8")
    (tmp_path / "serve.py").write_text(
        (driver_facts.DRIVERS / "serve.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    monkeypatch.setattr(driver_facts, "DRIVERS", tmp_path)
    return Place.here("relu")


def x(rows: int) -> dict:
    return {"x": np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)}


def test_a_model_runs_and_is_loaded_again_for_other_shapes(place):
    with Foreign(runnable(RELU), place) as evaluator:
        assert evaluator.name == "relu 1"
        for rows in (1, 1, 5):
            assert np.array_equal(evaluator.run(x(rows))["y"], np.maximum(x(rows)["x"], 0))


def test_an_error_has_the_words_of_the_runtime_and_what_it_printed(place):
    with Foreign(runnable(RELU), place) as evaluator:
        with pytest.raises(EvaluationError, match="no eight: it only takes four") as caught:
            evaluator.run(x(2))
        assert not caught.value.loading
        assert evaluator.run(x(1))["y"].shape == (1, 4)


def test_missing_outputs_are_an_error(place):
    with (
        Foreign(runnable(RELU), place) as evaluator,
        pytest.raises(EvaluationError, match="0 outputs in place of 1"),
    ):
        evaluator.run(x(3))


@pytest.mark.parametrize(("what", "words"), [("crash", "SIGABRT"), ("hang", "timed out after 1 s")])
def test_its_end_is_an_error_of_loading(place, what, words):
    model = net(RELU)
    model.doc_string = what
    given = Runnable(structure=model.SerializeToString())
    with (
        Foreign(given, place, Limits(1.0)) as evaluator,
        pytest.raises(EvaluationError, match=words) as caught,
    ):
        evaluator.run(x(1))
    assert caught.value.loading


def test_types_that_a_file_cannot_hold_are_not_handed_over(place):
    with Foreign(runnable(RELU), place) as evaluator:
        with pytest.raises(EvaluationError, match="'x' is of list") as caught:
            evaluator.run({"x": [np.zeros(2)]})
        assert caught.value.limit
        words = evaluator.run({"x": np.array([["a", "bcd"]], object)})["y"]
    assert words.tolist() == [["a", "bcd"]]


def test_weights_outside_the_file_are_written_into_it(place, tmp_path):
    model = net("(float[N,4] x) => (float[N,4] y) { y = Add(x, w) }", w=[1.0, 2, 3, 4])
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    structure = onnx.load(tmp_path / "m.onnx", load_external_data=False).SerializeToString()
    with Foreign(Runnable(structure=structure, weights=Weights(tmp_path)), place) as evaluator:
        written = onnx.load(evaluator._path, load_external_data=False)
        folder = evaluator._path.parent
    assert onnx.numpy_helper.to_array(written.graph.initializer[0]).tolist() == [1, 2, 3, 4]
    assert not folder.exists()


def test_what_is_not_there_says_why(place, tmp_path):
    with pytest.raises(NotInstalled, match="No such file"):
        ForeignProcess(Place("relu", str(tmp_path / "python")))
    (tmp_path / "relu.py").write_text("import no_such_package", encoding="utf-8")
    with pytest.raises(NotInstalled, match="No module named 'no_such_package'"):
        ForeignProcess(place)


def test_every_driver_has_a_title_and_a_figure_for_its_rounding():
    helpers = {"--init--", "serve"}
    names = {path.stem.replace("_", "-") for path in driver_facts.DRIVERS.glob("*.py")} - helpers
    assert names == set(drivers())
    assert all(facts.floor >= 16 for facts in drivers().values())
    aliases = [name for facts in drivers().values() for name in facts.aliases]
    assert len({*aliases, *names}) == len(aliases) + len(names)


def test_the_rounding_of_each_runtime_is_that_of_the_page_with_its_measurement():
    page = (ROOT / "docs" / "proving.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split("|") for line in page.splitlines() if line.startswith("| ")]
    floors = {row[0]: row[-1].strip().replace(",", "") for row in rows}
    for facts in drivers().values():
        (floor,) = {
            value
            for heads, value in floors.items()
            for head in heads.split(",")
            if names(head) == facts.title
        }
        assert float(floor) == facts.floor


def names(head: str) -> str:
    """Return the first cell of a row without the release: "tract 0.23.9" is "tract"."""
    return re.sub(r" [\d.]+$", "", head.strip())
