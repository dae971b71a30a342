"""What the lift and the lowering share."""

from __future__ import annotations

import time
import warnings

import onnx
import pytest
from onnx import helper

from onnx_migrate.engine.steps.node_steps import apply_adapter, is_of_domain, node_name
from onnx_migrate.errors import CannotMigrate, InvalidModel, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model
from tests.steps import lower


def test_the_name_of_a_node_is_its_own_or_that_of_its_first_output() -> None:
    assert node_name(helper.make_node("Relu", ["x"], ["y"], name="act")) == "act"
    assert node_name(helper.make_node("Split", ["x"], ["", "z"])) == "z"


def test_both_spellings_of_the_standard_domain_are_one() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")
    assert is_of_domain(node, "")
    assert not is_of_domain(node, "ai.onnx.ml")


@pytest.mark.parametrize(
    ("operator", "attributes", "said"),
    [("Flatten", {"axis": 9}, "is refused by onnx's inference"), ("Gather", {"axis": 9}, "has axis=9")],
)
def test_an_exception_at_a_node_that_is_not_valid_is_not_the_adapters(
    operator: str, attributes: dict[str, int], said: str
) -> None:
    source = model("13 (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    scope = scopes(source, Weights(), result_ir_version=8)[0]
    node = helper.make_node(operator, ["x", "x"][: 1 + (operator == "Gather")], ["y"], **attributes)

    def broken(node: onnx.NodeProto, rw: Rewriter) -> None:
        del node.attribute[:]
        raise IndexError("axis")

    with pytest.raises(InvalidModel, match=said) as caught:
        apply_adapter(
            broken, "flatten-14", Rewriter(node, scope, 14, 14, Where("graph", "n", operator, 13, 14))
        )
    assert caught.value.code == "invalid-node"


def test_an_exception_of_an_adapter_is_a_refusal_that_names_the_step() -> None:
    class Stub:
        node = helper.make_node("Relu", ["x"], ["y"])
        scope = scopes(onnx.ModelProto(), Weights(), result_ir_version=8)[0]
        where = Where("graph", "n", "Relu", 1, 2)

    def broken(node: object, rw: object) -> None:
        raise KeyError("axis")

    with pytest.raises(CannotMigrate, match="relu-2 raised KeyError") as caught:
        apply_adapter(broken, "relu-2", Stub())  # type: ignore[type-var]
    assert caught.value.code == "adapter-failed"


def test_an_adapter_that_takes_too_much_memory_is_no_bug() -> None:
    class Stub:
        node = helper.make_node("Relu", ["x"], ["y"])
        scope = scopes(onnx.ModelProto(), Weights(), result_ir_version=8)[0]
        where = Where("graph", "n", "Relu", 1, 2)

    def greedy(node: object, rw: object) -> None:
        raise MemoryError("Unable to allocate 8.00 TiB")

    with pytest.raises(CannotMigrate, match=r"too much memory: Unable to allocate 8\.00 TiB") as caught:
        apply_adapter(greedy, "relu-2", Stub())  # type: ignore[type-var]
    assert caught.value.code == "out-of-memory"


HUGE = {
    "Pad to 2^40": (19, "float[4,1099511627776] x", "y = Pad <mode = \"wrap\"> (x, p)", "int64[4] p = {0, 1, 0, 1}", ""),
    "windows of 2^40": (
        19, "float[1,1,8,1099511627776] x", "y = AveragePool <dilations = [2, 2], kernel_shape = [3, 3]> (x)", "", "no-equal"
    ),
    "Col2Im of 2^40": (
        18, "float[1,9,4] x", "y = Col2Im (x, i, b)", "int64[2] i = {5, 1099511627776}, int64[2] b = {3, 3}", "no-equal"
    ),
    "Col2Im of blocks of 300,000": (
        18, "float[1,1,5] x", "y = Col2Im (x, i, b)", "int64[2] i = {5, 5}, int64[2] b = {65537, 5}", "no-equal"
    ),
    "parts of 10^6": (
        11, "float[3,1000000] x", "q = SplitToSequence <axis = 1> (x) y = ConcatFromSequence <axis = 0> (q)", "", "no-equal"
    ),
    "AffineGrid of 10^6 axes": (20, "float[2,3,4] x, int64[1000000] n", "y = AffineGrid (x, n)", "", "invalid-node"),
    "Slice of 10^6 axes": (
        13, "float[4,4] x, int64[1000000] a, int64[1000000] b", "y = Slice (x, a, b)", "", "invalid-node"
    ),
    "DepthToSpace of 2^31": (
        13, "float[1,8,2,2] x", "y = DepthToSpace <blocksize = 2147483648, mode = \"CRD\"> (x)", "", "invalid-node"
    ),
    "an axis of 2^62": (
        11, "float[3,6] x", "q = SplitToSequence <axis = 4611686018427387904, keepdims = 0> (x)"
        " y = ConcatFromSequence <axis = 0> (q)",
        "", "invalid-node",
    ),
    "scales of 10^30": (
        19, "float[1,1,2,2] x",
        "y = Resize <coordinate_transformation_mode = \"half_pixel_symmetric\", mode = \"linear\"> (x, , s)",
        "float[4] s = {1, 1e30, 2.3, 2.9}", "invalid-node",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
def test_numbers_without_end_are_written_or_refused_soon(name: str) -> None:
    opset, inputs, body, constants, code = HUGE[name]
    text = f"{opset} ({inputs}) => (float y) <{constants}> {{ {body} }}"
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            lower(text, 9)
            ended = ""
        except (CannotMigrate, InvalidModel) as error:
            ended = error.code
    assert ended == code
    assert time.process_time() - start < 10
