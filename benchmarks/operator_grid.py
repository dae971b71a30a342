"""Forms of operators by rule: every rank, place of an axis, side of a constant and way to broadcast that exporters write.

Lines as in operator_forms.txt. They stand behind all others, whose names count them.
"""

# ruff: noqa: E501  (models as text)
from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations, product

__all__ = ["grid"]

_DIMS = ("", "5", "2,3", "2,3,4", "2,3,4,5", "1,2,3,4,5")
"""The shape of each rank."""

_PAIRED = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Equal", "Less", "Greater", "PRelu")
_CONSTANTS = ("0.5", "(1)", "(1,1)", "(5)", "(4,1)", "(1,5)", "(3,4,5)", "(3,1,1)", "(1,3,1,1)", "(2,3,4,5)", "(2,1,1,1)",
              "(1,1,1,1)", "(1,1,4,1)", "(1,2,3,4,5)", "(1,1,1,1,1)")  # fmt: skip
"""What broadcasts with 2 × 3 × 4 × 5, or is larger."""

_DATA = ("x[2,3,4,5] y[]", "x[2,3,4,5] y[1]", "x[2,3,4,5] y[5]", "x[2,3,4,5] y[4,1]", "x[2,3,4,5] y[3,1,1]",
         "x[2,3,4,5] y[2,1,1,1]", "x[2,3,1,5] y[2,1,4,1]", "x[2,3] y[1]", "x[2,3] y[3]", "x[2,3] y[2,1]", "x[2,1] y[1,3]",
         "x[5] y[1]", "x[5] y[]", "x[] y[5]", "x[1] y[2,3,4]", "x[3,1] y[2,3,4]", "x[2,3,4] y[2,1,4]", "x[4] y[2,3,4,4]",
         "x[1,2,3,4,5] y[3,1,1]", "x[1,2,3,4,5] y[1,2,1,1,1]")  # fmt: skip
_TYPED = ("int64", "int32")
_REDUCED = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2")
_CHOSEN = ("ArgMax", "ArgMin")
_NORMAL = ("Softmax", "LogSoftmax", "Hardmax")


def grid() -> Iterator[str]:
    """Yield the lines."""
    for part in (
        _paired,
        _reduced,
        _along,
        _moved,
        _taken,
        _products,
        _windows,
        _norms,
        _resized,
        _padded,
        _other,
        _behind,
    ):
        yield from filter(None, part())


def _paired() -> Iterator[str]:
    for operator in _PAIRED:
        for constant in _CONSTANTS:
            yield f"{operator}: x[2,3,4,5] y={constant} -> {operator}(x, y)"
            if operator != "PRelu":
                yield f"{operator}: y={constant} x[2,3,4,5] -> {operator}(y, x)"
        for constant in ("0.5", "(1)", "(4)", "(3,4)", "(3,1)", "(1,3,4)", "(2,1,1)", "(1,1,1)", "(1,2,3,4)"):
            yield f"{operator}: x[2,3,4] y={constant} -> {operator}(x, y)"
        for constant in ("0.5", "(1)", "(3)", "(1,3)", "(2,1)"):
            yield f"{operator}: x[2,3] y={constant} -> {operator}(x, y)"
        if operator != "PRelu":
            yield from (f"{operator}: {data} -> {operator}(x, y)" for data in _DATA)
    for operator, kind in product(
        ("Add", "Sub", "Mul", "Div", "Max", "Equal", "Less", "Greater", "Mod"), _TYPED
    ):
        for dims in _DIMS[:5]:
            own = "int(2)" if kind == "int64" else "int32(1)"
            yield f"{operator}: x[{dims}]{kind} y={own} -> {operator}(x, y)"
            yield f"{operator}: x[{dims}]{kind} y={own} -> Cast<to=1>($paired_{operator})"
    for operator in ("And", "Or", "Xor"):
        for data in (
            "x[2,3,4]bool y[4]bool",
            "x[2,3,4,5]bool y[2,1,1,5]bool",
            "x[5]bool y[]bool",
            "x[2,3]bool y[2,1]bool",
        ):
            yield f"{operator}: {data} -> {operator}(x, y)"
    for operator in ("Sum", "Mean", "Max", "Min"):
        yield f"{operator}: x[2,3,4] y[4] z[3,1] -> {operator}(x, y, z)"
        yield f"{operator}: x[2,3,4,5] y[1,3,1,1] -> {operator}(x, y)"
    for c, x, y in (("2,3,4", "2,3,4", "4"), ("4", "2,3,4", "2,3,4"), ("2,3,1", "2,1,4", "3,4"), ("1,3,1,1", "2,3,4,5", "2,3,4,5"),
                    ("2,1,4,5", "2,3,4,5", "1"), ("5", "5", "5"), ("", "2,3", "2,3"), ("2,1,1", "1", "2,3,4"),
                    ("2,3,4", "", "2,3,4"), ("1,2,3,4,5", "1,2,3,4,5", "5")):  # fmt: skip
        yield f"Where: c[{c}]bool x[{x}] y[{y}] -> Where(c, x, y)"
        yield f"Where: c[{c}]bool x[{x}]int64 y[{y}]int64 -> Where(c, x, y)"
    for dims in _DIMS:
        yield f"Where: c[{dims}]bool x[{dims}] y=0.0 -> Where(c, x, y)"
        yield f"Where: c[{dims}]bool y=0.0 x[{dims}] -> Where(c, y, x)"
        yield f"Where: c[{dims}]bool x=0.0 y=1.0 -> Where(c, x, y)"


def _reduced() -> Iterator[str]:
    for dims in _DIMS[1:]:
        rank = dims.count(",") + 1
        places = [[at] for at in range(rank)] + [
            [-1],
            list(range(rank)),
            [0, -1],
            [1, 2][: rank - 1],
            [-1, -2][:rank],
        ]
        places += [list(range(2, rank)), [1, 3], [0, 2]]
        for axes in {tuple(own): own for own in places if own and max(own) < rank}.values():
            for operator, kept in product(_REDUCED, (0, 1)):
                yield _reduction(operator, f"x[{dims}]", axes, kept)
        for at, operator, kept in product(range(-1, rank), _CHOSEN, (0, 1)):
            yield f"{operator}: x[{dims}] -> {operator}<axis={at}, keepdims={kept}>(x)"
        for operator, kind in product(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"), _TYPED):
            yield _reduction(operator, f"x[{dims}]{kind}", (-1,), 0)
    for operator in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"):
        yield f"{operator}: x[2,3,4,5] a={{2,3}} -> @18 {operator}(x, a)"
        yield f"{operator}: x[2,3,4] a={{-1}} -> @18 {operator}<keepdims=0>(x, a)"
        yield f"{operator}: x[2,3,4] -> @18 {operator}<noop_with_empty_axes=1>(x)"


def _reduction(operator: str, data: str, axes: Iterable[int], kept: int) -> str:
    """Return a reduction of opset 13, in which ReduceSum alone takes its axes as an input."""
    text = ",".join(map(str, axes))
    if operator == "ReduceSum":
        return f"{operator}: {data} a={{{text}}} -> {operator}<keepdims={kept}>(x, a)"
    return f"{operator}: {data} -> {operator}<axes=[{text}], keepdims={kept}>(x)"


def _along() -> Iterator[str]:
    for dims in _DIMS[1:]:
        rank = dims.count(",") + 1
        for at in range(-rank, rank):
            for operator, opset in product(_NORMAL, ("", "@11 ")):
                yield f"{operator}: x[{dims}] -> {opset}{operator}<axis={at}>(x)"
            yield f"CumSum: x[{dims}] a=int({at % rank}) -> CumSum(x, a)"
            yield f"CumSum: x[{dims}] a=int({at % rank}) -> CumSum<exclusive=1>(x, a)"
            yield f"CumSum: x[{dims}] a=int({at % rank}) -> CumSum<reverse=1>(x, a)"
            yield f"TopK: x[{dims}] k={{1}} -> :2 TopK<axis={at}>(x, k)"
            yield (
                f"TopK: x[{dims}] k={{2}} -> :2 TopK<axis={at}, largest=0>(x, k)"
                if dims.split(",")[at] > "1"
                else ""
            )
            yield f"Concat: x[{dims}] y[{dims}] -> Concat<axis={at}>(x, y)"
            yield f"Concat: x[{dims}] y[{dims}] z[{dims}] -> Concat<axis={at}>(x, y, z)"
            yield f"Concat: x[{dims}] y=({dims}) -> Concat<axis={at}>(x, y)"
            yield f"Concat: x[{dims}]int64 y[{dims}]int64 -> Concat<axis={at}>(x, y)"
            yield f"Flatten: x[{dims}] -> Flatten<axis={at}>(x)"
            yield f"LpNormalization: x[{dims}] -> LpNormalization<axis={at}, p=2>(x)"
            yield f"LpNormalization: x[{dims}] -> LpNormalization<axis={at}, p=1>(x)"
    for at in (0, 1, 2, -1, -2):
        size = (4, 4, 6)[at]
        dims = "4,4,6"
        yield f"Split: x[{dims}] -> :2 Split<axis={at}>(x)"
        yield f"Split: x[{dims}] s={{1,{size - 1}}} -> :2 Split<axis={at}>(x, s)"
        yield f"Split: x[{dims}] s={{1,1,{size - 2}}} -> :3 Split<axis={at}>(x, s)"
        yield f"Split: x[{dims}] -> @18 :3 Split<axis={at}, num_outputs=3>(x)"
        yield f"Split: x[{dims}]int64 -> :2 Split<axis={at}>(x)"
        yield f"Split: x[{dims},2] -> :2 Split<axis={at}>(x)"
    yield "Split: x[6] -> :3 Split<axis=0>(x)"
    yield "Split: x[1,6,4,4] s={2,4} -> :2 Split<axis=1>(x, s)"


def _moved() -> Iterator[str]:
    for dims in _DIMS[2:]:
        rank = dims.count(",") + 1
        for at, perm in enumerate(permutations(range(rank))):
            if rank < 5 or at % 7 == 0:
                yield f"Transpose: x[{dims}] -> Transpose<perm=[{','.join(map(str, perm))}]>(x)"
        yield f"Transpose: x[{dims}]int64 -> Transpose(x)"
        yield f"Transpose: x[{dims}]int32 -> Transpose(x)"
        yield f"Transpose: x[{dims}]bool -> Transpose(x)"
    for dims, axes in (("1,3", "0"), ("3,1", "-1"), ("1,3,4", "0"), ("2,1,4,1", "1,3"), ("2,1,4,1", "-1,-3"), ("1,1,3,4", "0,1"),
                       ("1", "0"), ("2,3,1,1", "2"), ("1,2,3,4,1", "4"), ("1,2,3,4,1", "0,4")):  # fmt: skip
        yield f"Squeeze: x[{dims}] a={{{axes}}} -> Squeeze(x, a)"
        yield f"Squeeze: x[{dims}]int64 a={{{axes}}} -> Squeeze(x, a)"
        yield f"Squeeze: x[{dims}] -> @11 Squeeze<axes=[{axes}]>(x)"
    for dims, axes in (("", "0"), ("3", "0"), ("3", "1"), ("3", "0,2"), ("3", "-1"), ("2,3", "0"), ("2,3", "1,2"), ("2,3", "-2"),
                       ("2,3,4", "0"), ("2,3,4", "1"), ("2,3,4", "3"), ("2,3,4", "0,4"), ("2,3,4,5", "2"), ("2,3,4,5", "-1")):  # fmt: skip
        yield f"Unsqueeze: x[{dims}] a={{{axes}}} -> Unsqueeze(x, a)"
        yield f"Unsqueeze: x[{dims}]int64 a={{{axes}}} -> Unsqueeze(x, a)"
        yield f"Unsqueeze: x[{dims}] -> @11 Unsqueeze<axes=[{axes}]>(x)"
    for dims, shape in (("24", "-1,4"), ("24", "1,2,3,4"), ("2,12", "-1"), ("2,3,4", "-1"), ("2,3,4", "0,0,2,2"), ("2,3,4", "-1,12"),
                        ("2,3,4", "1,2,3,4"), ("2,3,4,5", "2,-1,5"), ("2,3,4,5", "0,3,-1"), ("2,3,4,5", "6,20"), ("2,3,4,5", "-1"),
                        ("2,8,3,3", "2,2,4,3,3"), ("2,8,3,3", "2,2,4,9"), ("1,4,4,4", "1,2,2,2,2,2,2"), ("1,2,3,4,5", "2,3,20"),
                        ("1,1,1", "1"), ("", "1"), ("", "1,1"), ("1", "1,1,1,1")):  # fmt: skip
        yield f"Reshape: x[{dims}] s={{{shape}}} -> Reshape(x, s)"
        yield f"Reshape: x[{dims}]int64 s={{{shape}}} -> Reshape(x, s)"
    for dims, shape in (("1", "3"), ("", "2,3"), ("3", "2,3"), ("3,1", "3,4"), ("2,3", "1,1"), ("1,3,1", "2,1,4"), ("2,1,4", "2,3,4"),
                        ("1,1,4", "2,3,1"), ("1,3,1,1", "2,3,4,5"), ("2,3,1,5", "1,1,4,1"), ("4,5", "2,3,4,5"), ("1,2,1,4,1", "1,2,3,4,5")):  # fmt: skip
        yield f"Expand: x[{dims}] s={{{shape}}} -> Expand(x, s)"
        yield f"Expand: x[{dims}]int64 s={{{shape}}} -> Expand(x, s)"
        yield f"Expand: x[{dims}] y[{shape}] -> Expand(x, $shape_y)"
    for dims, times in (("3", "2"), ("2,3", "1,2"), ("2,3", "3,1"), ("2,3,4", "1,1,2"), ("2,3,4", "2,1,1"), ("2,3,4,5", "1,2,1,2"), ("2,1,4,5", "1,3,1,1")):  # fmt: skip
        yield f"Tile: x[{dims}] r={{{times}}} -> Tile(x, r)"
        yield f"Tile: x[{dims}]int64 r={{{times}}} -> Tile(x, r)"
    for kind, to in product(
        ("", "int64", "int32", "bool", "uint8", "int8", "float16", "float64"), (1, 2, 3, 6, 7, 9, 10, 11)
    ):
        yield f"Cast: x[2,3,4]{kind} -> Cast<to={to}>(x)"
    for dims, to in product(_DIMS, (1, 6, 7, 9)):
        yield f"Cast: x[{dims}] -> Cast<to={to}>(x)"


def _taken() -> Iterator[str]:
    for dims in _DIMS[1:]:
        rank = dims.count(",") + 1
        for at in range(-1, rank):
            last = int(dims.split(",")[at]) - 1
            for indices in (
                "int(0)",
                "int(-1)",
                f"{{{last}}}",
                f"{{0,{last}}}",
                f"{{-1,0,{last}}}",
                f"{{{{0,{last}}},{{{last},0}}}}",
            ):
                text = "-1" if indices == "int(-1)" else indices
                yield f"Gather: x[{dims}] i={text} -> Gather<axis={at}>(x, i)"
            yield f"Gather: x[{dims}]int64 i={{0}} -> Gather<axis={at}>(x, i)"
            if last >= 2:
                one = ",".join("1" if own == at % rank else dim for own, dim in enumerate(dims.split(",")))
                yield f"Gather: x[{dims}] i[3]int64 -> Gather<axis={at}>(x, i)"
                yield f"Gather: x[{dims}] i[1,3]int32 -> Gather<axis={at}>(x, i)"
                yield f"GatherElements: x[{dims}] i[{dims}]int64 -> GatherElements<axis={at}>(x, i)"
                yield f"ScatterElements: x[{dims}] i[{one}]int64 u[{one}] -> ScatterElements<axis={at}>(x, i, u)"
            for start, end, step in ((0, -1, 1), (-1, 99, 1), (0, 99, 2), (-1, -99, -1), (0, 1, 1)):
                if last or (start, end) != (0, -1):
                    yield f"Slice: x[{dims}] s={{{start}}} e={{{end}}} a={{{at}}} t={{{step}}} -> Slice(x, s, e, a, t)"
            yield f"Slice: x[{dims}] s={{0}} e={{1}} a={{{at}}} -> Slice(x, s, e, a)"
            yield f"Slice: x[{dims}] -> @9 Slice<starts=[0], ends=[1], axes=[{at % rank}]>(x)"
            yield f"Slice: x[{dims}]int64 s={{0}} e={{1}} a={{{at}}} -> Slice(x, s, e, a)"
    yield "Slice: x[2,3,4,5] s={0,1} e={1,9} a={1,3} -> Slice(x, s, e, a)"
    yield "Slice: x[2,3,4,5] s={1,1} e={9,-1} a={-1,-2} t={2,1} -> Slice(x, s, e, a, t)"
    yield "Slice: x[2,3,4,5] s={-1,0} e={-9,9} a={2,3} t={-1,2} -> Slice(x, s, e, a, t)"
    for dims, kind in product(("4,3", "4,3,2"), ("int64",)):
        yield f"GatherND: x[{dims}] i={{{{0,1}},{{3,2}}}} -> GatherND(x, i)"
        yield f"GatherND: x[{dims}] i={{{{0}},{{3}},{{1}}}} -> GatherND(x, i)"
        yield f"GatherND: x[{dims}] i={{{{0}},{{2}},{{1}},{{1}}}} -> GatherND<batch_dims=1>(x, i)"
        yield f"ScatterND: x[{dims}] i={{{{0,1}},{{3,2}}}} u[2{dims[3:]}] -> ScatterND(x, i, u)"
        yield f"ScatterND: x[{dims}]{kind} i={{{{0,1}},{{3,2}}}} u[2{dims[3:]}]{kind} -> ScatterND(x, i, u)"
    yield 'ScatterND: x[4,3] i={{0},{2}} u[2,3] -> @16 ScatterND<reduction="add">(x, i, u)'
    yield 'ScatterElements: x[4,3] i={{0,1,2}} u[1,3] -> @16 ScatterElements<axis=0, reduction="add">(x, i, u)'


def _products() -> Iterator[str]:
    for x, y in (("5", "5"), ("5", "5,3"), ("4,5", "5"), ("4,5", "5,3"), ("2,4,5", "5"), ("2,4,5", "5,3"), ("2,4,5", "1,5,3"),
                 ("1,4,5", "2,5,3"), ("4,5", "2,5,3"), ("2,3,4,5", "5,3"), ("2,3,4,5", "3,5,2"), ("2,3,4,5", "1,3,5,2"), ("2,1,4,5", "1,3,5,2"),
                 ("2,3,4,5", "5"), ("1,2,3,4,5", "5,2"), ("1,2,3,4,5", "1,2,3,5,2"), ("1,5", "5,1"), ("2,4,1", "2,1,3")):  # fmt: skip
        yield f"MatMul: x[{x}] y[{y}] -> MatMul(x, y)"
        yield f"MatMul: x[{x}] y=({y}{',' if ',' not in y else ''}) -> MatMul(x, y)"
        yield f"MatMul: x=({x}{',' if ',' not in x else ''}) y[{y}] -> MatMul(x, y)"
    for a, b, c in product(
        (0, 1),
        (0, 1),
        ("", " c=(3)", " c=(1,3)", " c=(4,1)", " c=(4,3)", " c=0.5", " c[3]", " c[4,3]", " c=(1)"),
    ):
        x, y = ("5,4", "4,5")[not a], ("3,5", "5,3")[not b]
        for text in (f"y=({y})", f"y[{y}]"):
            yield f"Gemm: x[{x}] {text}{c} -> Gemm<transA={a}, transB={b}>(x, y{', c' if c else ''})"
    for text in ("alpha=0.5", "beta=0.5", "alpha=2.0, beta=0.0"):
        yield f"Gemm: x[4,5] y=(3,5) c=(3) -> Gemm<transB=1, {text}>(x, y, c)"
        yield f"Gemm: x[1,5] y[3,5] c=(3) -> Gemm<transB=1, {text}>(x, y, c)"
    for equation, x, y in (("ij,jk->ik", "2,3", "3,4"), ("bij,bkj->bik", "2,3,4", "2,5,4"), ("bhid,bhjd->bhij", "1,2,3,4", "1,2,5,4"),
                           ("bhij,bhjd->bhid", "1,2,3,5", "1,2,5,4"), ("bnqd,kd->bnqk", "1,2,3,4", "5,4"), ("i,j->ij", "3", "4"), ("bi,bi->b", "2,3", "2,3"),
                           ("nctw,cd->ndtw", "1,3,4,5", "3,2"), ("blhd,bmhd->bhlm", "1,3,2,4", "1,5,2,4"), ("...ij,...jk->...ik", "2,3,4", "2,4,5"),
                           ("bchw,bkc->bkhw", "1,3,4,5", "1,2,3"), ("nkctv,kvw->nctw", "1,2,3,4,5", "2,5,5")):  # fmt: skip
        yield f'Einsum: x[{x}] y[{y}] -> Einsum<equation="{equation}">(x, y)'
        yield f'Einsum: x[{x}] y=({y}{"," if "," not in y else ""}) -> Einsum<equation="{equation}">(x, y)'
    for equation, x in (("ij->ji", "2,3"), ("bij->bi", "2,3,4"), ("ii->i", "3,3"), ("bchw->bhwc", "1,2,3,4")):
        yield f'Einsum: x[{x}] -> Einsum<equation="{equation}">(x)'


def _windows() -> Iterator[str]:
    each = (
        ("", "pads=[{p}], ", "strides=[{s}], ", "dilations=[{d}], ", "pads=[{a}], strides=[{s}], ", "pads=[{p}], dilations=[{d}], strides=[{s}], ")
    )  # fmt: skip
    for axes in (1, 2, 3):
        dims, kernel = ",".join(["9", "8", "7"][:axes]), ",".join("3" * axes)
        fill = {
            "p": ",".join("1" * 2 * axes),
            "s": ",".join("2" * axes),
            "d": ",".join("2" * axes),
            "a": ",".join("0" * axes + "1" * axes),
        }
        for text in each:
            own = text.format(**fill)
            for batch, (group, channels, filters, within) in product(
                (1, 2), ((1, 4, 6, 4), (2, 4, 6, 2), (4, 4, 4, 1), (4, 4, 8, 1))
            ):
                for bias in ("", f" b=({filters})"):
                    yield (f"Conv: x[{batch},{channels},{dims}] w=({filters},{within},{kernel}){bias} -> "
                           f"Conv<{own}kernel_shape=[{kernel}], group={group}>(x, w{', b' if bias else ''})")  # fmt: skip
            for group, filters in ((1, 3), (2, 2), (4, 1)):
                yield (f"ConvTranspose: x[1,4,{dims}] w=(4,{filters},{kernel}) b=({filters * group}) -> "
                       f"ConvTranspose<{own}kernel_shape=[{kernel}], group={group}>(x, w, b)")  # fmt: skip
            for more in ("", "ceil_mode=1, ", "count_include_pad=1, ", "ceil_mode=1, count_include_pad=1, "):
                if "dilations" not in own:
                    yield f"AveragePool: x[1,3,{dims}] -> AveragePool<{own}{more}kernel_shape=[{kernel}]>(x)"
                if "count" not in more:
                    yield f"MaxPool: x[1,3,{dims}] -> MaxPool<{own}{more}kernel_shape=[{kernel}]>(x)"
        for auto, stride in product(("SAME_UPPER", "SAME_LOWER", "VALID"), ("1", "2")):
            own = f'auto_pad="{auto}", strides=[{",".join(stride * axes)}], kernel_shape=[{kernel}]'
            yield f"Conv: x[1,4,{dims}] w=(6,4,{kernel}) -> Conv<{own}>(x, w)"
            yield f"Conv: x[1,4,{dims}] w=(4,1,{kernel}) -> Conv<{own}, group=4>(x, w)"
            yield f"ConvTranspose: x[1,4,{dims}] w=(4,3,{kernel}) -> ConvTranspose<{own}>(x, w)"
            yield f"AveragePool: x[1,4,{dims}] -> AveragePool<{own}>(x)"
            yield f"MaxPool: x[1,4,{dims}] -> MaxPool<{own}>(x)"
        pair = f"strides=[{fill['s']}], output_padding=[{','.join('1' * axes)}]"
        yield f"ConvTranspose: x[1,4,{dims}] w=(4,3,{kernel}) -> ConvTranspose<{pair}, pads=[{fill['p']}]>(x, w)"
        yield f"ConvTranspose: x[2,4,{dims}] w[4,3,{kernel}] -> ConvTranspose<{pair}, pads=[{fill['p']}]>(x, w)"
        yield f"Conv: x[2,4,{dims}] w[6,4,{kernel}] b[6] -> Conv<pads=[{fill['p']}]>(x, w, b)"
        one = ",".join("1" * axes)
        yield f"Conv: x[2,4,{dims}] w=(6,4,{one}) b=(6) -> Conv<kernel_shape=[{one}]>(x, w, b)"
        yield f"Conv: x[2,4,{dims}] w=(6,4,{one}) b=(6) -> Conv<kernel_shape=[{one}], strides=[{fill['s']}]>(x, w, b)"
        for operator in ("GlobalAveragePool", "GlobalMaxPool"):
            yield f"{operator}: x[2,3,{dims}] -> {operator}(x)"
    for operator, shape, strides in product(
        ("MaxPool", "AveragePool"), ("1,3", "3,1", "2,3"), ("1,2", "2,1")
    ):
        yield f"{operator}: x[1,3,8,9] -> {operator}<kernel_shape=[{shape}], strides=[{strides}]>(x)"
        yield (
            f"{operator}: x[1,3,8,9] -> {operator}<kernel_shape=[{shape}], strides=[{strides}], pads=[0,1,0,1]>(x)"
            if shape != "3,1"
            else ""
        )
    for shape, pads in (
        ("1,3", "0,1,0,1"),
        ("3,1", "1,0,1,0"),
        ("5,5", "2,2,2,2"),
        ("1,7", "0,3,0,3"),
        ("3,3", "1,2,0,1"),
        ("3,3", "0,0,2,2"),
    ):
        yield f"Conv: x[1,4,9,8] w=(6,4,{shape}) b=(6) -> Conv<kernel_shape=[{shape}], pads=[{pads}]>(x, w, b)"
        yield f"Conv: x[1,4,9,8] w=(4,1,{shape}) b=(4) -> Conv<kernel_shape=[{shape}], pads=[{pads}], group=4>(x, w, b)"


def _norms() -> Iterator[str]:
    for dims in ("2,3", "2,3,5", "2,3,4,5", "1,3,2,4,5"):
        yield f"BatchNormalization: x[{dims}] w=(3) b=(3) m=(3) v=abs(3) -> BatchNormalization<epsilon=0.001>(x, w, b, m, v)"
        if dims != "2,3":
            yield f"InstanceNormalization: x[{dims}] w=(3) b=(3) -> InstanceNormalization(x, w, b)"
            yield f"InstanceNormalization: x[{dims}] w[3] b[3] -> InstanceNormalization(x, w, b)"
            yield f"GroupNormalization: x[{dims}] w=(3) b=(3) -> @21 GroupNormalization<num_groups=3>(x, w, b)"
    for dims in _DIMS[1:]:
        rank = dims.count(",") + 1
        for at in range(-rank, rank):
            own = ",".join(dims.split(",")[at:])
            for bias in ("", f" b=({own})"):
                yield f"LayerNormalization: x[{dims}] w=({own}){bias} -> @17 LayerNormalization<axis={at}>(x, w{', b' if bias else ''})"
    yield "MeanVarianceNormalization: x[2,3,4,5] -> MeanVarianceNormalization<axes=[0,2,3]>(x)"
    yield "MeanVarianceNormalization: x[2,3,4,5] -> MeanVarianceNormalization<axes=[2,3]>(x)"
    for dims, size in product(("1,6,4,4", "2,6,5", "1,6,2,3,4"), (3, 5)):
        yield f"LRN: x[{dims}] -> LRN<size={size}>(x)"


def _resized() -> Iterator[str]:
    coordinates = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    targets = (
        (3, ("2.0", "0.5", "1.5")),
        (4, ("2.0,2.0", "0.5,0.5", "1.5,2.5", "1.0,2.0")),
        (5, ("2.0,2.0,2.0", "0.5,0.5,0.5")),
    )
    for rank, factors in targets:
        dims = ",".join(["1", "2", "6", "8", "4"][:rank])
        for scales, mode, coordinate in product(factors, ("nearest", "linear", "cubic"), coordinates):
            roundings = (
                ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil") if mode == "nearest" else ("",)
            )
            for rounding in roundings:
                more = f', nearest_mode="{rounding}"' if rounding else ""
                own = f'mode="{mode}", coordinate_transformation_mode="{coordinate}"{more}'
                sizes = [
                    int(int(dim) * float(by))
                    for dim, by in zip(dims.split(",")[2:], scales.split(","), strict=True)
                ]
                if mode != "cubic" or rank == 4:
                    yield f"Resize: x[{dims}] s={{{{1.0,1.0,{scales}}}}} -> Resize<{own}>(x, , s)"
                    yield f"Resize: x[{dims}] s={{1,2,{','.join(map(str, sizes))}}} -> Resize<{own}>(x, , , s)"
    yield 'Resize: x[2,3,6,8] s={{1.0,1.0,2.0,2.0}} -> Resize<mode="nearest">(x, , s)'
    yield 'Resize: x[2,3,6,8] s={{2.0,2.0}} -> @18 Resize<mode="linear", axes=[2,3]>(x, , s)'
    yield 'Resize: x[2,3,6,8] s={12,16} -> @18 Resize<mode="linear", axes=[2,3]>(x, , , s)'
    yield 'Resize: x[2,3,6,8] s={{1.0,1.0,0.5,0.5}} -> @18 Resize<mode="linear", antialias=1>(x, , s)'
    yield 'Resize: x[2,3,6,8] s={{2.0,2.0,1.0,1.0}} -> Resize<mode="nearest">(x, , s)'
    yield 'Resize: x[2,6,8,3] s={{1.0,2.0,2.0,1.0}} -> Resize<mode="nearest">(x, , s)'
    yield 'Resize: x[6,8] s={{2.0,2.0}} -> Resize<mode="nearest">(x, , s)'
    yield 'Resize: x[6,8] s={{2.0,2.0}} -> Resize<mode="linear">(x, , s)'


def _padded() -> Iterator[str]:
    for dims in _DIMS[1:]:
        rank = dims.count(",") + 1
        for mode, (begin, end) in product(("constant", "edge", "reflect"), ((0, 1), (1, 0), (1, 1), (2, 1))):
            at = [0] * (rank - 1)
            own = ",".join(map(str, [*at, begin, *at, end]))
            yield f'Pad: x[{dims}] p={{{own}}} -> Pad<mode="{mode}">(x, p)'
            yield f'Pad: x[{dims}] -> @9 Pad<mode="{mode}", pads=[{own}]>(x)'
        ones = ",".join("1" * 2 * rank)
        yield f"Pad: x[{dims}] p={{{ones}}} v=0.5 -> Pad(x, p, v)"
        yield f"Pad: x[{dims}]int64 p={{{ones}}} -> Pad(x, p)"
    yield "Pad: x[2,3,4,5] p={1,0,1,2} a={2,3} -> @18 Pad(x, p, , a)"
    yield "Pad: x[2,3,4,5] p={0,0,-1,0,0,0,0,-2} -> Pad(x, p)"


def _other() -> Iterator[str]:
    for operator in ("Abs", "Neg", "Sign", "Relu", "Clip"):
        for dims, kind in product(_DIMS, _TYPED):
            if operator == "Relu" or (operator == "Clip" and kind == "int32"):
                continue
            bounds = (" lo=int(0) hi=int(1)", ", lo, hi") if operator == "Clip" else ("", "")
            yield f"{operator}: x[{dims}]{kind}{bounds[0]} -> {operator}(x{bounds[1]})"
    for dims in _DIMS:
        yield f"Not: x[{dims}]bool -> Not(x)"
        yield f"LeakyRelu: x[{dims}] -> LeakyRelu<alpha=0.2>(x)"
        yield f"HardSigmoid: x[{dims}] -> HardSigmoid<alpha=0.1667>(x)"
        yield f"HardSwish: x[{dims}] -> @14 HardSwish(x)"
        yield f"Gelu: x[{dims}] -> @20 Gelu(x)"
        yield f'Gelu: x[{dims}] -> @20 Gelu<approximate="tanh">(x)'
        yield f"Identity: x[{dims}] -> Identity(x)"
        yield f"Dropout: x[{dims}] -> Dropout(x)"
        yield f"IsInf: x[{dims}] -> IsInf(x)"
        for low, high in ((" lo=0.0", ""), ("", " hi=0.5"), (" lo=-0.5", " hi=0.5"), (" lo=-0.1", " hi[]")):
            yield f"Clip: x[{dims}]{low}{high} -> Clip(x, {'lo' if low else ''}{', hi' if high else ''})"
        yield f"Clip: x[{dims}] -> @6 Clip<min=0.0, max=6.0>(x)"
        yield f"Shape: x[{dims}] -> Shape(x)"
        yield f"Shape: x[{dims}] -> Cast<to=1>($shape)"
        yield f"NonZero: x[{dims}]bool -> NonZero(x)" if dims else ""
        yield f"Trilu: x[{dims}] -> @14 Trilu(x)" if "," in dims else ""
        yield f"Trilu: x[{dims}] k=int(1) -> @14 Trilu<upper=0>(x, k)" if "," in dims else ""
    for block, mode, batch in product((2, 3), ("DCR", "CRD"), (1, 2)):
        yield f'DepthToSpace: x[{batch},{2 * block * block},3,4] -> DepthToSpace<blocksize={block}, mode="{mode}">(x)'
        yield f"SpaceToDepth: x[{batch},2,{block * 2},{block * 3}] -> SpaceToDepth<blocksize={block}>(x)"
    for mode, padding, corners in product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (0, 1)):
        own = f'mode="{mode}", padding_mode="{padding}", align_corners={corners}'
        yield f"GridSample: x[2,2,5,6] g[2,3,4,2] -> @16 GridSample<{own}>(x, g)"
    for direction, batch, layout in product(("forward", "reverse", "bidirectional"), (1, 2), (0, 1)):
        n = 2 if direction == "bidirectional" else 1
        x = f"{batch},5,3" if layout else f"5,{batch},3"
        first = f"{batch},{n},4" if layout else f"{n},{batch},4"
        own = f'hidden_size=4, direction="{direction}"' + (", layout=1" if layout else "")
        at = "@14 " if layout else ""
        for operator, gates in (("LSTM", 16), ("GRU", 12), ("RNN", 4)):
            weights = f"w=({n},{gates},3) r=({n},{gates},4) b=({n},{2 * gates})"
            outputs = ":3 " if operator == "LSTM" else ":2 "
            cell = ", c" if operator == "LSTM" else ""
            yield f"{operator}: x[{x}] {weights} -> {at}{outputs}{operator}<{own}>(x, w, r, b)"
            yield f"{operator}: x[{x}] w=({n},{gates},3) r=({n},{gates},4) -> {at}{operator}<{own}>(x, w, r)"
            states = f"h[{first}]" + (f" c[{first}]" if cell else "")
            yield f"{operator}: x[{x}] {weights} {states} -> {at}{outputs}{operator}<{own}>(x, w, r, b, , h{cell})"
            if operator == "GRU":
                yield f"{operator}: x[{x}] {weights} -> {at}{outputs}{operator}<{own}, linear_before_reset=1>(x, w, r, b)"


def _behind() -> Iterator[str]:
    """Yield what reads the output of a pool, whose layout of memory is another one in some runtimes."""
    for line in (
        "s={2,-1} -> Reshape($pooled, s)", "s={-1,5} -> Reshape($pooled, s)", "-> Flatten($pooled)", "a={0} -> Unsqueeze($pooled, a)",
        "-> Transpose<perm=[0,2,3,1]>($pooled)", "-> Transpose<perm=[0,3,1,2]>($pooled)", "-> Transpose<perm=[1,0,2,3]>($pooled)",
        "-> Softmax<axis=1>($pooled)", "-> Softmax<axis=-1>($pooled)", "-> Softmax<axis=2>($pooled)", "-> ReduceMean<axes=[1]>($pooled)",
        "-> ReduceMean<axes=[2,3], keepdims=0>($pooled)", "-> ReduceMax<axes=[1], keepdims=0>($pooled)", "-> ArgMax<axis=1>($pooled)",
        "-> ArgMax<axis=1, keepdims=0>($pooled)", "-> ArgMax<axis=-1>($pooled)", "a={2,3} -> ReduceSum($pooled, a)",
        "i={0,2} -> Gather<axis=1>($pooled, i)", "i=0 -> Gather<axis=0>($pooled, i)", "i=1 -> Gather<axis=2>($pooled, i)",
        "-> :3 Split<axis=1>($pooled)", "s={1,3} -> :2 Split<axis=2>($pooled, s)", "y[2,3,4,5] -> Concat<axis=1>($pooled, y)",
        "y[2,3,4,5] -> Concat<axis=0>($pooled, y)", "y[2,3,4,5] -> Concat<axis=3>(y, $pooled)", "y=(3,1,1) -> Add($pooled, y)",
        "y=(5) -> Add($pooled, y)", "y[5] -> Mul($pooled, y)", "y[2,3,1,1] -> Mul($pooled, y)", "y[1] -> Sub(y, $pooled)",
        "y=0.5 -> Div(y, $pooled)", "y=2.0 -> Pow($pooled, y)", "y[2,3,4,5] -> Where<>($positive, $pooled, y)", "s={1} e={3} a={1} -> Slice($pooled, s, e, a)",
        "s={0} e={9} a={2} t={2} -> Slice($pooled, s, e, a, t)", "p={0,1,0,0,0,0,1,1} -> Pad($pooled, p)", "p={0,0,1,1,0,0,1,1} -> Pad<mode=\"reflect\">($pooled, p)",
        "s={2,3,2,10} -> Reshape($pooled, s)", "s={4,3,4,5} -> Expand<>($first, s)", "r={1,1,2,2} -> Tile($pooled, r)", "y[5,2] -> MatMul($pooled, y)",
        "y=(5,2) -> MatMul($pooled, y)", "y[2,3,5,4] -> MatMul($pooled, y)", "y=(2,4) -> MatMul(y, $pooled)", "w=(5) b=(5) -> @17 LayerNormalization($pooled, w, b)",
        "w=(3) b=(3) -> InstanceNormalization($pooled, w, b)", "w=(3) b=(3) m=(3) v=abs(3) -> BatchNormalization($pooled, w, b, m, v)",
        "w=(3,1,1) -> PRelu($pooled, w)", "w=(1) -> PRelu($pooled, w)", "lo=0.0 hi=0.5 -> Clip($pooled, lo, hi)", "-> Shape($pooled)", "-> Cast<to=7>($pooled)",
        "k={2} -> :2 TopK<axis=1>($pooled, k)", "k={2} -> :2 TopK<axis=-1>($pooled, k)", "a=int(1) -> CumSum($pooled, a)", "y=0.1 -> Greater($pooled, y)",
        "y=(3,1,1) -> Less($pooled, y)", "-> LpNormalization<axis=1>($pooled)", "-> LogSoftmax<axis=1>($pooled)", "-> Erf($pooled)", "-> Identity($pooled)",
    ):  # fmt: skip
        operator = line.partition("-> ")[2].lstrip(":0123456789@ ").partition("<")[0].partition("(")[0]
        yield f"{operator}: x[2,3,4,5] {line.replace('<>', '')}"
