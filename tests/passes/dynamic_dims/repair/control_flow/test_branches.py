"""An If whose condition is of the batch, or a length of it, is written without If."""

from __future__ import annotations

import onnx
import pytest

from tests.harness import make_variant
from tests.steps import operators
from tests.support.repairs import check_items, text

EACH = "each item has its own condition: both branches are computed, and Where chooses"


def test_a_condition_of_each_item_chooses_for_each_item() -> None:
    """As a wake-word net runs a second network only if the first is sure. The items' conditions differ."""
    source = text(
        "float[1,4] x", "float[1,4] y",
        """k = Constant<value_ints=[1]>() s = ReduceSum(x, k) zero = Constant<value_float=0.0>() c = Greater(s, zero)
        y = If(c) <then_branch = a () => (float[1,4] u) { t = Relu(x) two = Constant<value_float=2.0>() u = Mul(t, two) },
          else_branch = b () => (float[1,4] u) { t = Constant<value_ints=[1, 4]>() u = Reshape(x, t) }>""",
    )  # fmt: skip

    result, reasons = check_items(source, {"x": 0}, [0], items=6)

    assert reasons == [EACH, "shape [1, 4] → [0, 4]: axis 0 is N"]
    assert "If" not in operators(result)
    assert operators(result)[-1] == "Where"


def test_a_condition_is_laid_along_the_batch() -> None:
    """A condition of shape [1] and values of shape [1, 2, 3]: the condition becomes [N, 1, 1]."""
    source = text(
        "float[1,2,3] x", "float[1,2,3] y",
        """k = Constant<value_ints=[1, 2]>() s = ReduceSum<keepdims=0>(x, k) zero = Constant<value_float=0.0>()
        c = Greater(s, zero)
        y = If(c) <then_branch = a () => (float[1,2,3] u) { u = Relu(x) },
          else_branch = b () => (float[1,2,3] u) { u = Neg(x) }>""",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0], items=6)

    assert reasons == [EACH]


@pytest.mark.parametrize(
    ("weights", "place"), [("initializer", "plain"), ("constant", "plain"), ("initializer", "function")]
)
def test_what_a_branch_holds_comes_along(weights: str, place: str) -> None:
    """Both branches use one name for what is theirs; one holds an initializer and an If of its own."""
    source = onnx.parser.parse_model(
        text(
            "float[1,2] x", "float[1,2] y",
            """k = Constant<value_ints=[1]>() s = ReduceSum(x, k) zero = Constant<value_float=0.0>()
            c = Greater(s, zero) yes = Constant<value = bool {1}>()
            y = If(c) <then_branch = a () => (float[1,2] u) { w = Constant<value_floats=[3.0, 5.0]>() t = Mul(x, w)
                u = If(yes) <then_branch = i () => (float[1,2] v) { v = Neg(t) },
                  else_branch = j () => (float[1,2] v) { v = Identity(t) }> },
              else_branch = b () => (float[1,2] u) { w = Constant<value_floats=[7.0, 9.0]>() u = Mul(x, w) }>""",
        )
    )  # fmt: skip
    if weights == "initializer":
        for attribute in next(node for node in source.graph.node if node.op_type == "If").attribute:
            constant = attribute.g.node[0]
            attribute.g.initializer.append(
                onnx.helper.make_tensor("w", 1, [2], [*constant.attribute[0].floats])
            )
            del attribute.g.node[0]

    result, _ = check_items(make_variant(source, place, {})[0], {"x": 0}, [0], items=6)

    assert len(result.graph.initializer) == (2 if (weights, place) == ("initializer", "plain") else 0)


def test_a_branch_for_a_length_of_one_is_taken_for_any_batch() -> None:
    """TorchScript writes x.squeeze(0) so: only if the axis is 1 long. Each item is to be what it is alone."""
    source = text(
        "float[1,2,8] x", "float[1,16] y",
        """n = Shape<end=1>(x) one = Constant<value_ints=[1]>() same = Equal(n, one) zero = Constant<value_ints=[0]>()
        t = If(same) <then_branch = a () => (float[2,8] u) { u = Squeeze(x, zero) },
          else_branch = b () => (float[1,2,8] v) { v = Identity(x) }>
        r = Relu(t) k = Constant<value_ints=[1, 16]>() y = Reshape(r, k)""",
    )  # fmt: skip

    result, reasons = check_items(source, {"x": 0}, [0])

    assert any("the result uses its then_branch for every batch" in reason for reason in reasons)
    assert "If" not in operators(result)


def test_a_branch_that_is_never_taken_may_conflict() -> None:
    """The axis is 3 at all sizes, and the branch for another length is left as it is."""
    source = text(
        "float[1,3] x", "float[1,3] y",
        """n = Shape<start=1>(x) three = Constant<value_ints=[3]>() same = Equal(n, three)
        y = If(same) <then_branch = a () => (float[1,3] u) { u = Relu(x) },
          else_branch = b () => (float[3,2] u) { t = Transpose<perm=[1,0]>(x) w = Constant<value = float[1,2] {1, 2}>()
            u = Gemm(t, w) }>""",
    )  # fmt: skip

    result, reasons = check_items(source, {"x": 0}, [0])

    assert not reasons
    assert "If" in operators(result)
