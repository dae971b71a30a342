"""The examples of CONTRIBUTING run as they stand there."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest

from onnx_migrate.engine import pass_infra
from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.engine.steps.formula import Op, Value, _adapter, _formula
from onnx_migrate.engine.steps.registration import Adapter
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model, run, same
from tests.steps import check, check_down, lift
from tests.support.paths import ROOT
from tests.support.replaced_steps import replace_steps_down

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)]


def execute(block: str, **names: Any) -> dict[str, Any]:
    exec(compile(f"from __future__ import annotations\n{block}", "CONTRIBUTING.md", "exec"), names)
    return names


def block(start: str) -> str:
    (found,) = [block for block in BLOCKS if start in block]
    return found


def test_the_adapter_of_the_guide_keeps_the_numbers() -> None:
    adapters: list[Adapter] = []

    def adapter(operator: str, *, to: int) -> Any:
        assert (operator, to) == ("Unsqueeze", 13)
        return adapters.append

    execute(block("@adapter"), adapter=adapter, onnx=onnx, Rewriter=Rewriter)
    source = '<ir_version: 7, opset_import: ["": 11]> g (float[2] x) => (float[1,2] y) { y = Unsqueeze<axes = [0]> (x) }'
    proto, feeds = model(source), {"x": np.float32([1, 2])}
    expected = run(proto, feeds)
    (scope,) = scopes(proto, Weights(), result_ir_version=proto.ir_version)

    adapters[0](proto.graph.node[0], Rewriter(proto.graph.node[0], scope, 13, 13, Where()))

    proto.opset_import[0].version = 13
    onnx.checker.check_model(proto)
    same(expected, run(proto, feeds), "the guide's adapter")


def test_the_formula_of_the_guide_keeps_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def formula(operator: str, *, since: int) -> Any:
        assert (operator, since) == ("HardSwish", 14)
        return lambda function: function

    names = execute(block("@formula"), formula=formula, Op=Op, Value=Value)
    adapt = _adapter(_formula("", "HardSwish", 14, names["hard_swish"], without=False))
    step = Step(Direction.DOWN, "", "HardSwish", 14, adapt, reason="the guide's")
    replace_steps_down(monkeypatch, lambda *key: step)
    check_down(
        '<ir_version: 7, opset_import: ["": 14]> g (float[2,3] x) => (float[2,3] y) { y = HardSwish (x) }'
    )


def test_the_tests_of_the_guide_pass() -> None:
    names = execute(
        block("check("), check=check, lift=lift, model=model, pytest=pytest, CannotMigrate=CannotMigrate
    )
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_the_pass_of_the_guide_edits_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_infra, "REGISTERED", {})
    names = execute(
        block("@register_pass"), register_pass=pass_infra.register_pass, dataclass=dataclass, Pass=Pass,
        ClassVar=ClassVar, Model=Model, ChangeLog=ChangeLog, all_nodes=all_nodes, __name__=__name__,
    )  # fmt: skip
    proto = model('<ir_version: 8, opset_import: ["": 17]> g (float x) => (float y) { y = Relu (x) }')
    proto.graph.node[0].doc_string = "to be removed"
    log = ChangeLog()

    result = names["DropDocStrings"]().run(Model(proto), log)

    assert not result.proto.graph.node[0].doc_string
    assert [note.code for note in log.notes] == ["doc-strings"]
