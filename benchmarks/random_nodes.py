"""Models of one node with random lengths and attributes, in the forms that exporters write, to measure releases with.

    python -m benchmarks.random_nodes FOLDER --count 1500 --seed 1
    python -m benchmarks.runtime_models opencv==4.8.1.78 --models FOLDER              # is what is said of them true?
    python -m benchmarks.runtime_operators opencv==4.8.1.78 --models FOLDER --add     # the forms learn of them

Node tests and published models have few lengths: that OpenCV 4.8 divides a reduction among threads from 1,536 on, and takes the
quotient of rounded lengths for the scale of a Resize, only others show. What is fed and what ONNX Runtime computes lies in
FOLDER/io.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from tests.campaigns.runtimes.sample import write_io

_OPSETS = (11, 11, 12, 13, 14, 16, 17, 18)
_FIRST = {"HardSwish": 14, "LayerNormalization": 17, "Mish": 18, "Gelu": 20, "Trilu": 14, "Einsum": 12}
"""The opsets with which operators begin, where that is one of these or later."""

_AXES_AS_INPUT = {"ReduceSum": 13, "Squeeze": 13, "Unsqueeze": 13}
"""The opset from which on `axes` is an input; 18 for other reductions."""

_LARGEST = 200_000
"""Elements of an input, about."""

_UNARY = (
    "Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Floor", "Ceil", "Erf", "Sin", "Cos", "Softplus", "Softsign", "Identity",
    "HardSwish", "Elu", "LeakyRelu", "HardSigmoid", "Selu", "Sqrt", "Log", "Reciprocal", "Sign", "Round", "Celu",
    "ThresholdedRelu", "Mish", "Gelu",
)  # fmt: skip
_REDUCTIONS = ("Mean", "Sum", "Max", "Min", "L1", "L2", "Prod", "SumSquare", "LogSumExp")

Array = np.ndarray[Any, Any]


@dataclass
class _Node:
    """An operator with what it is fed, the constants that follow, and its attributes; "axes" becomes what the opset wants."""

    operator: str
    fed: Sequence[Array]
    constants: Sequence[Array] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    axes: Sequence[int] | None = None


class _Draw:
    """Draws nodes; everything comes from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def one(self, *of: Any) -> Any:
        return self.random.choice(of)

    def floats(self, *shape: int) -> Array:
        return self.numbers.normal(0, 1, shape).astype(np.float32)

    def length(self) -> int:
        return int(self.one(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 17, 20, 24, 31, 32, 33, 48, 64))

    def channels(self) -> int:
        return int(self.one(1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 32, 64, 96, 128))

    def batch(self) -> int:
        return int(self.one(1, 1, 1, 1, 2, 3, 5))

    def shape(self) -> list[int]:
        shape = [self.batch(), *(self.length() for _ in range(self.one(1, 2, 2, 3, 3, 3, 4)))]
        while math.prod(shape) > _LARGEST:
            shape[self.random.randrange(1, len(shape))] = self.one(1, 2, 3, 4)
        return shape

    def image(self) -> list[int]:
        lengths = [
            self.one(3, 4, 5, 7, 8, 10, 13, 14, 16, 20, 28, 32, 40) for _ in range(self.one(1, 2, 2, 2, 3))
        ]
        return [self.batch(), self.channels(), *lengths]

    def axis(self, shape: Sequence[int]) -> int:
        return self.random.randrange(len(shape))

    def unary(self) -> _Node:
        operator = self.one(*_UNARY)
        x = self.floats(*self.shape())
        if operator in ("Sqrt", "Log", "Reciprocal"):
            x = np.abs(x) + np.float32(0.1)
        sloped = operator in ("Elu", "LeakyRelu", "Celu", "ThresholdedRelu") and self.one(True, False)
        return _Node(
            operator, [x], attributes={"alpha": round(self.random.uniform(0.05, 1.2), 2)} if sloped else {}
        )

    def binary(self) -> _Node:
        operator = self.one("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Add", "Mul")
        shape = self.shape()
        per_channel = [*shape[1:2], *[1] * (len(shape) - 2)]
        x = self.floats(*shape)
        if operator == "PRelu":
            return _Node(operator, [x], [np.abs(self.floats(*per_channel))])
        some = [dim if self.one(True, False) else 1 for dim in shape]
        y = self.floats(*self.one(shape, [], shape[-1:], [1, *per_channel], [1], some))
        if operator in ("Div", "Pow"):
            x, y = np.abs(x) + np.float32(0.1), np.abs(y) + np.float32(0.5)
        if self.one(True, False):
            return _Node(operator, [x], [y])
        return _Node(operator, [y, x] if self.one(True, False, False) else [x, y])

    def comparison(self) -> _Node:
        shape = self.shape()
        truth = [self.numbers.integers(0, 2, shape).astype(bool) for _ in range(2)]
        operator = self.one("Equal", "Greater", "Less", "Not", "And", "Where", "Mean", "Sum")
        numbers = [np.round(self.floats(*shape)) for _ in range(3)]
        fed = {
            "Not": truth[:1],
            "And": truth,
            "Where": [truth[0], *numbers[:2]],
            "Mean": numbers,
            "Sum": numbers,
        }
        return _Node(operator, fed.get(operator, numbers[:2]))

    def reduction(self) -> _Node:
        shape, operator = self.shape(), f"Reduce{self.one(*_REDUCTIONS)}"
        axes = sorted(self.random.sample(range(len(shape)), self.random.randint(1, len(shape) - 1)))
        x = self.floats(*shape) if operator != "ReduceProd" else self.numbers.uniform(0.9, 1.1, shape)
        from_the_end = [axis - len(shape) for axis in axes]
        keepdims = {"keepdims": self.one(0, 1)}
        return _Node(operator, [x.astype(np.float32)], (), keepdims, axes=self.one(axes, axes, from_the_end))

    def along_an_axis(self) -> _Node:
        shape = self.shape()
        operator, axis = (
            self.one("Softmax", "Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "TopK"),
            self.axis(shape),
        )
        if operator == "TopK":
            k = np.array([self.random.randint(1, shape[axis])])
            return _Node(
                operator, [self.floats(*shape)], [k], {"axis": axis, "largest": self.one(1, 1, 0)}, outputs=2
            )
        arg = operator.startswith("Arg")
        axis = axis if arg else self.one(-1, 1, len(shape) - 1, axis)
        return _Node(
            operator,
            [self.floats(*shape)],
            (),
            {"axis": axis, **({"keepdims": self.one(0, 1)} if arg else {})},
        )

    def convolution(self) -> _Node:
        x = self.image()
        spatial, channels, transposed = len(x) - 2, x[1], self.one(True, False, False)
        kernel = (
            [self.one(1, 2, 3, 3, 5, 7)] * spatial
            if self.one(True, True, False)
            else [self.one(1, 3, 5) for _ in x[2:]]
        )
        group = self.one(1, 1, 1, channels, 2 if channels % 2 == 0 else 1)
        ends = [self.one(0, size // 2, size // 2) for size in kernel]
        apart = [self.random.randrange(size) for size in (*kernel, *kernel)]
        stride = self.one(1, 1, 2, 3)
        attributes = {
            "strides": [stride] * spatial,
            "group": group,
            "pads": self.one(ends * 2, ends * 2, ends * 2, apart),
        }
        if self.one(True, True, True, False):
            attributes["kernel_shape"] = kernel
        results = group * self.one(1, 1, 2) if group > 1 else self.channels()
        if transposed and stride > 1 and self.one(True, False):
            attributes["output_padding"] = [1] * spatial
        elif not transposed:
            attributes["dilations"] = [self.one(1, 1, 1, 2)] * spatial
        shape = [channels, results // group] if transposed else [results, channels // group]
        constants = [self.floats(*shape, *kernel) * np.float32(0.3)]
        if self.one(True, True, False):
            constants.append(self.floats(results))
        return _Node("ConvTranspose" if transposed else "Conv", [self.floats(*x)], constants, attributes)

    def pool(self) -> _Node:
        x = self.floats(*self.image())
        operator = self.one(
            "MaxPool", "MaxPool", "AveragePool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"
        )
        if operator.startswith("Global"):
            return _Node(operator, [x])
        size, spatial = min(self.one(2, 2, 3, 3, 5), *x.shape[2:]), x.ndim - 2
        pads = [self.one(0, 0, size // 2)] * 2 * spatial
        attributes = {
            "kernel_shape": [size] * spatial,
            "strides": [self.one(1, 2, 2, 3)] * spatial,
            "pads": pads,
        }
        attributes["ceil_mode"] = self.one(0, 0, 1)
        if operator == "AveragePool":
            attributes["count_include_pad"] = self.one(0, 1)
        return _Node(operator, [x], (), attributes)

    def normalization(self) -> _Node:
        x, operator = (
            self.image(),
            self.one("BatchNormalization", "InstanceNormalization", "LayerNormalization", "LRN"),
        )
        if operator == "LRN":
            return _Node(
                operator,
                [self.floats(*x)],
                (),
                {"size": self.one(3, 5), "alpha": 1e-3, "beta": 0.75, "bias": 1.0},
            )
        if operator == "LayerNormalization":
            shape = self.shape()
            axis = self.one(-1, -1, len(shape) - 1, max(1, len(shape) - 2))
            weights = [self.floats(*shape[axis:]) for _ in range(self.one(1, 2, 2))]
            return _Node(operator, [self.floats(*shape)], weights, {"axis": axis, "epsilon": 1e-5})
        weights = [self.floats(x[1]) for _ in range(3)]
        if operator == "InstanceNormalization":
            return _Node(operator, [self.floats(*x)], weights[:2], {"epsilon": 1e-5})
        variance = np.abs(self.floats(x[1])) + np.float32(0.3)
        return _Node(
            operator, [self.floats(*self.one(x, x, x, x[:2]))], [*weights, variance], {"epsilon": 1e-5}
        )

    def resize(self) -> _Node:
        x = [self.batch(), self.one(1, 3, 8, 16), self.one(4, 5, 8, 13, 16), self.one(4, 5, 8, 16, 20)]
        mode, none = self.one("nearest", "nearest", "linear", "linear", "cubic"), np.zeros(0, np.float32)
        transformation = self.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        attributes = {"mode": mode, "coordinate_transformation_mode": transformation}
        if mode == "nearest":
            attributes["nearest_mode"] = self.one("floor", "round_prefer_floor", "ceil")
        if mode == "cubic":
            attributes["cubic_coeff_a"] = -0.75
        scale = self.one(0.25, 0.5, 0.5, 0.75, 1.25, 1.5, 2, 2, 2.5, 3, 4)
        scales = np.array([1, 1, scale, scale], np.float32)
        sizes = np.array([*x[:2], self.one(4, 7, 10, 16, 26, 32), self.one(4, 8, 10, 15, 32)])
        constants = self.one([none, scales], [none, scales], [none, none, sizes])
        return _Node("Resize", [self.floats(*x)], constants, attributes)

    def product(self) -> _Node:
        m, n, k, b, c = self.length(), self.length(), self.length(), self.batch(), self.one(1, 2, 4, 8)
        kind = self.one("Gemm", "Gemm", "MatMul", "MatMul", "MatMul", "Einsum")
        if kind == "Einsum":
            return _Node(kind, [self.floats(b, m, n), self.floats(b, n, k)], (), {"equation": "bij,bjk->bik"})
        if kind == "MatMul":
            left, right = self.one(
                ([m, n], [n, k]), ([b, m, n], [n, k]), ([b, m, n], [b, n, k]), ([b, c, m, n], [b, c, n, k])
            )
            fed = [self.floats(*left), self.floats(*right)]
            return _Node(kind, fed) if self.one(True, False) else _Node(kind, fed[:1], fed[1:])
        first, second = self.one(0, 0, 1), self.one(0, 1)
        constants = [self.floats(*([k, n] if second else [n, k])), self.floats(k)]
        attributes = {
            "transA": first,
            "transB": second,
            "alpha": self.one(1.0, 1.0, 0.5),
            "beta": self.one(1.0, 1.0, 2.0),
        }
        x = self.floats(*([n, m] if first else [m, n]))
        return _Node(kind, [x], constants[: self.one(1, 2, 2, 2)], attributes)

    def parts(self) -> _Node:
        shape, kind = (
            self.shape(),
            self.one("Concat", "Concat", "Slice", "Slice", "Split", "Gather", "GatherElements"),
        )
        axis = self.axis(shape)
        if kind == "Concat":
            others = [[*shape[:axis], self.length(), *shape[axis + 1 :]] for _ in range(self.one(1, 1, 2, 3))]
            fed = [self.floats(*own) for own in (shape, *others)]
            return _Node(kind, fed, (), {"axis": self.one(axis, axis - len(shape))})
        if kind == "Split":
            parts = (
                [self.one(1, 2, 4, 8)] * self.one(2, 3)
                if self.one(True, False)
                else [self.length(), self.length()]
            )
            x = self.floats(*shape[:axis], sum(parts), *shape[axis + 1 :])
            return _Node(kind, [x], [np.array(parts)], {"axis": axis}, outputs=len(parts))
        if kind == "Gather":
            shaped = self.one([], [1], [3], [2, 2])
            return _Node(
                kind, [self.floats(*shape)], [self.numbers.integers(0, shape[axis], shaped)], {"axis": axis}
            )
        if kind == "GatherElements":
            fed = [self.floats(*shape), self.numbers.integers(0, shape[axis], shape)]
            return _Node(kind, fed, (), {"axis": axis})
        start = self.random.randrange(shape[axis])
        step, end = self.one(1, 1, 2), self.one(self.random.randint(start + 1, shape[axis]), 2**63 - 1)
        if self.random.random() < 0.1:
            start, end, step = shape[axis] - 1, -shape[axis] - 1, -1
        return _Node(kind, [self.floats(*shape)], [np.array([value]) for value in (start, end, axis, step)])

    def layout(self) -> _Node:
        shape = self.shape()
        x, kind = (
            self.floats(*shape),
            self.one("Flatten", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Tile", "Transpose", "Pad"),
        )
        if kind == "Flatten":
            return _Node(kind, [x], (), {"axis": self.one(1, 1, 2, 0, len(shape) - 1)})
        if kind == "Unsqueeze":
            return _Node(kind, [x], axes=[self.random.randint(0, len(shape))])
        if kind == "Squeeze":
            axis = self.axis(shape)
            return _Node(kind, [self.floats(*shape[:axis], 1, *shape[axis + 1 :])], axes=[axis])
        if kind == "Transpose":
            return _Node(kind, [x], (), {"perm": self.random.sample(range(len(shape)), len(shape))})
        if kind == "Pad":
            pads, mode = [0] * 2 * len(shape), self.one("constant", "constant", "reflect", "edge")
            for axis in self.random.sample(range(len(shape)), self.one(1, 2)):
                pads[axis], pads[axis + len(shape)] = (
                    self.random.randint(0, min(3, shape[axis] - 1)) for _ in range(2)
                )
            value = [np.float32(self.one(0, 0, 1.5))] if mode == "constant" else []
            return _Node(kind, [x], [np.array(pads), *value], {"mode": mode})
        if kind == "Expand":
            axis = self.axis(shape)
            return _Node(kind, [self.floats(*shape[:axis], 1, *shape[axis + 1 :])], [np.array(shape)])
        merged = [0, *shape[1:-2], math.prod(shape[-2:])] if len(shape) > 2 else [0, 1, -1]
        given = (
            self.one([shape[0], -1], merged) if kind == "Reshape" else [self.one(1, 1, 2, 3) for _ in shape]
        )
        return _Node(kind, [x], [np.array(given)])

    def others(self) -> _Node:
        shape, kind = (
            self.shape(),
            self.one("Clip", "CumSum", "Trilu", "LpNormalization", "DepthToSpace", "SpaceToDepth"),
        )
        if kind in ("DepthToSpace", "SpaceToDepth"):
            block, channels, lengths = (
                self.one(2, 2, 3, 4),
                self.one(1, 2, 3, 8),
                [self.one(3, 4, 8), self.one(3, 5, 8)],
            )
            if kind == "SpaceToDepth":
                x = self.floats(self.batch(), channels, *(block * own for own in lengths))
                return _Node(kind, [x], (), {"blocksize": block})
            x = self.floats(self.batch(), channels * block**2, *lengths)
            return _Node(kind, [x], (), {"blocksize": block, "mode": self.one("DCR", "CRD")})
        given: dict[str, tuple[list[Array], dict[str, Any]]] = {
            "Clip": ([np.array(-0.5, np.float32), np.array(self.one(0.5, 6), np.float32)], {}),
            "CumSum": ([np.array(self.axis(shape))], {}),
            "Trilu": ([], {"upper": self.one(0, 1)}),
            "LpNormalization": ([], {"axis": self.one(1, -1), "p": 2}),
        }
        return _Node(kind, [self.floats(*shape)], *given[kind])


_KINDS: Sequence[tuple[Callable[[_Draw], _Node], int]] = (
    (_Draw.unary, 3), (_Draw.binary, 5), (_Draw.comparison, 2), (_Draw.reduction, 4), (_Draw.along_an_axis, 4),
    (_Draw.convolution, 9), (_Draw.pool, 5), (_Draw.normalization, 5), (_Draw.resize, 5), (_Draw.product, 6),
    (_Draw.parts, 8), (_Draw.layout, 10), (_Draw.others, 4),
)  # fmt: skip
"""What is drawn, and how often beside the rest."""


def _built(node: _Node, opset: int) -> onnx.ModelProto:
    """Return the model of a node at an opset, or at the first that has the operator. Raises onnx's errors where it has none."""
    opset = max(opset, _FIRST.get(node.operator, 0))
    attributes, constants = dict(node.attributes), list(node.constants)
    if node.axes is not None and opset >= _AXES_AS_INPUT.get(node.operator, 18):
        constants.append(np.array(node.axes))
    elif node.axes is not None:
        attributes["axes"] = list(node.axes)
    if node.operator == "Split" and opset < 13:
        attributes["split"] = constants.pop().tolist()
    fed = {f"x{at}": value for at, value in enumerate(node.fed)}
    held = {f"c{at}": value for at, value in enumerate(constants)}
    left_out = {
        name for name, value in held.items() if node.operator == "Resize" and not value.size and opset >= 13
    }
    outputs = [f"y{at}" for at in range(node.outputs)]
    names = [*fed, *("" if name in left_out else name for name in held)]
    graph = helper.make_graph(
        [helper.make_node(node.operator, names, outputs, **attributes)],
        "random",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in fed.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in held.items() if name not in left_out],
    )
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=6 if opset < 15 else 8)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


def write(folder: Path, count: int, seed: int) -> None:
    """Write models of nodes that ONNX Runtime runs with finite results, and what it computes of random inputs."""
    (folder / "io").mkdir(parents=True, exist_ok=True)
    draw, done = _Draw(seed), 0
    kinds, weights = zip(*_KINDS, strict=True)
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    while done < count:
        (kind,) = draw.random.choices(kinds, weights)
        node, opset = kind(draw), draw.one(*_OPSETS)
        feeds = {f"x{at}": np.asarray(value) for at, value in enumerate(node.fed)}
        try:
            model = _built(node, opset)
            found = ort.InferenceSession(model.SerializeToString(), quiet).run(None, feeds)
        except Exception:  # noqa: S112 - what is no valid node is drawn again; ONNX Runtime's errors have no common class
            continue
        if any(
            not value.size or (value.dtype.kind == "f" and not np.isfinite(value).all()) for value in found
        ):
            continue
        name = f"{node.operator}_{done:04d}"
        onnx.save(model, folder / f"{name}.onnx")
        write_io(folder, name, feeds, found, [value.name for value in model.graph.output])
        done += 1


def main() -> None:
    """Write the models."""
    parser = argparse.ArgumentParser(
        description="Write models of one node with random lengths and attributes."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write(given.folder, given.count, given.seed)


if __name__ == "__main__":
    main()
