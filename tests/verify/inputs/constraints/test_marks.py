"""The integer that a model looks for in an input is found, and rows that end with it differ in how often they do."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.inputs.constraints.marks import marks, padded
from tests.verify.harness import net

TEXT = "(int64[N,T] ids) => (bool[N,T] y) {{ {nodes} }}"


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("p = Constant<value_int = 1>() y = Equal(ids, p)", {"ids": 1}),
        ("p = Constant<value = int32[1] {3}>() c = Cast<to = 6>(ids) y = Equal(p, c)", {"ids": 3}),
        ("p = Constant<value_int = 1>() s = Add(ids, p) y = Equal(s, p)", {}),
        ("y = Equal(ids, ids)", {}),
        ("p = Constant<value_ints = [1, 2]>() y = Equal(ids, p)", {}),
        ("y = Cast<to = 9>(ids)", {}),
    ],
    ids=["compared", "cast before", "computed before", "with itself", "with several", "not compared"],
)
def test_it_is_what_elements_are_compared_with(nodes: str, found: dict[str, int]) -> None:
    assert marks(net(TEXT.format(nodes=nodes))) == found


def test_inputs_of_floats_and_of_one_axis_have_none() -> None:
    nodes = "p = Constant<value_int = 1>() y = Equal(ids, p)"
    assert marks(net(TEXT.format(nodes=nodes).replace("[N,T]", "[T]"))) == {}
    floats = TEXT.format(nodes=nodes.replace("value_int = 1", "value_float = 1.")).replace("int64", "float")
    assert marks(net(floats)) == {}


@pytest.mark.parametrize("length", [1, 2, 8, 9])
def test_rows_end_with_it_and_keep_a_start(length: int) -> None:
    values = np.full((2, 2, length), 7)
    counts = (padded(values, 1) == 1).sum(-1).ravel()

    assert (values == 7).all()
    assert (padded(values, 1)[..., -1] == 1).all()
    assert counts.max() <= max(1, (length + 1) // 2)
    if length >= 8:
        assert len(set(counts.tolist())) == 4
        assert (padded(values, 1)[..., 0] == 7).all()
