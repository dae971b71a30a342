"""The grid of nodes, drawn at random with fixed seeds, on which the oracle is compared with ONNX Runtime."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.resize.oracle import Spec, output_lengths

__all__ = ["Point", "grid", "node_model", "point_model"]

F = np.float32
COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
IR = {7: 3, 9: 4, 10: 5, 11: 6, 13: 7, 18: 8, 19: 9}
DTYPES = {
    "nearest": ("float32", "float16", "int8", "uint8", "int32"),
    "linear": ("float32", "uint8", "int32"),
    "cubic": ("float32",),
}
SCALES = (0.25, 0.3, 0.5, 0.6, 0.7, 1.0, 1.04, 1.1, 1.3, 1.5, 1.8, 2.0, 2.5, 3.0)


@dataclass(frozen=True)
class Point:
    """One node and the input it is run on."""

    spec: Spec
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...] | None = None
    sizes: tuple[int, ...] | None = None

    def feed(self) -> np.ndarray[Any, Any]:
        """The input: signed where the type is, and without repetition where that can be."""
        rng = np.random.default_rng(abs(hash(self.shape)) % 2**32)
        values = rng.permutation(int(np.prod(self.shape))).reshape(self.shape)
        kind = np.dtype(self.dtype)
        if kind.kind == "f":
            return (values * F(0.37) - F(9)).astype(kind)
        return (values % 120 - (0 if kind.kind == "u" else 60)).astype(kind)


def node_model(
    opset: int,
    node: onnx.NodeProto,
    shape: Any,
    dtype: int,
    extra: dict[str, np.ndarray[Any, Any]],
    rank: int,
) -> onnx.ModelProto:
    """Return a model of one node that takes `x`, and initializers, to `y`."""
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", dtype, [f"d{axis}" for axis in range(rank)])],
        [numpy_helper.from_array(value, name) for name, value in extra.items()],
    )
    if IR.get(opset, 8) < 4:
        for tensor in graph.initializer:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR.get(opset, 8)
    )


def point_model(point: Point, shape: Any = None) -> onnx.ModelProto:
    """Return the model of a point; `shape` declares another one for the input."""
    spec, version = point.spec, point.spec.version
    attributes: dict[str, Any] = {"mode": spec.mode}
    extra: dict[str, np.ndarray[Any, Any]] = {}
    if version >= 10 or version == 9:
        extra = {"scales": np.array(point.scales or (), F)}
    inputs = ["x", "scales"]
    if version == 7:
        attributes["scales"] = [float(F(scale)) for scale in point.scales or ()]
        inputs = ["x"]
    if version >= 11:
        attributes |= {
            "coordinate_transformation_mode": spec.coordinates,
            "extrapolation_value": spec.extrapolation_value,
        }
        if spec.mode == "nearest":
            attributes["nearest_mode"] = spec.nearest
        if spec.mode == "cubic":
            attributes |= {"cubic_coeff_a": spec.cubic_coeff_a, "exclude_outside": int(spec.exclude_outside)}
        extra["roi"] = np.array(spec.roi, F)
        inputs = ["x", "roi", "scales"]
        if point.sizes is not None:
            extra["sizes"] = np.array(point.sizes, np.int64)
            inputs.append("sizes")
        if version >= 13:
            inputs = [name if name == "x" or extra[name].size else "" for name in inputs]
            extra = {name: value for name, value in extra.items() if value.size}
    operator = "Upsample" if version < 10 else "Resize"
    node = helper.make_node(operator, inputs, ["y"], name="node", **attributes)
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(point.dtype))
    return node_model(version, node, shape or point.shape, dtype, extra, len(point.shape))


def grid(count: int, seed: int = 0) -> Iterator[Point]:
    """Yield `count` points that ONNX Runtime's kernels can run."""
    rng = random.Random(seed)
    while count:
        point = _draw(rng)
        if point is not None:
            count -= 1
            yield point


def _draw(rng: random.Random) -> Point | None:
    version = rng.choice((7, 9, 10, 10, 11, 11, 13, 18, 19))
    mode = rng.choice(
        ("nearest", "nearest", "linear") if version < 11 else ("nearest", "nearest", "linear", "cubic")
    )
    dtype = rng.choice(DTYPES[mode])
    coordinates = rng.choice(COORDINATES + (("half_pixel_symmetric",) if version >= 19 else ()))
    if version >= 13 and coordinates == "tf_half_pixel_for_nn":
        coordinates = "half_pixel"
    rank = rng.choice({"nearest": (1, 2, 3, 4, 4, 5, 6), "linear": (2, 3, 4, 4, 5), "cubic": (2, 4)}[mode])
    shape = tuple(rng.randint(1, 3 if rank > 4 else 7) for _ in range(rank))
    pool = [scale for scale in SCALES if version >= 10 or scale >= 1]
    scales = [rng.choice(pool) for _ in range(rank)]
    if mode != "nearest" and rank > 3:
        scales[0] = scales[1] = 1.0
        if mode == "linear" and rank == 4 and rng.random() < 0.25 and dtype == "float32":
            scales[1], scales[3] = scales[2], 1.0
    if version >= 11 and coordinates == "tf_crop_and_resize":
        starts = [rng.choice((0.0, 0.1, 0.25, -0.2)) for _ in range(rank)]
        roi = (*starts, *(start + rng.choice((0.5, 0.75, 1.0, 1.3)) for start in starts))
    else:
        roi = ()
    spec = Spec(
        version,
        mode,
        coordinates if version >= 11 else "asymmetric",
        rng.choice(NEAREST) if version >= 11 else "round_prefer_floor",
        rng.choice((-0.75, -0.5)),
        mode == "cubic" and rng.random() < 0.3,
        rng.choice((0.0, 3.0)),
        roi,
    )
    out = output_lengths(shape, scales)
    if 0 in out:
        return None
    if version >= 11 and rng.random() < 0.4:
        return Point(spec, shape, dtype, sizes=tuple(out))
    return Point(spec, shape, dtype, scales=tuple(float(F(scale)) for scale in scales))
