"""Steps for operators of custom domains, each case in a process of its own: what it registers would stay in this one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onnx_migrate import plugins
from tests.support.paths import ROOT
from tests.support.warm_start import warm

HEAD = '''
import warnings; warnings.simplefilter("error")
import numpy as np, onnx, onnx.parser, pytest
from onnx_migrate import CannotMigrate, MigrateError, UsageError, migrate
from onnx_migrate.plugins import *

D = "com.example"
FAST = {"simplify": False, "verify": False}

def model(text, own=1, main=13, more=""):
    return onnx.parser.parse_model(
        f\'<ir_version: 8, opset_import: ["": {main}, "{D}": {own}]> g (float[2,3] x) => (float[2,3] y) {{ {text} }} {more}\'
    )

def imports(proto):
    return {entry.domain: entry.version for entry in proto.opset_import}

def ops(proto):
    return [node.op_type for node in proto.graph.node]

ASK = model("y = com.example.Gizmo <scale = 2.0> (x)")

def steps():
    declare_operator("Gizmo", 1, 3, domain=D)

    @adapter("Gizmo", to=3, domain=D)
    def gizmo_3(node, rw):
        """`scale` is an input."""
        rw.attribute_to_input("scale", 1, like=rw.input(0))

    @lowering("Gizmo", leaves=3, domain=D, types=LostTypes.OWN)
    def gizmo_3_down(node, rw):
        """`scale` is an attribute."""
        rw.set("scale", float(rw.need_constant(1, "scale")))
        rw.set_input(1, "")
'''


def passes(body: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", warm(HEAD + body)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_all_that_a_plug_in_needs_is_exported() -> None:
    assert sorted(plugins.__all__) == plugins.__all__
    assert all(hasattr(plugins, name) for name in plugins.__all__)


def test_nodes_go_up_and_down_in_every_body() -> None:
    passes("""
steps()
inner = 'com.example.Gizmo <scale = 2.0> (x)'
deep = model(f"c = Constant <value = bool {{1}}> () y = If (c) <then_branch = t () => (float[2,3] a) {{ a = {inner} }}, "
             f"else_branch = e () => (float[2,3] b) {{ b = local.F (x) }}>",
             more=f'<opset_import: ["": 13, "{D}": 1], domain: "local"> F (x) => (z) {{ z = {inner} }}')
deep.opset_import.add(domain="local", version=1)
up = migrate(deep, opset={"": 17, D: 3}, **FAST).model
assert imports(up) == {"": 17, D: 3, "local": 1}, imports(up)
assert {entry.domain: entry.version for entry in up.functions[0].opset_import} == {"": 17, D: 3}
bodies = (*[a.g for a in up.graph.node[-1].attribute], up.functions[0])
nodes = [node for body in bodies for node in body.node if node.op_type == "Gizmo"]
assert [len(node.input) for node in nodes] == [2, 2]
down = migrate(migrate(ASK, opset={D: 3}, **FAST).model, opset=f"{D}=1", **FAST)
assert down.model.graph.node[0].attribute[0].f == 2.0
assert [note.message for note in down.report.notes if note.code == "domain-opset"] == [f"{D} 3 became 1"]
assert imports(down.model) == {"": 13, D: 1}
""")


@pytest.mark.parametrize(
    ("ask", "expected"),
    [("latest", 3), ("3+", 3), ("2", 2), (3, 3), ("1+", 1)],
)
def test_the_forms_in_which_the_opset_is_asked_for(ask: object, expected: int) -> None:
    passes(f"steps(); assert imports(migrate(ASK, opset={{D: {ask!r}}}, **FAST).model)[D] == {expected}")


def test_what_cannot_be_is_refused() -> None:
    passes("""
with pytest.raises(UsageError, match="'com.example' names no opset of a domain that can be migrated") as caught:
    migrate(ASK, opset={D: 2})
assert caught.value.code == "unknown-domain"
steps()
for number in (0, 4):
    with pytest.raises(UsageError, match=f"there is no opset {number} of com.example") as caught:
        migrate(ASK, opset={D: number})
    assert caught.value.code == "no-such-opset"
newer = model("y = com.example.Gizmo (x, x)", own=3)
with pytest.raises(CannotMigrate) as caught:
    migrate(newer, opset={D: 1}, lower=False, **FAST)
assert caught.value.code == "downgrade"
with pytest.raises(CannotMigrate, match="opset 3 of com.example can be reached") as caught:
    migrate(newer, opset={D: 1}, **FAST)
assert caught.value.code == "needs-constant"
other = model("y = com.example.Other (x)")
with pytest.raises(MigrateError, match="com.example has no operator Other\\nHint: not tried: the plug-in for com.example"):
    migrate(other, opset={D: 3}, **FAST)
declare_operator("Gizmo", 4, domain=D)
with pytest.raises(CannotMigrate) as caught:
    migrate(ASK, opset={D: 4}, **FAST)
assert caught.value.code == "no-adapter"
""")


def test_a_step_may_end_in_ai_onnx_at_the_opset_of_the_model() -> None:
    passes("""
declare_operator("Clamp", 1, 2, domain=D)
seen = []

@adapter("Clamp", to=2, domain=D)
def clamp_2(node, rw):
    "Clamp is Clip."
    seen.append(rw.onnx_opset)
    rw.set_input(1, rw.constant(np.float32(0), "low"))
    rw.rename("Clip", domain="")

source = model("y = com.example.Clamp (x)")
report = migrate(source, opset={"": 18, D: 2}, simplify=False)
assert ops(report.model) == ["Clip"] and seen == [18]
assert migrate(source, opset={D: 2}, **FAST).model.opset_import[0].version == 13
assert ops(migrate(source, opset={"": 10, D: 2}, **FAST).model) == ["Clip"]
only = model("y = com.example.Clamp (x)")
del only.opset_import[0]
last = migrate(only, opset={D: 2}, **FAST)
assert imports(last.model) == {"": 17}
assert [(change.version_before, change.version_after) for change in last.report.changes] == [(1, 13)]
""")


def test_a_claim_and_a_refusal_and_what_stays() -> None:
    passes("""
declare_operator("Same", 1, 2, domain=D)
declare_operator("Gone", 1, 2, domain=D)
compatible("Same", 2, reason="more types", domain=D)
unchanged("Same", 2, reason="more types", domain=D)
unsupported("Gone", 2, why="nothing replaces it", hint="train again", domain=D)
result = migrate(model("y = com.example.Same (x)"), opset={D: 2}, **FAST)
assert imports(result.model)[D] == 2 and not result.report.changes
assert imports(migrate(result.model, opset={D: 1}, **FAST).model)[D] == 1
gone = model("y = com.example.Gone (x)")
with pytest.raises(CannotMigrate, match="nothing replaces it\\nHint: not tried: train again"):
    migrate(gone, opset={D: 2}, **FAST)
assert imports(migrate(gone, opset=17, **FAST).model)[D] == 1
""")


def test_a_cell_of_a_notebook_may_be_run_again_and_answers_follow() -> None:
    passes("""
with pytest.raises(UsageError):
    migrate(ASK, opset={D: 3})
steps()
steps()
assert imports(migrate(ASK, opset={D: 3}, **FAST).model)[D] == 3
with pytest.raises(ValueError, match="registered twice"):
    @adapter("Gizmo", to=3, domain=D)
    def another(node, rw):
        "Another."
with pytest.raises(ValueError, match="the standard's"):
    declare_operator("Relu", 99, domain="")
with pytest.raises(ValueError, match="needs the versions"):
    declare_operator("Gizmo", domain=D)
""")


def test_an_inspection_plans_the_domains_that_a_plug_in_knows() -> None:
    passes(
        """
from onnx_migrate.json_form import json_of
from onnx_migrate import inspect

assert inspect(ASK).domains == ()
steps()
declare_operator("Gadget", 1, 4, domain=D)

found = inspect(ASK, opset={D: 3})
assert [change.reason for change in found.plan.changes] == ["`scale` is an input"], found.plan.changes
(domain,) = found.domains
assert (domain.domain, domain.opset, domain.reachability.opsets) == (D, 1, (1, 2, 3, 4))

stopped = inspect(model("t = com.example.Gizmo <scale = 2.0> (x) y = com.example.Gadget (t)"), opset=f"{D}=4")
assert stopped.refusal.code == "no-adapter"
(domain,) = stopped.domains
assert domain.reachability.opsets == (1, 2, 3)
assert [refusal.opsets for refusal in domain.reachability.refusals] == [(4,)]
assert json_of(stopped)["domains"][0]["refusals"][0]["where"]["operator"] == "Gadget"
"""
    )


def test_schemas_that_are_registered_after_a_migration_count() -> None:
    passes(
        """
migrate(model("y = Relu (x)"), opset=17, **FAST)
P, A = onnx.defs.OpSchema.FormalParameter, onnx.defs.OpSchema
schema = A("Typed", D, 1, inputs=[P("x", "T")], outputs=[P("y", "T")], type_constraints=[("T", ["tensor(float)"], "")])
if hasattr(schema, "set_type_and_shape_inference_function"):
    schema.set_type_and_shape_inference_function(lambda context: context.set_output_type(0, context.get_input_type(0)))
    onnx.defs.register_schema(schema)
    steps()
    migrate(model("t = com.example.Typed (x) y = com.example.Gizmo <scale = 2.0> (t)"), opset={D: 3}, **FAST)
"""
    )


def test_an_operator_that_a_plug_in_has_steps_for_is_explained() -> None:
    passes(
        """
from onnx_migrate import explain

steps()
for name in ("com.example.Gizmo", "com.example:gizmo"):
    answer = explain(name)
    assert [step.code for step in answer.operator.up] == ["com.example.gizmo-3"], answer
"""
    )
