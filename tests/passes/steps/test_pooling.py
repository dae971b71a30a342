"""The pooling operators down: ceil_mode, dilations, padding that counts, Indices, and windows."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_migrate.passes.steps.pool_windows import Windows

from tests.harness import model, run
from tests.steps import check_down, lower, refuses

SUMS = {"rtol": 1e-6, "atol": 1e-6}
NEEDS_SHAPE = {"symbolic": "needs-shape", "unranked": "needs-shape"}


def open_lengths(kernel: list[int], strides: list[int], ends: list[int]) -> dict[str, str] | None:
    """With unknown lengths, ceil_mode is written where no window can start in the padding at the end."""
    enough = all(end + stride <= size for size, stride, end in zip(kernel, strides, ends, strict=True))
    return None if enough else NEEDS_SHAPE


def text(operator: str, opset: int, attributes: str, shape: str = "2, 3, 7, 8", dtype: str = "float") -> str:
    rank = shape.count(",") + 1
    dims = ", ".join("abcdef"[:rank])
    return f"{opset} ({dtype}[{shape}] x) => ({dtype}[{dims}] y) {{ y = {operator} <{attributes}> (x) }}"


PADS = [
    "",
    ", pads = [1, 0, 2, 1]",
    *(f', auto_pad = "{pad}"' for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")),
]


@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize(
    ("given", "dilated"),
    [("", False), (", dilations = [1, 1]", False), *((f", ceil_mode = {ceil}", True) for ceil in (0, 1))],
)
@pytest.mark.parametrize("include", [0, 1])
def test_average(pads: str, given: str, dilated: bool, include: int) -> None:
    same = "SAME" in pads
    if dilated:
        given = f", dilations = [{'1, 1' if same else '2, 3'}], strides = [2, 3]{given}"
    else:
        given += ", strides = [2, 1]"
    source = text("AveragePool", 19, f"kernel_shape = [3, 2]{pads}{given}, count_include_pad = {include}")
    check_down(
        source, 18, 9, 7, refused=NEEDS_SHAPE if dilated and not same else None, **SUMS, specials=False
    )


@pytest.mark.parametrize("length", [5, 6, 7, 8])
@pytest.mark.parametrize("pads", ["0, 0", "1, 1", "0, 1", "1, 0"])
@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("stride", [2, 3])
def test_average_ceil(kernel: int, stride: int, length: int, pads: str, include: int) -> None:
    windows = f"kernel_shape = [{kernel}], strides = [{stride}], pads = [{pads}]"
    source = text(
        "AveragePool", 10, f"{windows}, ceil_mode = 1, count_include_pad = {include}", f"1, 2, {length}"
    )
    check_down(source, 9, 7, refused=open_lengths([kernel], [stride], [int(pads[-1])]))


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
    dilations, refused = ("1, 1", None) if "SAME" in pads else ("2, 1", NEEDS_SHAPE)
    source = text("MaxPool", 10, f"kernel_shape = [3, 2]{pads}, dilations = [{dilations}], strides = [1, 2]")
    check_down(source, 9, refused=refused, specials=False)
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
    return f"{opset} (float[1,2,5,6] x) => ({outputs}) {{ y, i = MaxPool <{attributes}> (x) }}"


@pytest.mark.parametrize("order", [0, 1])
def test_indices(order: int) -> None:
    attributes = f"kernel_shape = [2, 2], storage_order = {order}, strides = [2, 2]"
    check_down(indices(f"{attributes}, ceil_mode = 1", 10, read=True), 9, 8)
    check_down(indices(attributes, 8, read=False), 7, specials=False)
    refuses("no-equal", lower, indices(attributes, 8, read=True), 7, match="Indices")
    dilated = indices(f"{attributes}, dilations = [2, 1]", 10, read=True)
    refuses("no-equal", lower, dilated, 9, match="Indices")


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
    source = text(operator, opset, 'kernel_shape = [3, 2], auto_pad = "SAME_UPPER", dilations = [2, 2]')
    refuses("no-equal", lower, source, to, match="SAME_UPPER")


def test_empty_batch() -> None:
    source = text("MaxPool", 10, "kernel_shape = [2, 2], dilations = [2, 2]", "0, 3, 7, 8")
    check_down(source, 9, feeds={"x": np.zeros((0, 3, 7, 8), np.float32)}, variants=("plain",))


def test_max_unpool_is_refused() -> None:
    source = "9 (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[a,b,c,d] y) { y = MaxUnpool <kernel_shape = [2, 2]> (x, i) }"
    refuses("no-equal", lower, source, 8)


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("shape", ["1, 1, 2, 2", "1, 2, 2, 5"])
def test_a_window_that_is_left_out(operator: str, shape: str) -> None:
    """Version 22 infers the output without it; the shapes declared in the model must still hold below."""
    width = "1" if shape.endswith("2") else "2"
    attributes = "kernel_shape = [3, 3], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1"
    y = f"float[{shape[:4]}, 1, {width}] y"
    source = f"22 (float[{shape}] x) => ({y}) {{ y = {operator} <{attributes}> (x) }}"
    check_down(source, 21, 11, 10, variants=("plain", "if", "function"), **SUMS, specials=False)
    check_down(source, 21, 11, 10, variants=("symbolic", "unranked"), **SUMS)


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
def test_a_window_that_same_padding_leaves_out(pad: str) -> None:
    """ONNX Runtime refuses the original, as the stride is above the kernel."""
    attributes = f'kernel_shape = [1], strides = [3], auto_pad = "{pad}", ceil_mode = 1'
    source = f"22 (float[1, 2, 8] x) => (float[1, 2, 3] y) {{ y = MaxPool <{attributes}> (x) }}"
    x = np.arange(16, dtype=np.float32).reshape(1, 2, 8)
    check_down(source, 21, 10, feeds={"x": x}, expected=[x[:, :, ::3]], variants=("plain", "function"))


def one_axis(
    length: int, kernel: int, stride: int, dilation: int, head: int, tail: int, size: int
) -> Windows:
    return Windows([length], [kernel], [stride], [dilation], [head], [tail], [size])


def test_padding_for_the_last_window() -> None:
    assert one_axis(6, 3, 2, 1, 0, 0, 3).pads_for_floor() == [0, 1]
    assert one_axis(7, 3, 2, 1, 0, 0, 3).pads_for_floor() == [0, 0]
    assert one_axis(6, 2, 3, 2, 1, 0, 3).pads_for_floor() == [1, 2]


def test_places_and_counts() -> None:
    given = one_axis(5, 2, 2, 2, 1, 1, 3)
    np.testing.assert_array_equal(given.places(0), [[0, 2], [2, 4], [4, 6]])
    np.testing.assert_array_equal(given.counts(include=False), [1, 2, 1])
    np.testing.assert_array_equal(given.counts(include=True), [2, 2, 2])


@pytest.mark.parametrize("length", [4, 5, 6, 7])
def test_a_window_is_left_out_as_the_runtime_leaves_it_out(length: int) -> None:
    """One that would start in the padding at the end; rounding up alone counts it."""
    source = model(text("MaxPool", 12, "kernel_shape = [1], strides = [3], ceil_mode = 1", f"1, 1, {length}"))
    (result,) = run(source, {"x": np.zeros((1, 1, length), np.float32)})
    assert one_axis(length, 1, 3, 1, 0, 0, result.shape[2]).counts_too_many == (length in (5, 6))
