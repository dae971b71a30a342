"""GridSample, AffineGrid, RoiAlign, NonMaxSuppression and what else looks at images, downwards."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import impossible, lowering
from onnx_migrate.errors import InvalidModel
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, unsqueeze
from .folding import Folding, Operand
from .grid_taps import write_grid_taps

impossible(
    "ImageDecoder",
    20,
    why="no operator below opset 20 decodes images",
    hint="decode in front of the model",
)
impossible(
    "NonMaxSuppression",
    10,
    why="no operator below opset 10 chooses boxes by their overlap",
    hint="choose the boxes behind the model",
)
impossible(
    "RoiAlign",
    10,
    why="no operator below opset 10 averages over regions of interest that are computed at run time",
    hint="bring the model to opset 10",
)
_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
_NEW_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


@lowering("GridSample", leaves=20)
def grid_sample_20_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The modes linear and cubic are called bilinear and bicubic, and images have two spatial axes.

    What changes: `mode` is set. With three spatial axes GridSample is written as Gathers, see version 16.

    Why equal: with two spatial axes only the names changed (onnx/defs/tensor/old.cc).

    Limits: the rank must be known.
    """
    kind = str(rw.get("mode", "linear"))
    if rw.need_rank(rw.input(0)) == 4:
        rw.set("mode", _OLD_MODES[kind])
        return
    write_grid_taps(rw, kind)


@lowering("GridSample", leaves=16)
def grid_sample_16_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """GridSample becomes Gathers of the elements around each point of the grid, weighed and added.

    What changes: coordinates are computed from the grid, rounded down and, by padding mode, clamped, mirrored or marked as
    outside; the elements there are gathered by their number in the flattened image.

    Why equal: the arithmetic and its order are those of ONNX Runtime's kernel (grid_sample.cc). Bit for bit.

    Limits: the rank and the element type must be known. Where numbers of the grid are not finite, or beyond the integers
    that a float holds, the result is another number, as the kernel's is not defined either.
    """
    write_grid_taps(rw, _NEW_MODES[str(rw.get("mode", "bilinear"))])


@lowering("AffineGrid", leaves=20, exactness=Exactness.EQUIVALENT)
def affine_grid_20_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """AffineGrid becomes the product of its matrices and a grid of even steps from -1 to 1.

    What changes: for each axis the steps are computed, from `size` if that is constant; each column of theta is
    multiplied by the steps along its axis, and the last one added.

    Why equal: a point of the grid is theta times the point's coordinates and 1 (onnx/defs/tensor/defs.cc). 2.4e-7 of
    elements up to 4 measured.

    Limits: the number of axes must be known, by the shape of `size` or theta.
    """
    theta, size = rw.input(0), rw.input(1)
    rows, sizes = rw.shape(theta), rw.shape(size)
    count = sizes[0] - 2 if sizes and sizes[0] is not None else rows[1] if rows and len(rows) > 1 else None
    if count is None:
        rw.refuse(
            f"the number of spatial axes, which the shape of {size!r} tells, is unknown",
            code="needs-shape",
            hint=f"declare the shape of {size!r}",
        )
    if count not in (2, 3):
        raise InvalidModel(f"has {count:,} spatial axes, and AffineGrid has 2 or 3", code="invalid-node")
    f = Folding(rw)
    real = rw.need_dtype(theta)
    wide = real if real in (TensorProto.FLOAT, TensorProto.DOUBLE) else TensorProto.FLOAT
    matrix = cast(rw, theta, wide)
    lengths = rw.known(size)
    total = ""
    for column in range(count + 1):
        at = rw.constant(np.array(column, np.int64), "column")
        part = rw.before("Gather", [matrix, at], hint="column", axis=2)
        part = unsqueeze(rw, part, list(range(1, count + 1)))
        if column < count:
            place = count + 1 - column  # theta's columns begin with the last axis
            length: Operand = (
                lengths.reshape(-1)[place : place + 1]
                if lengths is not None
                else rw.before("Gather", [size, rw.constant(np.array([place], np.int64), "axis")], axis=0)
            )
            steps = f.cast(_even_steps(f, length, corners=bool(rw.get("align_corners", 0))), wide)
            part = rw.before("Mul", [part, f.name(f.shaped(steps, column + 1), "steps")], hint="part")
        total = rw.before("Add", [total, part], hint="grid") if total else part
    if real != wide:
        total = rw.before("Cast", [total], hint="grid", to=real)
    rw.preceding[-1].output[0] = rw.output(0)
    rw.remove()


def _even_steps(f: Folding, length: Operand, *, corners: bool) -> Operand:
    """Return as many numbers as the length says, from -1 to 1; without corners, the middles of such steps."""
    one = np.array([1], np.float32)
    real = f.cast(length, TensorProto.FLOAT)
    last = f("Sub", real, one)
    step = f("Div", one + one, f("Max", last, one))
    down = f("Sub", last, f.iota(length))
    steps = f("Sub", one, f("Mul", down, step))
    return steps if corners else f("Div", f("Mul", steps, last), real)


@lowering("RoiAlign", leaves=16)
def roi_align_16_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`coordinate_transformation_mode` does not exist: regions are taken as with output_half_pixel.

    What changes: the attribute is dropped. For half_pixel, constant regions are moved by half an element.

    Why equal: half_pixel subtracts 0.5 from the scaled region, and only output_half_pixel makes regions at least 1 wide and
    high (ONNX Runtime's roialign.cc).

    Limits: half_pixel needs constant regions that are at least 1 wide and high when scaled.
    """
    if rw.pop("coordinate_transformation_mode", "half_pixel") == "output_half_pixel":
        return
    scale = float(rw.get("spatial_scale", 1.0))
    rois = rw.need_constant(1, "rois")
    spans = (rois[:, 2:] - rois[:, :2]) * rois.dtype.type(scale)
    if not bool((spans >= 1).all()):
        rw.refuse(
            "coordinate_transformation_mode=half_pixel does not exist below opset 16, and regions narrower than 1 element"
            " are made wider there",
            code="no-equal",
            hint="bring the model to opset 16",
        )
    moved = rois - rois.dtype.type(0.5 / scale)
    rw.set_input(1, rw.constant(moved, "rois"))
    rw.note("its regions are moved by half an element, as half_pixel does", Exactness.EQUIVALENT)
