"""Makes the tables of docs/resize.md, from the oracle and from what the tool writes.

python -m tests.resize.tables      # from the root: writes them again
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np
import onnx

from tests.harness import model
from tests.resize.oracle import Spec, index_map, output_lengths, resize
from tests.steps import lift
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "resize.md"

F = np.float32


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _nearest(length: int, scale: float, specs: Iterable[tuple[str, Spec]]) -> str:
    out = output_lengths([length], [scale])[0]
    head = ["output element", *map(str, range(out))]
    maps = ((name, index_map(spec, F(scale), length, out)) for name, spec in specs)
    return table(head, [[name, *map(str, found.tolist())] for name, found in maps])


UPSAMPLE = ("Upsample 7, 9", Spec(9))
RESIZE_10 = ("Resize 10", Spec(10))
DEFAULT = ("Resize 11 and later, no attribute", Spec(13))
FLOOR = ("… `asymmetric`, `floor`", Spec(13, coordinates="asymmetric", nearest="floor"))
CEIL = ("… `asymmetric`, `ceil`", Spec(13, coordinates="asymmetric", nearest="ceil"))


def doubled() -> str:
    return _nearest(3, 2, [UPSAMPLE, RESIZE_10, DEFAULT, FLOOR])


def grown() -> str:
    return _nearest(5, 1.4, [UPSAMPLE, RESIZE_10, DEFAULT, FLOOR])


def shrunk() -> str:
    return _nearest(
        10, 0.4, [("Upsample 7, 9 (no runtime runs it)", Spec(9)), RESIZE_10, DEFAULT, FLOOR, CEIL]
    )


def half_pixel_for_nn() -> str:
    specs = [
        (f"`{coordinates}`, `{nearest}`", Spec(11, coordinates=coordinates, nearest=nearest))
        for coordinates, nearest in (
            ("tf_half_pixel_for_nn", "floor"),
            ("half_pixel", "round_prefer_ceil"),
            ("tf_half_pixel_for_nn", "ceil"),
        )
    ]
    return _nearest(4, 2, specs)


def linear() -> str:
    ramp = np.arange(4, dtype=F).reshape(1, 4) * 10
    rows = []
    for name, spec in (
        ("Upsample 7, 9 and Resize 10", Spec(10, "linear")),
        ("Resize 11 and later, no attribute (`half_pixel`)", Spec(13, "linear")),
        ("… `asymmetric`", Spec(13, "linear", "asymmetric")),
        ("… `align_corners`", Spec(13, "linear", "align_corners")),
    ):
        values = resize(ramp, spec, scales=(1, 2))[0]
        rows.append([name, *(f"{value:.4g}" for value in values)])
    return table(["output element", *map(str, range(8))], rows)


def scales_or_sizes() -> str:
    ramp = np.arange(5, dtype=F).reshape(1, 5)
    by_scales = resize(ramp, Spec(13, "linear"), scales=(1, 1.5))[0]
    by_sizes = resize(ramp, Spec(13, "linear"), sizes=(1, 7))[0]
    rows = [
        ["scales [1, 1.5]", *(f"{value:.3g}" for value in by_scales)],
        ["sizes [1, 7]", *(f"{value:.3g}" for value in by_sizes)],
    ]
    return table(["output element", *map(str, range(7))], rows)


def lengths() -> str:
    rows = []
    for length, out in ((5, 9), (13, 25), (7, 31), (706, 224), (10, 13)):
        scale = F(out) / F(length)
        rows.append([str(length), f"float32({out}/{length})", str(output_lengths([length], [scale])[0])])
        rows[-1].append(str(int(float(scale) * length)))
    return table(
        ["length", "scale", "length when run (float32)", "length that onnx ≥ 1.22 infers (float64)"], rows
    )


def copied() -> str:
    moved, kept = Spec(10), np.arange(10)
    one = index_map(moved, F(1.05), 10, 10)
    rows = [["scales [1.05, 0.5]", *map(str, one.tolist())], ["scales [1.05, 1]", *map(str, kept.tolist())]]
    return table(["element of the axis by 1.05", *map(str, range(10))], rows)


FORMS = (
    ("Upsample 7, 8", 7, "y = Upsample<mode = MODE, scales = [1.0, 2.0]>(x)"),
    ("Upsample 9", 9, "y = Upsample<mode = MODE>(x, s)"),
    ("Resize 10, nothing shrinks", 10, "y = Resize<mode = MODE>(x, s)"),
    ("Resize 10, nothing grows", 10, "y = Resize<mode = MODE>(x, down)"),
    ("Resize 10, one shrinks, one grows", 10, "y = Resize<mode = MODE>(x, both)"),
    ("Resize 10, one grows by less than 1.5", 10, "y = Resize<mode = MODE>(x, barely)"),
    ("Resize 10, scales at run time", 10, "y = Resize<mode = MODE>(x, given)"),
    ("Resize 11 by scales", 11, "y = Resize<mode = MODE>(x, roi, s)"),
    ("Resize 11 by sizes", 11, "y = Resize<mode = MODE>(x, e, e, n)"),
    ("Resize 11, one tensor as roi and scales", 11, "y = Resize<mode = MODE>(x, s, s)"),
    (
        "Resize 11, tf_crop_and_resize",
        11,
        'y = Resize<mode = MODE, coordinate_transformation_mode = "tf_crop_and_resize">(x, roi, s)',
    ),
    (
        "Resize 11, tf_half_pixel_for_nn",
        11,
        "y = Resize<mode = MODE,"
        ' coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "floor">(x, e, s)',
    ),
    (
        "Resize 11, tf_half_pixel_for_nn, rounded up",
        11,
        "y = Resize<mode = MODE,"
        ' coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "ceil">(x, e, broken)',
    ),
)


def rewrites() -> str:
    rows = []
    for name, opset, call in FORMS:
        result, log = lift(source(opset, call), 13)
        nodes = "<br>".join(_short(result, node) for node in result.graph.node)
        rows.append([name, nodes, log.changes[0].exactness.value if log.changes else "unchanged"])
    return table(["nearest, from", "to, at opset 13 and later", "how exact"], rows)


def source(opset: int, call: str) -> onnx.ModelProto:
    """Return a model of one node of an older form, on a matrix of 9 by 10."""
    inputs = ", float[2] given" if "given" in call else ""
    return model(f"""{opset} (float[9,10] x{inputs}) => (float[a,b] y)
<float[2] s = {{1., 2.}}, float[2] down = {{0.5, 1.}}, float[2] both = {{0.5, 2.}},
 float[2] barely = {{0.5, 1.05}}, float[2] broken = {{1., 0.6}}, float[4] roi = {{0., 0., 1., 1.}},
 float[0] e = {{}}, int64[2] n = {{9, 20}}> {{
  {call.replace("MODE", '"nearest"')}
}}""")


def _short(proto: onnx.ModelProto, node: onnx.NodeProto) -> str:
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}

    def shown(name: str) -> str:
        if name in constants:
            value = constants[name]
            if value.ndim == 0:
                return str(value)
            return f"[{', '.join('…' if item > 2**60 else f'{item:g}' for item in value.tolist())}]"
        return name.rpartition("_y_")[2] or "''"

    words = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    said = [
        words[name].decode() for name in ("coordinate_transformation_mode", "nearest_mode") if name in words
    ]
    return f"`{node.op_type}({', '.join(map(shown, node.input))}) {' '.join(said)}`".replace(" `", "`")


TABLES: dict[str, Callable[[], str]] = {
    maker.__name__: maker
    for maker in (
        doubled,
        grown,
        shrunk,
        linear,
        half_pixel_for_nn,
        scales_or_sizes,
        lengths,
        copied,
        rewrites,
    )
}


def filled(text: str) -> str:
    """Return the page with every table generated again."""

    def put(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- table: {name} -->\n{TABLES[name]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end -->", put, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
