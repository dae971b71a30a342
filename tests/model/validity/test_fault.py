"""A fault becomes an error of exit code 4 that names the place."""

from __future__ import annotations

from onnx import helper

from onnx_migrate.model.validity.fault import Fault, where_of
from onnx_migrate.report.failure import exit_code


def test_the_error_names_the_node_by_its_output_if_it_has_no_name() -> None:
    where = where_of("graph", helper.make_node("Relu", ["x"], ["y"]))
    error = Fault("cycle", "it reads itself", where, "correct it").error()

    assert str(error) == "'y' (Relu): not a valid ONNX model: it reads itself (correct it)"
    assert (error.code, exit_code(error)) == ("cycle", 4)
