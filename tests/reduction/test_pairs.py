"""Two models that compute different values: the part around the first difference remains of both."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import onnx_migrate
from onnx_migrate import UsageError
from onnx_migrate.reduction import pair
from onnx_migrate.reduction.recording import Values
from onnx_migrate.verify.evaluators import EvaluationError
from tests.harness import model
from tests.reduction.harness import with_weights

NET = """17 (float[2,8] x) => (float[2,8] y) {
  a = MatMul (x, w) b = Relu (a) c = Mul (b, k) d = Tanh (c) e = Add (d, b) f = Sigmoid (e) y = Mul (f, d)
}"""


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((8, 8)).astype(np.float32), "k": rng.random(8).astype(np.float32)}


def reduced(one: onnx.ModelProto, two: onnx.ModelProto) -> onnx_migrate.Reduction:
    return onnx_migrate.reduce(one, against=two, isolated=False)


def run(proto: onnx.ModelProto, feed: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


def test_a_changed_operator_remains(tmp_path: Path) -> None:
    result = reduced(
        with_weights(model(NET), **weights()),
        with_weights(model(NET.replace("e = Add", "e = Sub")), **weights()),
    )
    written = result.save(tmp_path / "small.onnx")
    parts = [onnx.load(path) for path in (written[0], written[2])]

    assert [[node.op_type for node in part.graph.node] for part in parts] == [["Add"], ["Sub"]]
    feed = dict(np.load(written[1]))
    assert not np.allclose(*(run(part, feed) for part in parts))
    command = f"onnx-migrate verify {written[0]} {written[2]} --input-data {written[1]}"
    assert result.command(written[0]) == command


def test_a_changed_weight_remains_in_models_of_other_names() -> None:
    other = weights()
    other["k"] = other["k"].copy()
    other["k"][3] += 0.5
    text = (
        NET.replace("b =", "q =")
        .replace("(b,", "(q,")
        .replace(", b)", ", q)")
        .replace("a =", "p =")
        .replace("(a)", "(p)")
    )
    result = reduced(with_weights(model(NET), **weights()), with_weights(model(text), **other))

    assert [node.op_type for node in result.model.graph.node] == ["Mul"]
    assert result.other is not None
    assert [node.op_type for node in result.other.graph.node] == ["Mul"]
    assert [value.name for value in result.model.graph.input] == [
        value.name for value in result.other.graph.input
    ]
    assert not np.allclose(run(result.model, dict(result.inputs)), run(result.other, dict(result.inputs)))


def test_equal_models_and_other_interfaces_are_errors() -> None:
    with pytest.raises(UsageError, match="compute the same outputs") as caught:
        reduced(with_weights(model(NET), **weights()), with_weights(model(NET), **weights()))
    assert caught.value.code == "check-passes"
    with pytest.raises(UsageError, match="needs the same inputs and outputs") as caught:
        reduced(
            with_weights(model(NET), **weights()),
            with_weights(
                model(NET.replace("float[2,8] x", "float[2,8] z").replace("(x,", "(z,")), **weights()
            ),
        )
    assert caught.value.code == "bad-check"


def test_a_pair_takes_no_other_check() -> None:
    with pytest.raises(UsageError, match="takes no check"):
        onnx_migrate.reduce(model(NET), against=model(NET), check="true {}")


def net(operator: str) -> onnx.ModelProto:
    """Return the model with another operator in place of Add."""
    return with_weights(model(NET.replace("Add", operator)), **weights())


def whole(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> onnx_migrate.Reduction:
    """Return the result without a smaller part, with one function of the search replaced.

    On ones, Mul and Pow compute the same.
    """
    with monkeypatch.context() as patched:
        patched.setattr(pair, name, value)
        result = reduced(net("Mul"), net("Pow"))
    assert result.report.nodes == result.report.nodes_before == 7
    feed = dict(result.inputs)
    assert not np.allclose(run(result.model, feed), run(net("Pow"), feed))
    return result


def test_a_note_says_why_no_smaller_pair_shows_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> float:
        raise ZeroDivisionError("it crashed")

    assert reduced(net("Mul"), net("Pow")).report.nodes == 1
    text = "no smaller model shows the failure"
    crashed = whole(monkeypatch, "error_of", crash).report
    assert any(note.startswith(f"{text}: ZeroDivisionError: it crashed") for note in crashed.notes)
    unrecorded = whole(monkeypatch, "recorded_values", lambda *_: Values(reason="no memory")).report
    assert text in unrecorded.notes
    assert any(note.endswith("no memory") for note in unrecorded.notes)
    assert crashed.finished
    assert unrecorded.finished


def test_parts_that_do_not_run_or_agree_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise EvaluationError("Mul has no kernel")

    notes = whole(monkeypatch, "open_model", refused).report.notes
    assert "no smaller model shows the failure: Mul has no kernel" in notes
    alike = SimpleNamespace(run=lambda _: {"y": np.ones(2, np.float32)})
    notes = whole(monkeypatch, "open_model", lambda *_: alike).report.notes
    assert "no smaller model shows the failure" in notes


def test_ones_stand_for_values_that_were_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "recorded_values", lambda *_: Values(reason="no memory"))
    result = reduced(net("Add"), net("Sub"))

    assert [node.op_type for node in result.model.graph.node] == ["Add"]
    assert all((value == 1).all() for value in result.inputs.values())
    assert "ones stand for the inner values, which were not recorded: no memory" in result.report.notes


def test_the_end_of_the_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "seconds_left", lambda: 0.0)
    result = whole(monkeypatch, "recorded_values", lambda *_: Values(reason="timed out"))

    assert not result.report.finished
    assert "the time limit ended the search" in str(result)
