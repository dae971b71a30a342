"""Which groups of nodes can be narrow is found in one session."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from onnx import TensorProto

from onnx_migrate import files
from onnx_migrate.engine.pass_infra import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.evaluators.onnxruntime import OnnxRuntime
from onnx_migrate.verify.precision import groups
from onnx_migrate.verify.precision.groups import narrowed
from tests.harness import model

W = "float[4,4] w = {" + ", ".join(f"{value:.4f}" for value in np.linspace(-1, 1, 16)) + "}"


def _overflowing() -> tuple[Runnable, Runnable]:
    """Eight products, of which the sixth and seventh make and read numbers beyond 65,504, and the same narrow."""
    links = "".join(f"a{at + 1} = MatMul (a{at}, w)  " for at in range(5))
    text = f"""17 (float[4,4] a0) => (float[4,4] y) <{W}, float big = {{6e4}}, float small = {{1e-4}}> {{
        {links} b = Mul (a5, big)  c = Mul (b, small)  y = MatMul (c, w) }}"""
    result = make_pass("precision", kind="fp16").run(Model(model(text)), ChangeLog())
    original, narrow = (
        Runnable(structure=proto.SerializeToString()) for proto in (model(text), files.inline(result))
    )
    return original, narrow


NAMES = ["a1", "a2", "a3", "a4", "a5", "b", "c", "y"]


def _search(original: Runnable, narrow: Runnable) -> list[frozenset[int]]:
    places = [[((), name)] for name in NAMES]
    return narrowed(original, narrow, TensorProto.FLOAT16, Settings(isolated=False), 2, places, 1.0)


def test_the_group_that_overflows_stays() -> None:
    found = _search(*_overflowing())

    assert [sorted(NAMES[place] for place in group) for group in found[-1:]] == [
        ["a1", "a2", "a3", "a4", "a5", "y"]
    ]
    assert all(one < other for one, other in pairwise(found))


def test_a_second_search_runs_what_was_within_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    models = _overflowing()
    ran: set[int] = set()
    run = OnnxRuntime.run

    def counted(self: OnnxRuntime, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        ran.add(sum(not value for name, value in inputs.items() if name.startswith("keep_")))
        return run(self, inputs)

    first = _search(*models)
    monkeypatch.setattr(OnnxRuntime, "run", counted)
    monkeypatch.setattr(groups, "switched", None)  # nothing is loaded again

    assert _search(*models) == first
    assert ran == {len(narrow) for narrow in first}


def test_an_original_that_does_not_run_so_gives_nothing() -> None:
    text = f"17 (float[4,4] x) => (float[4,4] y) <{W}> {{ a = MatMul (x, w)  y = MatMul (a, w) }}"
    missing = model(text)
    missing.graph.node[1].input[0] = "nowhere"
    original, result = (Runnable(structure=proto.SerializeToString()) for proto in (missing, model(text)))

    assert not narrowed(
        original, result, TensorProto.FLOAT16, Settings(isolated=False), 1, [[((), "a")]], 1.0
    )
