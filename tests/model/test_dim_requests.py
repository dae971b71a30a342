"""Every form in which users name dynamic axes."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.model.dim_requests import named_axes
from onnx_migrate.model.interface import Interface, Port

INTERFACE = Interface(
    (Port("x", "float", (1, 3, 32, 32)), Port("mask:0", "float", (1, "L"))),
    (Port("y", "float", (1, 10)), Port("z", "float", None)),
)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"x": {0: "N", 2: "H"}, "y": {0: "N"}}, {"x": {0: "N", 2: "H"}, "y": {0: "N"}}),
        ({"x": [0, 2]}, {"x": {0: "x_dim_0", 2: "x_dim_2"}}),
        ({"x": [0], "y": {0: "N"}}, {"x": {0: "x_dim_0"}, "y": {0: "N"}}),
        ({"x": {-1: "W"}}, {"x": {3: "W"}}),
        ({"x": (0,)}, {"x": {0: "x_dim_0"}}),
        ({"x": {}}, {}),
        ("x:N,3,H,W", {"x": {0: "N", 2: "H", 3: "W"}}),
        ("x: N, 3, 32, 32", {"x": {0: "N"}}),
        (["x:N,3,32,32", "y:?,10"], {"x": {0: "N"}, "y": {0: "y_dim_0"}}),
        ("mask:0:N,L", {"mask:0": {0: "N", 1: "L"}}),
        ("x:1,3,32,32", {}),
    ],
)
def test_every_form_of_a_request(wish: object, expected: object) -> None:
    assert named_axes(wish, INTERFACE) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"q": [0]}, "the model has no input or output 'q' (its inputs and outputs are x, mask:0, y, z)"),
        ({"x": [4]}, "has no axis 4"),
        ({"x": {4: "N"}}, "has no axis 4"),
        ({"x": {0: "N", -4: "M"}}, "two names, 'N' and 'M'"),
        ({"x": "N,3"}, "a dict of axis to name"),
        ({"x": {0: ""}}, "a name is a text"),
        ({"x": {0: 5}}, "a name is a text"),
        ({"x": {"0": "N"}}, "axes are integers"),
        ({"x": [True]}, "axes are integers"),
        ({"z": {-1: "N"}}, "declares no shape"),
        ("x", "write it like x:N,3,H,W"),
        ("x:N,3", "has 2 axes"),
        ("x:N,4,H,W", "has 4 for axis 1"),
        ("x:N,3,H,-1", "'-1' for axis 3"),
        (["x:N,3,H,W", "x:M,3,H,W"], "two names, 'N' and 'M'"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(wish: object, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        named_axes(wish, INTERFACE)  # type: ignore[arg-type]

    assert words in str(caught.value)
