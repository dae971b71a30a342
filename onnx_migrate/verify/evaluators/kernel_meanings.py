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

DFT and STFT over lengths that are no power of two lose digits (transforms.py), and are run as products with cosines and sines.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import AttributeProto, TensorProto, helper

from onnx_migrate.model.graphs import Body, bodies, producers
from onnx_migrate.model.names import Names
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.evaluators.interface import Runnable
from onnx_migrate.verify.evaluators.transforms import TRANSFORM_NOTE, Transforms, Written

__all__ = ["ACCURACY_NOTE", "ORDER_NOTE", "SKIP_NOTE", "STEP_NOTE", "as_meant", "write_as_meant"]

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

_DOMAIN = "com.microsoft"
_WORDS = (
    b"MatMulNBits",
    b"MultiHeadAttention",
    b"AveragePool",
    b"SkipLayerNormalization",
    b"QLinear",
    b"DFT",
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
    changed, names, transforms = 0, Names(model), Transforms(model)
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
        products = transforms.products(located)
        written: dict[int, Written] = {
            **dict.fromkeys(pools, _by_rows),
            **dict.fromkeys(skips, _as_sum),
            **dict.fromkeys(steps, _as_floats),
            **products,
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
        notes.update([TRANSFORM_NOTE] if products else ())
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
