"""GridSample, AffineGrid, RoiAlign, NonMaxSuppression and other operators on images."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.formula import EQUIVALENT, FLOATS, Op, TensorProto, Value, formula
from onnx_migrate.errors import InvalidModel
from onnx_migrate.plugins import (
    Exactness,
    LoweringRewriter,
    Rewriter,
    adapter,
    compatible,
    impossible,
    lowering,
)

from .image_sampling import SampledAxis, Sampler, channel_rows

compatible(
    "NonMaxSuppression",
    11,
    reason="only the description changed: boxes with an overlap above iou_threshold are dropped",
)

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
    hint=Advice("bring the model to opset 10", options={"opset": 10}),
)

_WIDE = (TensorProto.FLOAT, TensorProto.DOUBLE)

_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
_NEW_MODES = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}


@adapter("RoiAlign", to=16)
def roi_align_16(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`coordinate_transformation_mode` is set to output_half_pixel, the old behaviour; its default is half_pixel."""
    rw.set("coordinate_transformation_mode", "output_half_pixel")


@adapter("GridSample", to=20)
def grid_sample_20(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The modes bilinear and bicubic are renamed to linear and cubic."""
    mode = rw.get("mode", "bilinear")
    if mode in ("bilinear", "bicubic"):
        rw.set("mode", _NEW_MODES[mode])


@lowering("GridSample", leaves=20)
def grid_sample_20_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The modes linear and cubic are called bilinear and bicubic, and images have two spatial axes.

    What changes: `mode` is set. Gathers replace a GridSample with three spatial axes, see version 16.

    Why equal: with two spatial axes only the names changed (onnx/defs/tensor/old.cc).

    Limits: the rank must be known.
    """
    kind = str(rw.get("mode", "linear"))
    if rw.need_rank(rw.input(0)) == 4:
        rw.set("mode", _OLD_MODES[kind])
        return
    op = Op(rw)
    source, grid = op.input(0), op.input(1)
    assert source is not None
    assert grid is not None
    padding, corners = str(rw.get("padding_mode", "zeros")), int(rw.get("align_corners", 0))
    op.end(_sampled(op, source, grid, kind, padding, corners=bool(corners)))


@formula("GridSample", since=16)
def grid_sample(op: Op, x: Value, grid: Value, *, mode: str, padding_mode: str, align_corners: int) -> Value:
    """GridSample becomes Gathers of the elements around each point of the grid, weighed and added.

    What changes: nodes compute the coordinates from the grid and round them down. They clamp or mirror coordinates beyond the
    image, or mark them as outside, as the padding mode says. Gathers read the elements there by their number in the flattened
    image.

    Why equal: the arithmetic and its order are those of ONNX Runtime's kernel (grid_sample.cc). Bit for bit.

    Limits: the rank and the element type must be known. The result differs for grid numbers that are not finite or exceed the
    integers that a float holds. The kernel does not define its own result there either.
    """
    return _sampled(op, x, grid, _NEW_MODES[mode], padding_mode, corners=bool(align_corners))


def _sampled(op: Op, x: Value, grid: Value, kind: str, padding: str, *, corners: bool) -> Value:
    """Write a GridSample of mode `kind` (nearest, linear or cubic) with Gathers, weights and sums."""
    rank, dtype = x.need_rank(), x.need_dtype()
    if dtype not in FLOATS and kind != "nearest":
        op.refuse(
            f"GridSample does not exist below opset {op.version + 1}, and mode {kind} is computed of floats alone",
            code="no-equal",
            hint="cast its input to float in the model",
        )
    real = dtype if dtype in _WIDE else TensorProto.FLOAT
    if kind == "nearest" and grid.dtype in _WIDE:
        real = grid.need_dtype()
    moved = x.cast(dtype if kind == "nearest" else real)
    rows = channel_rows(op, moved, rank, op.size_of(x, 1))
    by_corner = rank == 4 and padding == "zeros" and not corners
    sampler = Sampler(op, real, rows, rank=rank, padding=padding, corners=corners, by_corner=by_corner)
    plane = _add_axes(sampler, x, grid.cast(real))
    if (x.shape or (None,))[0] != 1:
        sampler.set_images(op.size_of(x, 0), plane)
    value = {"nearest": sampler.nearest, "linear": sampler.linear, "cubic": sampler.cubic}[kind]()
    return op.Transpose(value.cast(dtype), perm=[0, rank - 1, *range(1, rank - 1)])


def _add_axes(sampler: Sampler, x: Value, grid: Value) -> Value:
    """Add the spatial axes; the grid has the coordinates of the innermost first. Returns the elements of an image."""
    op, unit, two = sampler.op, sampler.number(1), sampler.number(2)
    stride: Value | None = None
    for number in range(sampler.rank - 2):
        length = op.size_of(x, sampler.rank - 1 - number)
        real = length.cast(sampler.real)
        last = real - unit
        coordinate = op.Slice(grid, [number], [number + 1], [sampler.rank - 1]) + unit
        at = coordinate / two * last if sampler.corners else (coordinate * real - unit) / two
        sampler.axes.insert(0, SampledAxis(at, last, stride))
        stride = length if stride is None else stride * length
    return op.constant([1]) if stride is None else stride


@formula("AffineGrid", since=20, exactness=EQUIVALENT)
def affine_grid(op: Op, theta: Value, size: Value, *, align_corners: int) -> Value:
    """AffineGrid becomes the product of its matrices and a grid of even steps from -1 to 1.

    What changes: the steps along each axis are computed, from `size` if that is constant. Each column of theta is multiplied by
    the steps along its axis. The last column is added.

    Why equal: a point of the grid is theta times the point's coordinates and 1 (onnx/defs/tensor/defs.cc). The largest
    difference measured is 2.4e-7, for elements up to 4.

    Limits: the number of axes must be known, by the shape of `size` or theta.
    """
    rows, sizes = theta.shape, size.shape
    count = sizes[0] - 2 if sizes and sizes[0] is not None else rows[1] if rows and len(rows) > 1 else None
    if count is None:
        op.refuse(
            f"the number of spatial axes, which the shape of {size.name!r} tells, is unknown",
            code="needs-shape",
            hint=f"declare the shape of {size.name!r}",
        )
    if count not in (2, 3):
        raise InvalidModel(f"has {count:,} spatial axes, and AffineGrid has 2 or 3", code="invalid-node")
    dtype = theta.need_dtype()
    wide = dtype if dtype in _WIDE else TensorProto.FLOAT
    matrix, lengths, total = theta.cast(wide), size.constant, None
    for column in range(count + 1):
        part = op.Unsqueeze(op.Gather(matrix, column, axis=2), list(range(1, count + 1)))
        if column < count:
            column_index = count + 1 - column  # theta's columns begin with the last axis
            length = (
                op.Gather(size, [column_index], axis=0)
                if lengths is None
                else op.constant(lengths.reshape(-1)[column_index : column_index + 1])
            )
            steps = _even_steps(op, length, corners=bool(align_corners)).cast(wide)
            part = part * steps.reshape(-1, *[1] * (column + 1))
        total = part if total is None else total + part
    assert total is not None
    return total.cast(dtype)


def _even_steps(op: Op, length: Value, *, corners: bool) -> Value:
    """Return as many numbers as the length says, from -1 to 1; without corners, the middles of such steps."""
    unit = op.constant(np.array([1], np.float32))
    real = length.cast(TensorProto.FLOAT)
    last = real - unit
    step = (unit + unit) / op.Max(last, unit)
    steps = unit - (last - op.iota(length).cast(TensorProto.FLOAT)) * step
    return steps if corners else steps * last / real


@lowering("RoiAlign", leaves=16)
def roi_align_16_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`coordinate_transformation_mode` does not exist: RoiAlign-10 samples regions as output_half_pixel does.

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
            hint=Advice("bring the model to opset 16", options={"opset": 16}),
        )
    moved = rois - rois.dtype.type(0.5 / scale)
    rw.set_input(1, rw.constant(moved, "rois"))
    rw.note("its regions are moved by half an element, as half_pixel does", Exactness.EQUIVALENT)
