"""Steps of operators, and rows of runtimes."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.explanation.operators import operator_steps, step_heading
from onnx_migrate.explanation.runtime_rows import RuntimeRelease, runtime_rows
from onnx_migrate.json_form import json_of
from onnx_migrate.standard.targets import known_names


def test_all_steps_of_an_operator() -> None:
    found = operator_steps("resize")
    assert found is not None
    assert [line.code for line in found.up] == ["resize-11", "resize-13", "resize-18", "resize-19"]
    assert [line.code for line in found.down] == [f"resize-{v}-down" for v in (19, 18, 13, 11, 10)]
    assert found.versions == (10, 11, 13, 18, 19)
    assert all(line.reason for line in (*found.up, *found.down))


def test_what_replaces_an_operator() -> None:
    found = operator_steps("Softplus")
    assert found is not None
    assert [line.code for line in found.written_out] == ["softplus-written-out"]


def test_an_operator_that_nothing_replaces() -> None:
    found = operator_steps("com.microsoft:BeamSearch")
    assert found is not None
    assert [line.kind for line in found.written_out] == ["refused"]
    (step,) = (step for step in steps() if step.code == found.written_out[0].code)
    assert step_heading(step) == "BeamSearch where a runtime lacks it: refused"


def test_an_operator_of_another_domain() -> None:
    found = operator_steps("ai.onnx.ml:TreeEnsembleRegressor")
    assert found is not None
    assert found.label == "ai.onnx.ml:TreeEnsembleRegressor"
    assert found.up


def test_an_unknown_operator() -> None:
    assert operator_steps("FooBar") is None


def test_every_step_has_a_heading_and_is_found_by_its_operator() -> None:
    for step in steps():
        assert step.operator in step_heading(step)


@pytest.mark.parametrize("name", known_names())
def test_every_runtime_is_explained(name: str) -> None:
    rows = runtime_rows(name)
    assert rows is not None
    assert json_of(rows)["name"] == name
    assert json_of(rows)["title"]


def test_operators_that_are_listed_and_those_that_are_lacking() -> None:
    listed, others = runtime_rows("tensorrt==8.4"), runtime_rows("rknn==1.6")
    assert isinstance(listed, RuntimeRelease)
    assert isinstance(others, RuntimeRelease)
    assert "LayerNormalization" not in listed.operators
    assert "Conv" in listed.operators
    assert others.lacking
    assert not others.operators


def test_a_text_that_names_no_runtime() -> None:
    assert runtime_rows("no runtime at all") is None
