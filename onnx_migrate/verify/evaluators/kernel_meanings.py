"""Nodes that ONNX Runtime's kernels do not compute by their text, or in an order of their own, written so that they do.

MatMulNBits with an `accuracy_level` of 4 quantises its first input to int8 (onnxruntime/contrib_ops/cpu/quantization/
matmul_nbits.cc), and so differs from the product with its weights by up to 1 %. MultiHeadAttention with a cache, and without the
outputs for keys and values, reads behind the end of the new ones (ONNX Runtime 1.32), so that its numbers differ from run to run.

SkipLayerNormalization sums up a row one number after the other (skip_layer_norm.cc), and so rounds where the mean is large: by
3e-4 where it is 3,000 times the deviation. Of float32, it is run as the sum and the LayerNormalization that it stands for.

QLinearAveragePool adds the rows of a window one after the other (qlinear_pool.cc). AveragePool does so from opset 19 on, and with
optimisation; else it adds columns first where strides are 1 or 2 (MlasPool2DVectorKernel in core/mlas/lib/pooling.cpp). Where
scales are equal, a mean is often half-way between two steps, and the order decides. As a pooling of three axes, whose kernel goes
by rows, it has the order of both: every bit is that of QLinearAveragePool.

QLinearAdd and QLinearMul add the zero point before they round (qladd.cpp and qlmul.cpp in core/mlas/lib), so that a result
between two steps may be the other one than that of DequantizeLinear, Add or Mul, and QuantizeLinear, for which they stand. The
optimiser makes them of these nodes again. So without it they are run as these nodes, and with it as they are.

STFT of frames whose length is no power of two, as the 400 of Whisper, goes through a chirp in the frames' type (dft.cc in
onnxruntime/core/providers/cpu/signal): of 400 elements it is off by 3e-5 of the largest number, the product with a matrix of
cosines and sines by 6e-7. It is run as that product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from onnx_migrate.model.graphs import Body, bodies, producers
from onnx_migrate.model.names import Names
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.evaluators.interface import Runnable

__all__ = ["ACCURACY_NOTE", "ORDER_NOTE", "SKIP_NOTE", "STEP_NOTE", "STFT_NOTE", "as_meant", "write_as_meant"]

ACCURACY_NOTE = (
    "MatMulNBits was run with accuracy_level 0, so that the numbers that were compared are those of its weights; with the level"
    " that the model has, ONNX Runtime quantises its input too"
)
ORDER_NOTE = (
    "AveragePool written from QLinearAveragePool was run so that it adds the rows of its windows in order, as that does;"
    " below opset 19 ONNX Runtime adds columns first without optimisation, and a mean between two steps may round otherwise"
)
SKIP_NOTE = (
    "SkipLayerNormalization was run as Add and LayerNormalization; ONNX Runtime's kernel of it sums up a row one number after the"
    " other, and so rounds where the mean is far larger than the deviation"
)
STEP_NOTE = (
    "without optimisation QLinearAdd and QLinearMul were run as DequantizeLinear, Add or Mul, and QuantizeLinear, of which the"
    " optimiser makes them again; their kernel adds the zero point before it rounds, so that a number between two steps may"
    " become the other one there"
)
STFT_NOTE = (
    "STFT was run as the product with a matrix of cosines and sines; where the length of a frame is no power of two, the kernel"
    " of ONNX Runtime is off by 1e-5 to 1e-4 of the largest number"
)

_LONGEST_FRAME = 4096
"""Elements of a frame above which its matrix would take more than 128 MB."""

_DOMAIN = "com.microsoft"
_WORDS = (
    b"MatMulNBits",
    b"MultiHeadAttention",
    b"AveragePool",
    b"SkipLayerNormalization",
    b"QLinear",
    b"STFT",
)


def as_meant(runnable: Runnable, *, optimize: bool) -> tuple[Runnable, tuple[str, ...]]:
    """Return a model as it is to be loaded, itself if it has no such node, and notes on what was changed."""
    structure = runnable.structure
    if structure is not None and not any(word in structure for word in _WORDS):
        return runnable, ()
    model = runnable.proto()
    changed, notes = write_as_meant(model, optimize=optimize)
    return (runnable.with_structure(model) if changed else runnable), notes


def write_as_meant(model: onnx.ModelProto, *, optimize: bool = False) -> tuple[int, tuple[str, ...]]:
    """Write such nodes in place; return how many were written, and notes on them."""
    notes: set[str] = set()
    changed, names = 0, Names(model)
    for located in bodies(model):
        body = located.body
        opset = onnx_opset(located.owner.opset_import, ir_version=model.ir_version)
        pools = _pools(body) if (opset or 19) < 19 else []
        for node in body.node:
            if node.domain == _DOMAIN and node.op_type == "MatMulNBits":
                levels = [item for item in node.attribute if item.name == "accuracy_level" and item.i]
                for item in levels:
                    item.i = 0
                changed += len(levels)
                notes.update([ACCURACY_NOTE] if levels else ())
            elif node.domain == _DOMAIN and node.op_type == "MultiHeadAttention":
                changed += _with_outputs(node, names) if len(node.input) > 6 and node.input[6] else 0
        skips = _skips(body) if opset else []
        steps = _binaries(body) if (opset or 0) >= 10 and not optimize else []
        frames = _frames(body)
        written: dict[int, Callable[[onnx.NodeProto, Names], list[onnx.NodeProto]]] = {
            **dict.fromkeys(pools, _by_rows),
            **dict.fromkeys(skips, _as_sum),
            **dict.fromkeys(steps, _as_floats),
            **{place: partial(_as_product, length=length) for place, length in frames.items()},
        }
        for index in sorted(written, reverse=True):
            nodes = written[index](body.node[index], names)
            del body.node[index]
            for node in reversed(nodes):
                body.node.insert(index, node)
        changed += len(written)
        notes.update([ORDER_NOTE] if pools else ())
        notes.update([SKIP_NOTE] if skips else ())
        notes.update([STEP_NOTE] if steps else ())
        notes.update([STFT_NOTE] if frames else ())
    return changed, tuple(sorted(notes))


def _pools(body: Body) -> list[int]:
    """Return the places of the nodes that average windows of two axes over dequantised values, which a Div reads."""
    if not any(node.op_type == "AveragePool" for node in body.node):
        return []
    made = producers(body)

    def source(name: str) -> onnx.NodeProto:
        node = made.get(name, onnx.NodeProto())
        return made.get(node.input[0], onnx.NodeProto()) if node.op_type == "Transpose" else node

    read = (source(node.input[0]) for node in body.node if node.op_type == "Div")
    pools = {node.output[0] for node in read if node.op_type == "AveragePool" and is_onnx(node.domain)}
    return [
        index
        for index, node in enumerate(body.node)
        if node.output
        and node.output[0] in pools
        and source(node.input[0]).op_type == "DequantizeLinear"
        and len(_numbers(node, "kernel_shape")) == 2
    ]


def _skips(body: Body) -> list[int]:
    """Return the places of the nodes that add and normalise float32, whose scales are constants that say so."""
    names = {item.name for item in getattr(body, "initializer", ()) if item.data_type == TensorProto.FLOAT}
    return [
        index
        for index, node in enumerate(body.node)
        if node.op_type == "SkipLayerNormalization" and node.domain == _DOMAIN and node.input[2] in names
    ]


def _as_sum(node: onnx.NodeProto, names: Names) -> list[onnx.NodeProto]:
    """Return nodes that add the inputs, and the LayerNormalization of the sum."""
    x, skip, gamma, beta, bias = [*node.input, "", ""][:5]
    given = [item for item in (x, skip, bias) if item]
    total = (node.output[3] if len(node.output) > 3 else "") or names.fresh(f"{node.output[0]}_sum")
    sums = [*(names.fresh(f"{node.output[0]}_part") for _ in given[2:]), total]
    nodes, left = [], given[0]
    for right, name in zip(given[1:], sums, strict=True):
        nodes.append(helper.make_node("Add", [left, right], [name]))
        left = name
    epsilon = next((item.f for item in node.attribute if item.name == "epsilon"), 1e-12)
    return [
        *nodes,
        helper.make_node(
            "LayerNormalization",
            [total, gamma, *filter(None, [beta])],
            node.output[:1],
            axis=-1,
            epsilon=epsilon,
        ),
    ]


def _binaries(body: Body) -> list[int]:
    """Return the places of the nodes that add or multiply quantised values, and have all their zero points."""
    return [
        index
        for index, node in enumerate(body.node)
        if node.op_type in ("QLinearAdd", "QLinearMul")
        and node.domain == _DOMAIN
        and len(node.input) == 8
        and all(node.input)
    ]


def _as_floats(node: onnx.NodeProto, names: Names) -> list[onnx.NodeProto]:
    """Return nodes that dequantise two values, add or multiply them, and quantise the result."""
    left, right, found = (names.fresh(f"{node.output[0]}_{part}") for part in ("left", "right", "found"))
    return [
        helper.make_node("DequantizeLinear", node.input[:3], [left]),
        helper.make_node("DequantizeLinear", node.input[3:6], [right]),
        helper.make_node(node.op_type.removeprefix("QLinear"), [left, right], [found]),
        helper.make_node("QuantizeLinear", [found, *node.input[6:8]], node.output),
    ]


def _frames(body: Body) -> dict[int, int]:
    """Return the places of the nodes that transform frames of real numbers, whose length is no power of two, with the lengths."""
    places = [
        index for index, node in enumerate(body.node) if node.op_type == "STFT" and is_onnx(node.domain)
    ]
    if not places:
        return {}
    stored = {tensor.name: tensor for tensor in getattr(body, "initializer", ())}
    for node in body.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            stored[node.output[0]] = node.attribute[0].t
    found = {}
    for place in places:
        node = body.node[place]
        window, length = (stored.get(name) for name in [*node.input, "", ""][2:4])
        size = 0
        if length is not None:
            size = int(numpy_helper.to_array(length).reshape(-1)[0])
        elif window is not None:
            size = window.dims[0]
        whole = any(item.name == "onesided" and not item.i for item in node.attribute)
        if not whole and size & (size - 1) and size <= _LONGEST_FRAME:
            found[place] = size
    return found


def _as_product(node: onnx.NodeProto, names: Names, length: int) -> list[onnx.NodeProto]:
    """Return nodes that gather the frames of a signal, and multiply them with the window, cosines and sines."""
    signal, step, window = [*node.input, ""][:3]
    nodes: list[onnx.NodeProto] = []

    def put(operator: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(
            helper.make_node(operator, inputs, [names.fresh(f"{node.output[0]}_part")], **attributes)
        )
        return nodes[-1].output[0]

    def constant(array: object) -> str:
        return put("Constant", value=numpy_helper.from_array(np.asarray(array)))

    angles = np.outer(np.arange(length), np.arange(length // 2 + 1)) * (2 * np.pi / length)
    matrix = np.stack([np.cos(angles), -np.sin(angles)], -1).reshape(length, -1)
    flat, step = put("Reshape", signal, constant([0, -1])), put("Cast", step, to=TensorProto.INT64)
    room = put("Sub", put("Squeeze", put("Shape", flat, start=1)), constant(length))
    count = put("Add", put("Div", room, step), constant(1))
    count = put(
        "Max", count, constant(1)
    )  # of a signal that is too short, the Gather fails as the kernel does
    starts = put("Mul", put("Range", constant(0), count, constant(1)), step)
    places = put("Add", put("Unsqueeze", starts, constant([1])), constant(np.arange(length)[None]))
    frames = put("Gather", flat, places, axis=1)
    frames = put("Mul", frames, window) if window else frames
    product = put("MatMul", frames, put("CastLike", constant(matrix), frames))
    nodes.append(
        helper.make_node("Reshape", [product, constant([0, 0, length // 2 + 1, 2])], node.output[:1])
    )
    return nodes


def _numbers(node: onnx.NodeProto, name: str) -> Sequence[int]:
    return next((item.ints for item in node.attribute if item.name == name), ())


def _by_rows(node: onnx.NodeProto, names: Names) -> list[onnx.NodeProto]:
    """Return nodes that pool over a third axis of length 1 as well."""
    shapes, deep, pooled = (
        [names.fresh(f"{node.output[0]}_{part}") for part in ("shape", "flat_shape")],
        names.fresh(f"{node.output[0]}_deep"),
        names.fresh(f"{node.output[0]}_pooled"),
    )
    nodes = [
        helper.make_node(
            "Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [len(dims)], dims)
        )
        for name, dims in zip(shapes, ([0, 0, 0, 0, 1], [0, 0, 0, 0]), strict=True)
    ]
    pool = onnx.NodeProto.FromString(node.SerializeToString())
    pool.input[0], pool.output[0] = deep, pooled
    for item in pool.attribute:
        if item.type == AttributeProto.INTS:
            given = list(item.ints)
            item.ints[:] = [*given[:2], 0, *given[2:], 0] if item.name == "pads" else [*given, 1]
    return [
        *nodes,
        helper.make_node("Reshape", [node.input[0], shapes[0]], [deep]),
        pool,
        helper.make_node("Reshape", [pooled, shapes[1]], [node.output[0]]),
    ]


def _with_outputs(node: onnx.NodeProto, names: Names) -> int:
    """Give a node its second and third output where these are left out; return whether that was so."""
    node.output.extend([""] * (3 - len(node.output)))
    missing = [place for place in (1, 2) if not node.output[place]]
    for place in missing:
        node.output[place] = names.fresh(f"{node.output[0]}_present")
    return int(bool(missing))
