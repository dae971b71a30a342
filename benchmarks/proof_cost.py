"""What the proof costs: seconds of verification over seconds of one inference.

An inference is what a user has: ONNX Runtime with all optimisations and all cores, on the inputs that the verification
makes up for the model; the median of three, before the migration and after it. The verification is that of a default
migration, with its processes and with every load of a model. "runs" counts the runs of models that it makes: of those
that start from the inputs, in a second migration without a child process, if asked for.

    python benchmarks/proof_cost.py [MODEL.onnx ...] [--opset 20] [--runs] [--json out.json]

Without models it makes ten, whose inference takes from about 0.1 to 2 seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from onnx_migrate import migrate
from onnx_migrate.verify.evaluators.onnxruntime import OnnxRuntime
from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.sizes import size_choices


class Net:
    """Builds a model at opset 13, node by node, with random weights of the usual scales."""

    def __init__(self, shape: list[int]) -> None:
        self._rng = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._shape = shape

    def weight(self, *shape: int) -> str:
        """Add a weight whose products keep the scale."""
        spread = np.sqrt(2 / max(1, np.prod(shape[1:]) if len(shape) == 4 else shape[0]))
        return self.constant((self._rng.standard_normal(shape) * spread).astype(np.float32))

    def constant(self, value: np.ndarray) -> str:
        """Add a constant."""
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(value, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Add a node and return its output."""
        output = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], output, **attributes))
        return output

    def conv(self, x: str, before: int, after: int, group: int = 1, size: int = 3) -> str:
        """Add a Conv that keeps height and width, a BatchNormalization and a Relu."""
        pads = [size // 2] * 4
        weight = self.weight(after, before // group, size, size)
        y = self.node("Conv", x, weight, pads=pads, group=group)
        one = np.ones(after, np.float32)
        values = [one, one * 0, self._rng.standard_normal(after).astype(np.float32) * 0.1, one * 1.5]
        return self.node("Relu", self.node("BatchNormalization", y, *map(self.constant, values)))

    def model(self, output: str) -> onnx.ModelProto:
        """Return the model that computes this value from `x`."""
        kind = helper.make_tensor_value_info
        interface = [kind("x", TensorProto.FLOAT, self._shape)], [kind(output, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self._nodes, "net", *interface, self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        return onnx.shape_inference.infer_shapes(model)


def plain(size: int, channels: int, layers: int) -> onnx.ModelProto:
    """Return a plain net of convolutions that ends in logits."""
    net = Net([1, 3, size, size])
    x = net.conv("x", 3, channels)
    for index in range(layers):
        x = net.conv(x, channels, channels)
        if index == layers // 2:
            x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model(net.node("Gemm", x, net.weight(channels, 100), net.weight(100)))


def separable(size: int, channels: int, layers: int) -> onnx.ModelProto:
    """Return a net of depthwise and pointwise convolutions, as on phones."""
    net = Net([1, 3, size, size])
    x = net.conv("x", 3, channels)
    for _ in range(layers):
        x = net.node("Add", x, net.conv(net.conv(x, channels, channels, channels), channels, channels, 1, 1))
    return net.model(net.node("Sigmoid", net.node("Conv", x, net.weight(1, channels, 1, 1))))


def hourglass(size: int, channels: int) -> onnx.ModelProto:
    """Return a net that goes down and up again by Resize, with shortcuts, as for segmentation."""
    net = Net([1, 3, size, size])
    x, shortcuts, scales = net.conv("x", 3, channels), [], net.constant(np.array([1, 1, 2, 2], np.float32))
    for level in range(3):
        shortcuts.append(x)
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = net.conv(x, channels << level, channels << (level + 1))
    for level in reversed(range(3)):
        x = net.node(
            "Resize", x, "", scales, mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
        )
        x = net.node("Concat", x, shortcuts[level], axis=1)
        x = net.conv(x, channels * 3 << level, channels << level)
    return net.model(net.node("Conv", x, net.weight(4, channels, 1, 1)))


def transformer(length: int, width: int, layers: int) -> onnx.ModelProto:
    """Return an encoder of self-attention with eight heads, its LayerNormalization in single operators."""
    net = Net([1, length, width])
    split = net.constant(np.array([0, 0, 8, -1], np.int64))
    joined = net.constant(np.array([0, 0, -1], np.int64))
    two, tiny = net.constant(np.float32(2)), net.constant(np.float32(1e-5))
    root, half, one = (net.constant(np.float32(v)) for v in ((width / 8) ** -0.5, 0.5, 1.0))

    def normalised(x: str) -> str:
        centred = net.node("Sub", x, net.node("ReduceMean", x, axes=[-1]))
        variance = net.node("ReduceMean", net.node("Pow", centred, two), axes=[-1])
        scaled = net.node("Div", centred, net.node("Sqrt", net.node("Add", variance, tiny)))
        return net.node("Mul", scaled, net.constant(np.full(width, 1.1, np.float32)))

    def dense(x: str, before: int, after: int) -> str:
        product = net.node("MatMul", x, net.weight(before, after))
        return net.node("Add", product, net.constant(np.full(after, 0.01, np.float32)))

    def heads(x: str, perm: list[int]) -> str:
        return net.node(
            "Transpose", net.node("Reshape", dense(normalised(x), width, width), split), perm=perm
        )

    x = "x"
    for _ in range(layers):
        queries, keys, values = (heads(x, perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        weights = net.node("Softmax", net.node("Mul", net.node("MatMul", queries, keys), root), axis=-1)
        mixed = net.node("Transpose", net.node("MatMul", weights, values), perm=[0, 2, 1, 3])
        x = net.node("Add", x, dense(net.node("Reshape", mixed, joined), width, width))
        inner = dense(normalised(x), width, 4 * width)
        gate = net.node("Mul", net.node("Add", net.node("Erf", net.node("Mul", inner, half)), one), half)
        x = net.node("Add", x, dense(net.node("Mul", inner, gate), 4 * width, width))
    return net.model(normalised(x))


MADE: dict[str, Callable[[], onnx.ModelProto]] = {
    "plain 160": lambda: plain(160, 64, 8),
    "plain 320": lambda: plain(320, 64, 10),
    "plain 512": lambda: plain(512, 96, 10),
    "separable 256": lambda: separable(256, 64, 10),
    "separable 512": lambda: separable(512, 96, 16),
    "hourglass 256": lambda: hourglass(256, 32),
    "hourglass 640": lambda: hourglass(640, 32),
    "transformer 128": lambda: transformer(128, 512, 6),
    "transformer 512": lambda: transformer(512, 512, 6),
    "transformer 1024": lambda: transformer(1024, 768, 6),
}


def inference(path: Path) -> Callable[[], float]:
    """Return a function that measures one inference of a model, as a median of three."""
    from onnx_migrate.verify.evaluators.interface import EvaluationError, Runnable

    model = onnx.load(path, load_external_data=False)
    runner = OnnxRuntime(Runnable(path), optimize=True)
    for choice in size_choices(model):
        feed = RandomInputs(model, None, choice).feed("normal")
        try:
            if feed is not None:
                runner.run(feed)
                break
        except EvaluationError:
            continue
    else:
        raise SystemExit(f"{path} runs at no sizes that were tried")

    def once() -> float:
        start = time.perf_counter()
        runner.run(feed)
        return time.perf_counter() - start

    return lambda: median(once() for _ in range(3))


def counted(path: Path, opset: str) -> str:
    """Return how many times the verification loads and runs a model in ONNX Runtime, and for how many seconds."""
    loads, runs = [], []
    load, run = OnnxRuntime.__init__, OnnxRuntime.run

    def timed(function: Callable[..., object], log: list[float]) -> Callable[..., object]:
        def wrapped(*args: object, **kwargs: object) -> object:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                log.append(time.perf_counter() - start)

        return wrapped

    OnnxRuntime.__init__, OnnxRuntime.run = timed(load, loads), timed(run, runs)  # type: ignore[method-assign, assignment]
    try:
        migrate(path, opset=opset, isolated=False)
    finally:
        OnnxRuntime.__init__, OnnxRuntime.run = load, run  # type: ignore[method-assign]
    return f"{len(loads)} loads {sum(loads):.2f} s, {len(runs)} runs {sum(runs):.2f} s"


def subjects(given: list[Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the models given, or those made here."""
    for path in given:
        yield path.stem, path
    for name, make in () if given else MADE.items():
        path = folder / f"{name}.onnx"
        onnx.save(make(), path)
        yield name, path
        path.unlink()


def main() -> int:
    """Measure each model; exit code 1 if one costs more than 12 inferences (8 of over a second) or is not verified."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--opset", default="20")
    parser.add_argument("--runs", action="store_true", help="count loads and runs as well")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, too_expensive = [], 0
    print(f"{'model':28} {'inference s':>11} {'verify s':>9} {'ratio':>6}  verdict", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for title, path in subjects(options.models, Path(name)):
            measure = inference(path)
            before = measure()
            report = migrate(path, opset=options.opset).report
            one = median([before, measure()])
            cost = report.seconds["verify"]
            kind = report.verification.kind.value if report.verification else "none"
            ratio = cost / one
            too_expensive += kind != "verified" or (one > 0.1 and ratio > (8 if one > 1 else 12))
            rows.append({"model": title, "inference": one, "verify": cost, "ratio": ratio, "kind": kind})
            counts = f"; {counted(path, options.opset)}" if options.runs else ""
            print(f"{title:28} {one:11.3f} {cost:9.2f} {ratio:6.1f}  {kind}{counts}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if too_expensive else 0


if __name__ == "__main__":
    sys.exit(main())
