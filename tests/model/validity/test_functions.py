"""Functions that call others are valid, in any order; domains are imported by the body's owner."""

from __future__ import annotations

from onnx_migrate.model.validity.functions import function_faults, import_faults
from tests.harness import model

CHAIN = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (float[2] x) => (float[2] y) { y = f.A (x) }
<domain: "f", opset_import: ["": 17, "f": 1]> A (a) => (b) { c = f.B (a) b = f.B (c) }
<domain: "f", opset_import: ["": 17, "f": 1]> B (a) => (b) { b = Neg (a) }"""


def test_a_function_may_call_another_one() -> None:
    proto = model(CHAIN)

    assert list(function_faults(proto)) == []
    assert list(import_faults(proto)) == []


def test_only_functions_on_a_circle_or_above_it_are_named() -> None:
    proto = model(CHAIN)
    proto.functions[1].node[0].domain, proto.functions[1].node[0].op_type = "f", "B"

    assert [fault.code for fault in function_faults(proto)] == ["recursive-function"] * 2


def test_a_domain_is_named_once_for_each_body() -> None:
    proto = model(CHAIN.replace('"": 17, "f": 1]> A', '"": 17]> A'))

    faults = list(import_faults(proto))

    assert [(fault.code, fault.where.scope) for fault in faults if fault.where] == [
        ("domain-not-imported", "function f:A")
    ]


def test_the_first_two_ir_versions_have_no_imports() -> None:
    proto = model('<ir_version: 2, opset_import: ["": 1]> g (float[2] x) => (float[2] y) { y = Relu (x) }')
    del proto.opset_import[:]

    assert list(import_faults(proto)) == []
    proto.ir_version = 3
    assert len(list(import_faults(proto))) == 1
