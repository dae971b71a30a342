"""The forms of nodes that importers want: one function per form, which edits a node and returns what it could not write.

Importers want optional attributes and lengths, constant scales, and the ranks of the standard.
"""

from __future__ import annotations

from functools import cache
from string import ascii_lowercase

import numpy as np
import onnx
from onnx import AttributeProto, defs

from onnx_migrate.facts.shape_arithmetic import same_pads
from onnx_migrate.rewrite.bounded_arrays import bounded_dims
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = [
    "OPERATORS_WITH_KERNELS",
    "OPERATORS_WITH_SCALES",
    "STANDARD_RANKS",
    "read_from_constant",
    "read_scales_from_constants",
    "write_bias_last",
    "write_default_attributes",
    "write_default_axis",
    "write_dequantizers_apart",
    "write_kernel_shape",
    "write_lowercase_labels",
    "write_pads",
    "write_quantized_constant",
    "write_split_lengths",
    "write_squeezed_axes",
    "write_standard_ranks",
    "write_summed_shape",
    "write_vectors_apart",
    "write_zero_point",
]

_WINDOWS = frozenset(
    ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "AveragePool", "MaxPool", "LpPool", "MaxUnpool")
)
"""Operators whose strides, dilations and pads have the defaults 1, 1 and 0 on each axis."""


def write_default_attributes(rw: LoweringRewriter) -> str | None:
    """Write the attributes that have a default in the schema, and strides, dilations and pads of windows; return None.

    An attribute whose absence has a meaning of its own has no default there, and stays out.
    """
    node = rw.node
    stated_names = {attribute.name for attribute in node.attribute}
    missing = [default for default in _defaults(node.op_type, rw.version) if default.name not in stated_names]
    node.attribute.extend(missing)
    names = [default.name for default in missing]
    if node.op_type in _WINDOWS:
        names += _write_window(rw, stated_names)
    if names:
        rw.note(f"defaults are written: {', '.join(sorted(names))}")
    return None


@cache
def _defaults(operator: str, opset: int) -> tuple[AttributeProto, ...]:
    try:
        schema = defs.get_schema(operator, opset)
    except defs.SchemaError:
        return ()
    defaults = (schema.attributes[name].default_value for name in sorted(schema.attributes))
    return tuple(default for default in defaults if default.name and default.type != AttributeProto.UNDEFINED)


def _write_window(rw: LoweringRewriter, given: set[str]) -> list[str]:
    """Write strides, dilations and pads if the kernel is known; return the names of the new attributes."""
    kernel = rw.get("kernel_shape")
    if kernel is None:
        return []
    axes, written = len(kernel), []
    schema = defs.get_schema(rw.node.op_type, rw.version)
    auto_pad = next((attribute.s for attribute in rw.node.attribute if attribute.name == "auto_pad"), b"")
    # A node may have either pads or auto_pad.
    padded = auto_pad not in (b"", b"NOTSET") or not given.isdisjoint(
        ("pads", "output_shape", "output_padding")
    )
    for name, value in (("strides", [1] * axes), ("dilations", [1] * axes), ("pads", [0] * 2 * axes)):
        if name in schema.attributes and name not in given and not (name == "pads" and padded):
            rw.set(name, value)
            written.append(name)
    return written


OPERATORS_WITH_KERNELS = {"Conv": 1, "ConvTranspose": 1, "ConvInteger": 1, "DeformConv": 1, "QLinearConv": 3}
"""The input that holds the weights. Pools must have the attribute by their schemas."""


def write_kernel_shape(rw: LoweringRewriter) -> str | None:
    """Write `kernel_shape`; return the obstacle, or None if the attribute is there now.

    An importer that reads the attribute without checking for it fails. A node that cannot get it must therefore be an error.
    """
    if rw.attribute("kernel_shape") is not None:
        return None
    weights = rw.input(OPERATORS_WITH_KERNELS[rw.node.op_type])
    shape = rw.shape(weights)
    if shape is None or len(shape) < 3 or any(size is None for size in shape[2:]):
        return f"its kernel_shape cannot be written, as the shape of its weights {weights!r} is not known"
    rw.set("kernel_shape", [size or 0 for size in shape[2:]])
    rw.note("kernel_shape is written")
    return None


def write_pads(rw: LoweringRewriter) -> str | None:
    """Replace auto_pad SAME of a Conv or a pool by `pads`; return the obstacle, or None if there is none.

    With a stride of 1 the padding follows from the kernel alone. An importer need not fail on a node that keeps auto_pad, so
    that is a warning.
    """
    auto = str(rw.get("auto_pad", "NOTSET"))
    if not auto.startswith("SAME"):
        return None
    source = rw.shape(rw.input(0))
    kernel = rw.get("kernel_shape") or (rw.shape(rw.input(1)) or ())[2:]
    count = len(kernel)
    strides = list(rw.get("strides", [1] * count))
    lengths = [size if stride > 1 else 1 for size, stride in zip((source or ())[2:], strides, strict=False)]
    lengths = lengths or [None if stride > 1 else 1 for stride in strides]
    dilated = set(rw.get("dilations", [1])) != {1}
    if not count or dilated or None in kernel or None in lengths:
        return f"the padding of auto_pad {auto} cannot be written out, as the shape of {rw.input(0)!r} is not known"
    pads = [
        same_pads(length or 0, extent, stride, auto)
        for length, extent, stride in zip(lengths, kernel, strides, strict=True)
    ]
    rw.drop("auto_pad")
    rw.drop("ceil_mode")  # of a pool, that rounds nothing then
    rw.set("pads", [head for head, _ in pads] + [tail for _, tail in pads])
    rw.note(f"explicit pads replace auto_pad {auto}")
    return None


def write_split_lengths(rw: LoweringRewriter) -> str | None:
    """Write the lengths of a Split; return the obstacle, or None if they are there now.

    Importers that want this form divide the axis evenly without lengths, as the operator does. Lengths that cannot be written
    are therefore a warning, not an error.
    """
    # The lengths are there already.
    if rw.attribute("split") is not None or (rw.version >= 13 and rw.input(1)):
        return None
    axis = int(rw.get("axis", 0))
    shape = rw.shape(rw.input(0))
    if shape is None or not -len(shape) <= axis < len(shape) or shape[axis] is None:
        return f"its lengths cannot be written, as the length of axis {axis} of {rw.input(0)!r} is not known"
    count, length = len(rw.node.output), shape[axis] or 0
    # The last part may be shorter.
    each = -(-length // count)
    lengths = [max(min(each, length - each * number), 0) for number in range(count)]
    if rw.version >= 13:
        # A Split may have the lengths of its parts or their number, and not both.
        rw.drop("num_outputs")
        rw.set_input(1, rw.constant(np.array(lengths, np.int64), "lengths"))
    else:
        rw.set("split", lengths)
    rw.note("the lengths of its parts are written")
    return None


OPERATORS_WITH_SCALES = frozenset(("Resize", "Upsample"))


def read_scales_from_constants(rw: LoweringRewriter) -> str | None:
    """Let the node read its scales and sizes from initializers; return the obstacle, or None if it now does.

    An importer that wants this form fails if scales are computed, so unknown scales must be an error. In a function, which has
    no initializers, they are Constant nodes.
    """
    with_sizes = rw.node.op_type == "Resize" and rw.version >= 11
    # Sizes exist from version 11 on.
    for index, input_label in ((2, "scales"), (3, "sizes")) if with_sizes else ((1, "scales"),):
        obstacle = read_from_constant(rw, index, input_label)
        if obstacle is not None:
            return obstacle
    return None


def read_from_constant(rw: LoweringRewriter, index: int, what: str) -> str | None:
    """Let the node read an input from an initializer; return the obstacle, or None if it now does or has no such input."""
    value = rw.input(index)
    if not value:
        return None
    if isinstance(rw.scope.constant_source(value), onnx.TensorProto) and rw.producer(value) is None:
        return None  # no node produces it: through an Identity, an initializer is found too
    values, verb = rw.known(value), "are" if what.endswith("s") else "is"
    if values is None:
        return f"its {what} ({value!r}) {verb} computed at run time"
    constant = rw.constant(values, what)
    if constant != value:
        rw.set_input(index, constant)
        rw.note(f"its {what} {verb} a constant of the model")
    return None


def write_quantized_constant(rw: LoweringRewriter) -> str | None:
    """Write QuantizeLinear of a constant, by one scale to 8 bits, as the integers that it gives; return None.

    OpenVINO 2026.4 does not compile a sum or a product in which it stands: its pass for low precision fails.
    """
    data, scale, zero = (rw.known(rw.input(index)) for index in range(3))
    if data is None or scale is None or zero is None:
        return None
    if data.dtype == np.float32 and scale.size == 1 and zero.dtype in (np.uint8, np.int8):
        # Quantised values are clipped to the range of the type.
        ends = np.iinfo(zero.dtype)
        # The operator rounds halves to even, and adds the zero point after that.
        levels = np.rint(data / scale.reshape(())) + zero.reshape(()).astype(np.float32)
        integers = np.clip(levels, ends.min, ends.max).astype(zero.dtype)
        rw.become("Identity", [rw.constant(integers, "quantized")])
        rw.note("a constant is quantised by the migration")
    return None


def write_zero_point(rw: LoweringRewriter) -> str | None:
    """Write the zero point 0 of a QuantizeLinear or DequantizeLinear that omits it; return the obstacle, or None.

    ONNX Runtime up to 1.10 does not load a QuantizeLinear without one, and 1.3 crashes on such a DequantizeLinear.
    """
    if rw.input(2):
        return None
    shape = rw.shape(rw.input(1))
    if shape is None or None in shape:
        return "the number of its scales is not known"
    kind = np.dtype(np.uint8) if rw.node.op_type == "QuantizeLinear" else rw.numpy_type(rw.input(0))
    rw.set_input(2, rw.constant(np.zeros(bounded_dims([dim or 0 for dim in shape]), kind), "zero_point"))
    rw.note("its zero point is written")
    return None


def write_dequantizers_apart(rw: LoweringRewriter) -> str | None:
    """Let a node read its own DequantizeLinear if one with several scales has other readers too; return None.

    ONNX Runtime 1.15 and 1.16 make such copies for nodes that they quantise, and forget the axis of the scales.
    """
    for at, name in enumerate(rw.node.input):
        dequantizer = rw.producer(name)
        # A node that is the only reader has its own already.
        if dequantizer is None or dequantizer.op_type != "DequantizeLinear" or len(rw.readers(name)) < 2:
            continue
        if rw.rank(dequantizer.input[1]) != 0:
            axis = next((attribute.i for attribute in dequantizer.attribute if attribute.name == "axis"), 1)
            rw.set_input(at, rw.before("DequantizeLinear", list(dequantizer.input), hint="own", axis=axis))
            rw.note("it reads a DequantizeLinear of its own")
    return None


STANDARD_RANKS = {
    "Expand": {1: 1},
    "Unsqueeze": {1: 1},
    "Pad": {2: 0},
    "CumSum": {1: 0},
    "Clip": {1: 0, 2: 0},
}
"""The numbers of axes that the standard requires of inputs, by their index; ONNX Runtime accepts a scalar or a vector of one
number."""


def write_standard_ranks(rw: LoweringRewriter) -> str | None:
    """Give inputs of one number as many axes as the standard says. Return None, since other inputs are no obstacle."""
    for index, rank in STANDARD_RANKS[rw.node.op_type].items():
        value = rw.input(index)
        # Only a missing or a superfluous axis of length 1 can be corrected.
        if not value or rw.rank(value) != 1 - rank:
            continue
        number = rw.known(value)
        name = defs.get_schema(rw.node.op_type, rw.version).inputs[index].name
        if number is not None and number.size == 1:
            rw.set_input(index, rw.constant(number.reshape([1] * rank), name))
        elif rank or rw.shape(value) == (1,):
            shape = rw.constant(np.array([1] * rank, np.int64), "rank")
            rw.set_input(index, rw.before("Reshape", [value, shape], hint=name))
        else:
            continue
        rw.note(f"its {name} has the rank of the standard")
    return None


def write_squeezed_axes(rw: LoweringRewriter) -> str | None:
    """Write the axes of a Squeeze that names none, those of length 1; return the obstacle, or None.

    TensorRT cannot find them if dims are open ("Cannot infer squeeze dimensions from a dynamic shape").
    """
    if rw.attribute("axes") is not None or rw.input(1):
        return None
    shape, rank = rw.shape(rw.input(0)), rw.rank(rw.node.output[0])
    if shape is None:
        return "its axes are those of length 1, and the rank of its input is not known"
    axes = [axis for axis, dim in enumerate(shape) if dim == 1]
    # With the rank of the output known, the open dims are known not to be removed.
    if None in shape and (rank is None or len(shape) - len(axes) != rank):
        return "its axes are those of length 1, and dims of its input are open"
    if rw.version >= 13:
        rw.set_input(1, rw.constant(np.array(axes, np.int64), "axes"))
    else:
        rw.set("axes", axes)
    rw.note("its axes are written")
    return None


def write_default_axis(rw: LoweringRewriter) -> str | None:
    """Write the axis of a Softmax or LogSoftmax that leaves it out, the last from opset 13 on; return None.

    OpenCV 4.8 takes axis 1 there, as up to opset 12.
    """
    if rw.version >= 13 and rw.attribute("axis") is None:
        rw.set("axis", -1)
        rw.note("its axis is written")
    return None


def write_bias_last(rw: LoweringRewriter) -> str | None:
    """Write a vector that is added to a value of more axes as the second input of the Add; return None.

    ONNX Runtime 1.3 fuses the GELU of such a sum to a BiasGelu, and assumes that the second input is the vector.
    """
    first, second = rw.input(0), rw.input(1)
    if rw.rank(first) == 1 and rw.rank(second) != 1:
        rw.set_input(0, second)
        rw.set_input(1, first)
        rw.note("its bias is the second input")
    return None


def write_summed_shape(rw: LoweringRewriter) -> str | None:
    """Add 0 to the computed shape of a Reshape in a branch if the data comes from outside the branch; return None.

    ONNX Runtime 1.4 crashes when it fuses the nodes of such a shape, because it looks for the data inside the branch. A Cast to
    the same type or an Identity would not help, since ONNX Runtime removes them before.
    """
    producer = rw.producer(rw.input(1))
    # The fault needs data from outside the branch.
    outer = rw.scope.parent is not None and not rw.is_made_here(rw.input(0))
    if outer and producer is not None and producer.op_type == "Concat":
        zero = rw.constant(np.array(0, np.int64), "zero")
        rw.set_input(1, rw.before("Add", [rw.input(1), zero], hint="shape"))
        rw.note("its shape is a sum with 0, which is not fused")
    return None


def write_lowercase_labels(rw: LoweringRewriter) -> str | None:
    """Replace upper case labels of an Einsum by lower case ones; return the obstacle, or None.

    ONNX Runtime 1.3 to 1.5 supports only lower case labels. Without "->" the result's axes have the order of their labels,
    which would change.
    """
    equation = str(rw.get("equation", ""))
    labels = sorted({letter for letter in equation if letter.isalpha()})
    upper = [letter for letter in labels if letter.isupper()]
    if not upper:
        return None
    # A label in use would join two axes.
    free = [letter for letter in ascii_lowercase if letter not in labels]
    if len(free) < len(upper) or "->" not in equation:
        return f"the labels of its equation {equation!r} cannot be lower case letters"
    rw.set("equation", equation.translate(str.maketrans("".join(upper), "".join(free[: len(upper)]))))
    rw.note("the labels of its equation are lower case letters")
    return None


def write_vectors_apart(rw: LoweringRewriter) -> str | None:
    """Let a node that changes vectors of the model read its own copy of one that others read, too; return None.

    If a PRelu reads a constant vector, OpenCV 4.7 to 4.14 give it two axes for all nodes. A LayerNormalization has the same
    effect from 4.8 on, and a MatMul with the vector as bias from 4.10 on. Nodes that read the vector as a row then fail. OpenCV
    4.8 changes a shared index of a Gather in the same way.
    """
    node = rw.node
    if node.op_type == "Add" and not any(
        producer is not None and producer.op_type == "MatMul" for producer in map(rw.producer, node.input)
    ):
        return None
    if node.op_type == "Gather" and rw.rank(rw.input(0)) == 1:
        return None  # of a shape: no data
    rank = 0 if node.op_type == "Gather" else 1
    for at, name in enumerate(node.input):
        vector = rw.known(name) if rw.rank(name) == rank and len(rw.readers(name)) > 1 else None
        if vector is not None:
            # Not by `constant`, which shares equal ones.
            tensor = onnx.numpy_helper.from_array(vector, rw.fresh("own"))
            rw.scope.add_tensor(tensor)
            rw.set_input(at, tensor.name)
            rw.note("it reads a copy of a vector that other nodes read")
    return None
