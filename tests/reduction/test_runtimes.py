"""A runtime as the check: it refuses, crashes, hangs or computes wrong values; and the command that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_migrate
from onnx_migrate import UsageError
from onnx_migrate.verify.evaluators import driver_facts
from tests.harness import model

HERE: dict[str, Any] = {"isolated": False}

NET = """17 (float[2,4] x) => (float[2,4] y) {
  a = Relu (x) b = Abs (a) c = Exp (b) d = Neg (c) e = Tanh (d) y = Sigmoid (e)
}"""

_DRIVER = r"""
import os, time
import numpy as np, onnx, onnxruntime
TITLE = "Odd"
FLOOR = 16.0
def version(): return "Odd 1.0"
def load(path, example, outputs):
    model = onnx.load(path)
    kinds = [node.op_type for node in model.graph.node]
    if "Exp" in kinds and "FAULT" == "load":
        raise ValueError("Exp has no kernel in odd.cpp:12")
    if "Exp" in kinds and "FAULT" == "crash":
        os.abort()
    if "Exp" in kinds and "FAULT" == "hang":
        time.sleep(60)
    if "FAULT" == "wrong":
        for node in model.graph.node:
            node.op_type = {"Exp": "Softplus"}.get(node.op_type, node.op_type)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    def run(feed):
        if "Exp" in kinds and "FAULT" == "run":
            raise ValueError("Exp does not run")
        return session.run(outputs, feed)
    return run
"""


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Make "odd" a runtime that is installed, with one fault."""
    from onnx_migrate.verify.other_runtimes import places

    fault = request.param
    (tmp_path / "serve.py").write_bytes((driver_facts.DRIVERS / "serve.py").read_bytes())
    (tmp_path / "odd.py").write_text(_DRIVER.replace("FAULT", fault), encoding="utf-8")
    monkeypatch.setattr(driver_facts, "DRIVERS", tmp_path)
    places.place_of.cache_clear()
    return str(fault)


FAILURES = {
    "load": "does not load", "run": "does not run", "crash": "crashes (SIGABRT)", "hang": "not done in time",
    "wrong": "computes wrong values (numbers)",
}  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [pytest.param(fault, marks=[pytest.mark.long] * (fault in ("hang", "crash"))) for fault in FAILURES],
    indirect=True,
)
def test_the_node_that_a_runtime_fails_at_remains(odd: str, tmp_path: Path) -> None:
    limit = {"check_timeout": 2.0} if odd == "hang" else {}
    result = onnx_migrate.reduce(model(NET), run_in="odd", **HERE, **limit)

    assert [node.op_type for node in result.model.graph.node] == ["Exp"]
    assert str(result.report.failure) == FAILURES[odd]
    written = result.save(tmp_path / "small.onnx")
    assert written[1:] == [str(tmp_path / "small.npz")]
    assert dict(np.load(written[1])).keys() == {"b"}
    command = f"onnx-migrate verify {written[0]} {written[0]} --run-in odd --input-data {written[1]}"
    assert result.command(written[0]) == command


@pytest.mark.parametrize("odd", ["load"], indirect=True)
def test_the_message_of_a_runtime_must_contain_the_text(odd: str) -> None:
    assert onnx_migrate.reduce(model(NET), run_in="odd", message="no kernel", **HERE).report.nodes == 1
    with pytest.raises(UsageError, match="does not contain"):
        onnx_migrate.reduce(model(NET), run_in="odd", message="no memory", **HERE)


@pytest.mark.parametrize("odd", ["none"], indirect=True)
def test_a_runtime_that_runs_the_model_right_is_an_error(odd: str) -> None:
    with pytest.raises(UsageError, match="passes the check"):
        onnx_migrate.reduce(model(NET), run_in="odd", **HERE)


@pytest.mark.parametrize("odd", ["wrong"], indirect=True)
@pytest.mark.parametrize("limit", ["y:1", {"y": 1.0}], ids=str)
def test_a_limit_for_the_output_allows_its_error(odd: str, limit: Any) -> None:
    """Softplus stands for Exp, and changes the Sigmoid at the end by less than 1."""
    assert onnx_migrate.reduce(model(NET), run_in="odd", atol="y:1e-6", **HERE).report.nodes == 1
    with pytest.raises(UsageError, match="passes the check"):
        onnx_migrate.reduce(model(NET), run_in="odd", atol=limit, **HERE)


@pytest.mark.parametrize("odd", ["none"], indirect=True)
def test_another_runtime_need_not_agree_bit_by_bit_with_a_limit(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_facts.DRIVERS / "odd.py"
    run = "return session.run(outputs, feed)"
    driver.write_text(
        driver.read_text(encoding="utf-8").replace(
            run, "return [value + np.float32(1e-5) for value in session.run(outputs, feed)]"
        ),
        encoding="utf-8",
    )
    with pytest.raises(UsageError, match="passes the check"):
        onnx_migrate.reduce(model(NET), run_in="odd", atol="y:1e-3", **HERE)


def test_a_message_alone_runs_models_in_onnxruntime() -> None:
    """No runtime here has the operator, so cuts get the types that inference finds."""
    proto = model(
        "17 (float[2,4] x) => (float[2,4] y) { a = Relu (x) b = Abs (a) c = com.example.Odd (b) d = Neg (c) y = Tanh (d) }"
    )
    proto.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("c", 1, [2, 4]))
    result = onnx_migrate.reduce(proto, message="com.example", **HERE)

    assert [node.op_type for node in result.model.graph.node] == ["Odd"]
    assert any("no runtime here runs the model" in note for note in result.report.notes)
