"""Functions that call others are valid, in any order; domains are imported by the body's owner; a fault becomes an error."""

from __future__ import annotations

import onnx
from onnx import helper

from onnx_migrate.model.validity.fault import Fault, where_of
from onnx_migrate.model.validity.functions import function_faults, import_faults
from onnx_migrate.report.failure import exit_code
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


def test_a_call_has_as_many_inputs_and_outputs_as_its_function_or_fewer() -> None:
    proto = model(CHAIN)
    call = proto.graph.node[0]
    call.input.append("x")
    call.output.append("z")

    faults = list(function_faults(proto))

    assert [fault.reason for fault in faults] == [
        "it has 2 inputs, and its function has 1",
        "it has 2 outputs, and its function has 1",
    ]
    assert {fault.where.node for fault in faults if fault.where} == {"y"}
    proto.functions[0].input.append("more")
    proto.functions[0].output.append("c")
    assert list(function_faults(proto)) == []


def test_the_attribute_of_a_call_is_of_the_type_that_the_function_uses() -> None:
    proto = model("""<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (float[2] x) => (float[2] y) { y = f.A <axis = 0> (x) }
<domain: "f", opset_import: ["": 17]> A <axis> (a) => (b) { b = Softmax <axis: int = @axis> (a) }""")
    assert list(function_faults(proto)) == []
    proto.graph.node[0].attribute[0].CopyFrom(onnx.helper.make_attribute("axis", "first"))

    assert [fault.reason for fault in function_faults(proto)] == [
        "it has 'axis' of type STRING, and its function uses INT"
    ]


def test_the_error_names_the_node_by_its_output_if_it_has_no_name() -> None:
    where = where_of("graph", helper.make_node("Relu", ["x"], ["y"]))
    error = Fault("cycle", "it reads itself", where, "correct it").error()

    assert error.with_hint == "'y' (Relu): not a valid ONNX model: it reads itself (not tried: correct it)"
    assert (error.code, exit_code(error)) == ("cycle", 4)
