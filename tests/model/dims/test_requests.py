"""Every form in which users name dynamic axes and fixed sizes, and dims that are expressions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.model.dims.expressions import is_expression, value_of
from onnx_migrate.model.dims.fixed_sizes import fixed_axes
from onnx_migrate.model.dims.requests import named_axes
from onnx_migrate.model.interface import Interface, Port

INTERFACE = Interface(
    (Port("x", "float", (1, 3, 32, 32)), Port("mask:0", "float", (1, "L"))),
    (Port("y", "float", (1, 10)), Port("z", "float", None)),
)


class DimHint:
    """As torch.export.Dim.DYNAMIC and Dim.STATIC."""

    def __init__(self, kind: str) -> None:
        self.type = SimpleNamespace(name=kind)


class Dim:
    """As torch.export.Dim."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


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
        ({"x": ["N", 3, "H", "W"]}, {"x": {0: "N", 2: "H", 3: "W"}}),
        ("x:N", {"x": {0: "N"}}),
        ("x:?", {"x": {0: "x_dim_0"}}),
        ("x:N,...", {"x": {0: "N"}}),
        ("x:...,H,W", {"x": {2: "H", 3: "W"}}),
        ("x:N,...,W", {"x": {0: "N", 3: "W"}}),
        ("x:0=N", {"x": {0: "N"}}),
        ("x:0=N, -1=W", {"x": {0: "N", 3: "W"}}),
        ("x:2=?", {"x": {2: "x_dim_2"}}),
        ("mask:0:0=N", {"mask:0": {0: "N"}}),
        (
            '{"x": {"0": "N", "-1": "W"}, "mask:0": [0]}',
            {"x": {0: "N", 3: "W"}, "mask:0": {0: "mask:0_dim_0"}},
        ),
        ('{"x": ["N", 3, null, 32]}', {"x": {0: "N"}}),
        (["x:0=N", '{"y": {"0": "N"}}'], {"x": {0: "N"}, "y": {0: "N"}}),
        (
            {"x": ("N", None, "?", 32), "mask:0": ["N", None]},
            {"x": {0: "N", 2: "x_dim_2"}, "mask:0": {0: "N"}},
        ),
        ({"z": [None, "T"]}, {"z": {1: "T"}}),
        ({"x": {0: DimHint("DYNAMIC"), 1: DimHint("STATIC")}}, {"x": {0: "x_dim_0"}}),
        ({"x": (DimHint("AUTO"), DimHint("STATIC"), None, 32)}, {"x": {0: "x_dim_0"}}),
        ("{'x': {0: 'N'}}", {"x": {0: "N"}}),
        ('{"x": {0: "N", 2: None}, "y": [0]}', {"x": {0: "N"}, "y": {0: "y_dim_0"}}),
        ("x:[N, 3, H, W]", {"x": {0: "N", 2: "H", 3: "W"}}),
        ("x:Nx3xHxW", {"x": {0: "N", 2: "H", 3: "W"}}),
        ("x:max", {"x": {0: "max"}}),
        ("x:-1,3,None,32", {"x": {0: "x_dim_0", 2: "x_dim_2"}}),
        ("x:0=-1", {"x": {0: "x_dim_0"}}),
        ({"x": {0: Dim("N"), 1: None}, "y": [Dim("N"), None]}, {"x": {0: "N"}, "y": {0: "N"}}),
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
        ({"x": "N,3"}, "has 2 axes"),
        ({"x": 0}, "a dict of axis to name"),
        ({"x": {0: ""}}, "a name is a text"),
        ({"x": {0: 5}}, "a name is a text"),
        ({"x": {"0": "N"}}, "axes are integers"),
        ({"x": [True]}, "axes are integers"),
        ({"z": {-1: "N"}}, "declares no shape"),
        ("x", "write it like x:N,3,32,32;"),
        ("batch", "write it like x:N,3,32,32; the batch of every input is --dynamic-batch"),
        ("mask:0", "did you mean mask:0?"),
        ("x:0=N mask:0:0=N", "several requests in one text"),
        ('{"x"}', "is not a dict"),
        ('{"x": {"0": "N"}', "is not JSON"),
        ("X:N", "did you mean x?"),
        ("x:N,3", "has 2 axes"),
        ("x:N,4,H,W", "has 4 for axis 1"),
        ("x:N,3,H,-2", "'-2' for axis 3"),
        ({"x": ["N", 4, "H", "W"]}, "has 4 for axis 1"),
        ({"x": ["N", 3]}, "has 2 axes"),
        ({"x": ["N", 3, "H W", 32]}, "'H W' for axis 2"),
        (["x:N,3,H,W", "x:M,3,H,W"], "two names, 'N' and 'M'"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(wish: object, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        named_axes(wish, INTERFACE)  # type: ignore[arg-type]

    assert words in caught.value.with_hint


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
        ("L=8,H=640", "once for each dim: --fix-shape N=1 --fix-shape H=640"),
        ("x", "write it like N=1, x:1,3,224,224 or x:0=1"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(wish: object, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        fixed_axes(wish, INTERFACE)  # type: ignore[arg-type]
    assert words in caught.value.with_hint


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("H", 33),
        ("2*H", 66),
        ("H//2 + 1", 17),
        ("(H + 31)//32", 2),
        ("4*((H + 7)//8) - N", 18),
        ("N*H + 1", 67),
        ("7", 7),
        ("W", None),
        ("2*W", None),
        ("H/2", None),
        ("H//0", None),
        ("H**9", None),
        ("__import__('os')", None),
        ("2*", None),
        ("unk__0 of y", None),
        ("True + H", None),
        ("H" * 300, None),
        ("(" * 150 + "H" + ")" * 150, None),
    ],
)
def test_the_value_of_an_expression(text: str, value: int | None) -> None:
    assert value_of(text, {"H": 33, "N": 2}) == value


def test_a_name_is_no_expression() -> None:
    assert [is_expression(text) for text in ("H", "batch.size", "2*H", "a b", "")] == [
        False,
        True,
        True,
        False,
        False,
    ]
