"""What a table says of operators, values and types is held against nodes."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.targets.misfits import misfits_of, where_to_find

from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.model import Model
from tests.harness import model
from tests.support.targets import targets_of

ROW = '[[release]]\nfrom = "2.0"\nopset = 17\nsource = "its manual"\n'
LISTED = f"""name = "chip"
title = "Chip"
operators = "listed"
{ROW}
[[operator]]
names = ["Relu"]
[[operator]]
names = ["Gelu"]
from = "3.1"
"""


def reason(body: str, *tables: str, kind: str = "float") -> str | None:
    proto = model(
        f'<ir_version: 8, opset_import: ["": 17, "own": 1]>'
        f" g ({kind}[1,2,4,4] x, float[4] s) => (float[a,b,d,e] y) {{ y = {body} }}"
    )
    (scope,) = scopes(proto, Model(proto).weights, result_ir_version=8)
    return misfits_of(targets_of(*tables))(proto.graph.node[0], scope)


def limited(keys: str, name: str = "chip") -> str:
    return f'name = "{name}"\ntitle = "{name.title()}"\n{ROW}[[operator]]\nnames = ["Resize", "Softmax"]\n{keys}\n'


def test_an_operator_without_a_row_is_lacking_where_the_table_lists_all() -> None:
    assert reason("Relu (x)", LISTED) is None
    assert reason("Tanh (x)", LISTED) == "Chip 2.0 has no Tanh"
    assert reason("own.Relu (x)", LISTED) == "Chip 2.0 has no own.Relu"
    assert reason("Tanh (x)", ROW) is None


def test_a_table_may_leave_operators_of_others_to_plugins() -> None:
    plugins = LISTED.replace('operators = "listed"', 'operators = "listed"\ncustom_operators = true')
    assert reason("own.Relu (x)", plugins) is None
    assert reason("Tanh (x)", plugins) == "Chip 2.0 has no Tanh"


def test_what_several_lack_names_all_of_them() -> None:
    other = f'name = "disk"\ntitle = "Disk"\n{ROW}[[operator]]\nnames = ["Tanh"]\nlacking = true\n'
    assert reason("Tanh (x)", LISTED, other) == "Chip 2.0 and Disk 2.0 have no Tanh"
    assert reason("Relu (x)", LISTED, other) is None


def test_values_of_attributes_and_their_defaults() -> None:
    row = limited('attributes = { mode = ["nearest", "linear"] }')
    scales = "Resize <mode = %s> (x, , s)"
    assert reason(scales % '"linear"', row) is None
    assert reason("Resize (x, , s)", row) is None
    assert reason(scales % '"cubic"', row) == "Chip 2.0 takes Resize with mode nearest or linear, not cubic"
    assert (
        reason("Softmax (x)", limited("attributes = { axis = [1] }"))
        == reason("ai.onnx.Softmax (x)", limited("attributes = { axis = [1] }"))
        == "Chip 2.0 takes Softmax with axis 1, not -1"
    )


def test_an_attribute_that_is_left_out_and_has_no_default_fits() -> None:
    row = limited("attributes = { dilations = [[1, 1]] }").replace("Softmax", "MaxPool")
    assert reason("MaxPool <kernel_shape = [2, 2]> (x)", row) is None
    found = reason("MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (x)", row)
    assert found == "Chip 2.0 takes MaxPool with dilations [1, 1], not [2, 2]"


@pytest.mark.parametrize(("kind", "fits"), [("float", True), ("double", False)])
def test_element_types(kind: str, fits: bool) -> None:
    found = reason("Softmax (x)", limited('types = ["float32", "float16"]'), kind=kind)
    assert (found is None) == fits
    if not fits:
        assert found == "Chip 2.0 takes Softmax of float or float16, not of double"


def test_an_attribute_that_means_nothing_is_not_held_against_the_values() -> None:
    keys = 'attributes = { nearest_mode = ["floor"], cubic_coeff_a = [-0.75] }'
    assert reason('Resize <mode = "linear"> (x, , s)', limited(keys)) is None
    assert reason('Resize <mode = "linear", cubic_coeff_a = -0.5> (x, , s)', limited(keys)) is None
    assert (
        reason("Resize (x, , s)", limited(keys))
        == "Chip 2.0 takes Resize with nearest_mode floor, not round_prefer_floor"
    )
    floor = 'mode = "cubic", nearest_mode = "ceil"'
    assert reason(f"Resize <{floor}> (x, , s)", limited(keys)) is None
    assert reason(f"Resize <{floor}, cubic_coeff_a = -0.5> (x, , s)", limited(keys)) == (
        "Chip 2.0 takes Resize with cubic_coeff_a -0.75, not -0.5"
    )


def test_where_an_operator_is_said_to_be_missing_and_who_has_it() -> None:
    targets = targets_of(LISTED)
    assert where_to_find(targets, "", "Gelu") == "read, not measured: its manual; Chip 3.1 has it"
    assert where_to_find(targets, "", "Tanh") == "read, not measured: its manual"
    assert where_to_find(targets, "", "Relu") == ""
