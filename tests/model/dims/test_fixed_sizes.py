"""Every form in which users name sizes."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.model.dims.fixed_sizes import fixed_axes
from onnx_migrate.model.interface import Interface, Port

INTERFACE = Interface(
    (Port("x", "float", (1, 3, 32, 32)), Port("mask:0", "float", (1, "L"))),
    (Port("y", "float", (1, 10)), Port("z", "float", None)),
)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("x:1,3,32,32", ({"x": {0: 1, 1: 3, 2: 32, 3: 32}}, {})),
        ("mask:0:0=1,-1=7", ({"mask:0": {0: 1, 1: 7}}, {"L": 7})),
        ({"mask:0": {1: 7}}, ({"mask:0": {1: 7}}, {"L": 7})),
        ({"mask:0": [None, 7]}, ({"mask:0": {1: 7}}, {"L": 7})),
        (["x:[1,3,32,32]", "L=7"], ({"x": {0: 1, 1: 3, 2: 32, 3: 32}}, {"L": 7})),
    ],
)
def test_every_form_of_a_size(wish: object, expected: object) -> None:
    assert fixed_axes(wish, INTERFACE) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("x:0=8", "make it dynamic first, with --dynamic x:0=N"),
        ("x:4=8", "has no axis 4"),
        ("x:1,3,32", "is given 3 sizes, and has 4 axes"),
        ("N=8", "the names are L"),
        ("x", "write it like N=1, x:1,3,224,224 or x:0=1"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(wish: object, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        fixed_axes(wish, INTERFACE)  # type: ignore[arg-type]
    assert words in str(caught.value)
