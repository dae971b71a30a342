"""Several targets at once."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.json_form import json_of
from onnx_migrate.standard.targets.combined import Targets
from tests.support.targets import targets_of


def row(name: str, text: str, before: str = "") -> str:
    return f'name = "{name}"\n{before}\n[[release]]\n{text}'


def test_what_all_take() -> None:
    targets = targets_of(
        row("a", 'opset = 18\noldest = 7\nir = 9\nwrite = ["kernel_shape"]'),
        row("b", 'opset = 16\nir = 10\nresize_form = "scales"\nwrite = ["split_lengths"]'),
        row("c", "oldest = 11\nresize_axes = false\nmeasured = true"),
    )

    assert (targets.opset, targets.oldest, targets.ir_version) == (16, 11, 9)
    assert (targets.resize_form, targets.resize_axes) == ("scales", False)
    assert targets.write == {"kernel_shape", "split_lengths"}
    assert (str(targets), targets.requests, len(targets)) == ("a, b and c", ("a", "b", "c"), 3)
    assert [found["name"] for found in map(json_of, targets)] == ["a", "b", "c"]


def test_operators_that_one_lacks() -> None:
    listed = (
        row("a", "", 'operators = "listed"')
        + '\n[[operator]]\nnames = ["Add", "Clip"]\nnewest = 12\ntypes = ["float32"]'
    )
    other = row("b", "") + '\n[[operator]]\nnames = ["Clip"]\nnewest = 11\nattributes = { min = [0.0] }'

    targets = targets_of(listed, other, row("c", "") + '\n[[operator]]\nnames = ["Add"]\nlacking = true')
    one, two, three = targets

    assert targets.lacks("", "Clip") == ()
    assert targets.lacks("", "Relu") == (one,)
    assert targets.lacks("", "Add") == (three,)
    assert targets.newest_version("", "Clip") == (11, two)
    assert targets.newest_version("", "Relu") is None
    assert [member for member, _ in targets.limits("", "Clip")] == [one, two]
    assert targets.bounds_versions
    assert not targets_of(row("d", "")).bounds_versions


@pytest.mark.parametrize(
    ("texts", "lower"),
    [
        ((row("a", "opset = 18"),), True),
        ((row("a", "opset = 18", 'newer = "tried"'),), "nearest"),
        ((row("a", "opset = 16"), row("b", "opset = 18", 'newer = "tried"')), True),
        ((row("a", "opset = 18"), row("b", "opset = 16", 'newer = "tried"')), "nearest"),
        ((row("a", ""),), True),
        ((row("a", "", 'newer = "tried"'),), "nearest"),
    ],
)
def test_a_newer_model_must_come_down_where_the_least_opset_is_of_one_that_refuses(
    texts: tuple[str, ...], lower: object
) -> None:
    assert targets_of(*texts).lower == lower


def test_targets_that_nothing_suits_are_refused_with_both_names() -> None:
    with pytest.raises(UsageError, match="a takes models up to opset 13, and b from opset 16 on"):
        targets_of(row("a", "opset = 13"), row("b", "opset = 17\noldest = 16"))
    with pytest.raises(UsageError, match="a takes scales, and b sizes"):
        targets_of(row("a", "resize_form = 'scales'"), row("b", "resize_form = 'sizes'"))
    assert Targets(targets_of(row("a", "opset = 13")).members).opset == 13
