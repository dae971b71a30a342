"""The pooling operators downwards: ceil_mode, dilations, padding that counts, Indices."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower

SUMS = 1e-6
NEEDS_SHAPE = {"symbolic": "needs-shape", "unranked": "needs-shape"}


def open_lengths(kernel: list[int], strides: list[int], ends: list[int]) -> dict[str, str] | None:
    """With unknown lengths, ceil_mode is written where no window can start in the padding at the end."""
    enough = all(end + stride <= size for size, stride, end in zip(kernel, strides, ends, strict=True))
    return None if enough else NEEDS_SHAPE


def text(operator: str, opset: int, attributes: str, shape: str = "2, 3, 7, 8", dtype: str = "float") -> str:
    rank = shape.count(",") + 1
    dims = ", ".join("abcdef"[:rank])
    return f"""<ir_version: 8, opset_import: ["": {opset}]>
        graph ({dtype}[{shape}] x) => ({dtype}[{dims}] y) {{ y = {operator} <{attributes}> (x) }}"""


PADS = [
    "",
    ", pads = [1, 0, 2, 1]",
    ', auto_pad = "SAME_UPPER"',
    ', auto_pad = "SAME_LOWER"',
    ', auto_pad = "VALID"',
]


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("dilations", ["", ", dilations = [1, 1]"])
@pytest.mark.parametrize("include", [0, 1])
def test_average_without_dilations(pads: str, dilations: str, include: int) -> None:
    attributes = f"kernel_shape = [3, 2]{pads}{dilations}, strides = [2, 1], count_include_pad = {include}"
    check_down(text("AveragePool", 19, attributes), 18, 9, 7, rtol=SUMS, atol=SUMS, specials=False)


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("include", [0, 1])
def test_average_with_dilations(pads: str, ceil: int, include: int) -> None:
    dilations = "1, 1" if "SAME" in pads else "2, 3"
    attributes = (
        f"kernel_shape = [3, 2]{pads}, dilations = [{dilations}], strides = [2, 3], ceil_mode = {ceil},"
        f" count_include_pad = {include}"
    )
    check_down(
        text("AveragePool", 19, attributes),
        18,
        9,
        7,
        refused=None if "SAME" in pads else NEEDS_SHAPE,
        rtol=SUMS,
        atol=SUMS,
        specials=False,
    )


@pytest.mark.parametrize("length", [5, 6, 7, 8])
@pytest.mark.parametrize("pads", ["0, 0", "1, 1", "0, 1", "1, 0"])
@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize("kernel", [2, 3])
def test_average_ceil(kernel: int, length: int, pads: str, include: int) -> None:
    for stride in (2, 3):
        attributes = (
            f"kernel_shape = [{kernel}], strides = [{stride}], pads = [{pads}], ceil_mode = 1,"
            f" count_include_pad = {include}"
        )
        refused = open_lengths([kernel], [stride], [int(pads[-1])])
        check_down(text("AveragePool", 10, attributes, f"1, 2, {length}"), 9, 7, refused=refused)


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("length", [6, 7])
def test_ceil_and_auto_pad(operator: str, pad: str, length: int) -> None:
    attributes = f'kernel_shape = [3], strides = [2], auto_pad = "{pad}", ceil_mode = 1'
    check_down(text(operator, 10, attributes, f"1, 2, {length}"), 9)


@pytest.mark.parametrize("length", [5, 6, 7])
@pytest.mark.parametrize("pads", ["0, 0", "1, 1", "0, 1"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_max_ceil_and_dilations(length: int, pads: str, dilation: int) -> None:
    attributes = (
        f"kernel_shape = [2], strides = [3], pads = [{pads}], ceil_mode = 1, dilations = [{dilation}]"
    )
    source = text("MaxPool", 12, attributes, f"1, 2, {length}")
    # In an If, ONNX Runtime does not run a MaxPool that leaves a window out: it infers one more.
    check_down(source, 11, 10, variants=("plain", "symbolic", "unranked", "function"))
    check_down(source, 9, refused=NEEDS_SHAPE, specials=dilation == 1)


@pytest.mark.parametrize("pads", PADS)
def test_max_of_two_axes(pads: str) -> None:
    attributes = (
        f"kernel_shape = [3, 2]{pads}, dilations = [{'1, 1' if 'SAME' in pads else '2, 1'}], strides = [1, 2]"
    )
    check_down(
        text("MaxPool", 10, attributes), 9, refused=None if "SAME" in pads else NEEDS_SHAPE, specials=False
    )
    check_down(text("MaxPool", 10, f"kernel_shape = [3, 2]{pads}, ceil_mode = 0"), 9, 7)


def test_max_with_dilations_of_infinities() -> None:
    x = np.full((1, 2, 7), -np.inf, np.float32)
    x[0, 1, :3] = np.inf
    source = text("MaxPool", 10, "kernel_shape = [3], dilations = [2], pads = [1, 1]", "1, 2, 7")
    check_down(source, 9, feeds={"x": x}, variants=("plain",))


@pytest.mark.parametrize("length", [6, 7, 8, 9])
@pytest.mark.parametrize("pads", [[0, 0], [1, 0], [1, 1]])
def test_max_ceil_of_unknown_lengths(pads: list[int], length: int) -> None:
    for kernel, stride in ((3, 2), (2, 2), (4, 3)):
        attributes = f"kernel_shape = [{kernel}], strides = [{stride}], pads = {pads}, ceil_mode = 1"
        refused = open_lengths([kernel], [stride], [pads[1]])
        check_down(text("MaxPool", 10, attributes, f"1, 2, {length}"), 9, 7, refused=refused)


def test_max_of_three_axes() -> None:
    attributes = "kernel_shape = [2, 2, 2], dilations = [2, 1, 2], pads = [1, 1, 0, 0, 1, 1]"
    check_down(text("MaxPool", 10, attributes, "1, 2, 5, 4, 6"), 9, refused=NEEDS_SHAPE, specials=False)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "double"])
def test_max_types(dtype: str) -> None:
    check_down(text("MaxPool", 12, "kernel_shape = [3, 2]", dtype=dtype), 11, 9)


def indices(attributes: str, opset: int, *, read: bool) -> str:
    outputs = "float[a,b,c,d] y, int64[e,f,g,h] i" if read else "float[a,b,c,d] y"
    return f"""<ir_version: 4, opset_import: ["": {opset}]>
        graph (float[1,2,5,6] x) => ({outputs}) {{ y, i = MaxPool <{attributes}> (x) }}"""


@pytest.mark.parametrize("order", [0, 1])
def test_indices(order: int) -> None:
    attributes = f"kernel_shape = [2, 2], storage_order = {order}, strides = [2, 2]"
    check_down(indices(f"{attributes}, ceil_mode = 1", 10, read=True), 9, 8)
    check_down(indices(attributes, 8, read=False), 7, specials=False)
    for source, to in (
        (indices(attributes, 8, read=True), 7),
        (indices(f"{attributes}, dilations = [2, 1]", 10, read=True), 9),
    ):
        with pytest.raises(CannotMigrate, match="Indices") as caught:
            lower(source, to)
        assert caught.value.code == "no-equal"


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp(p: int, ceil: int, pads: str) -> None:
    same = "SAME" in pads
    ends = [2, 1] if "pads" in pads else [0, 0]
    cases = [(", dilations = [1, 1]", None if not ceil or same else open_lengths([3, 2], [2, 3], ends))]
    if not same:
        cases.append((", dilations = [2, 3]", NEEDS_SHAPE))
    for dilations, refused in cases:
        attributes = f"kernel_shape = [3, 2]{pads}, strides = [2, 3], ceil_mode = {ceil}, p = {p}{dilations}"
        check_down(text("LpPool", 18, attributes), 17, 9, refused=refused)
        check_down(text("LpPool", 18, attributes), 7, variants=("plain",))


@pytest.mark.parametrize(
    ("operator", "opset", "to"), [("AveragePool", 19, 18), ("MaxPool", 10, 9), ("LpPool", 18, 17)]
)
def test_same_padding_with_dilations_is_refused(operator: str, opset: int, to: int) -> None:
    with pytest.raises(CannotMigrate, match="SAME_UPPER") as caught:
        lower(text(operator, opset, 'kernel_shape = [3, 2], auto_pad = "SAME_UPPER", dilations = [2, 2]'), to)
    assert caught.value.code == "no-equal"


def test_empty_batch() -> None:
    x = {"x": np.zeros((0, 3, 7, 8), np.float32)}
    check_down(
        text("MaxPool", 10, "kernel_shape = [2, 2], dilations = [2, 2]", "0, 3, 7, 8"),
        9,
        feeds=x,
        variants=("plain",),
    )


def test_max_unpool_is_refused() -> None:
    source = """<ir_version: 4, opset_import: ["": 9]>
        graph (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[a,b,c,d] y) { y = MaxUnpool <kernel_shape = [2, 2]> (x, i) }"""
    with pytest.raises(CannotMigrate) as caught:
        lower(source, 8)
    assert caught.value.code == "no-equal"


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("shape", ["1, 1, 2, 2", "1, 2, 2, 5"])
def test_a_window_that_is_left_out(operator: str, shape: str) -> None:
    """Version 22 infers the output without it; the shapes declared in the model must still hold below."""
    width = "1" if shape.endswith("2") else "2"
    attributes = "kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1"
    source = f"""<ir_version: 10, opset_import: ["": 22]>
        graph (float[{shape}] x) => (float[{shape[:4]}, 1, {width}] y) {{ y = {operator} <{attributes}> (x) }}"""
    check_down(source, 21, 11, 10, variants=("plain", "if", "function"), rtol=SUMS, atol=SUMS, specials=False)
    check_down(source, 21, 11, 10, variants=("symbolic", "unranked"), rtol=SUMS, atol=SUMS)
