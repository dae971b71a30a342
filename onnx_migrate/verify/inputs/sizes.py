"""Sizes for the dims that a model leaves open, as choices to try until the model runs, and the shapes of inputs at one choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import onnx
from onnx import TypeProto, ValueInfoProto

from onnx_migrate.errors import UsageError
from onnx_migrate.model.dims.expressions import value_of
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.model.interface import UNNAMED
from onnx_migrate.verify.inputs.attention_masks import attention_masks

__all__ = [
    "BATCHES",
    "CHANNELS",
    "ODD_LENGTH",
    "SizeChoice",
    "batch_keys",
    "choice_after_crash",
    "input_shapes",
    "open_dims",
    "size_choices",
    "tensor_in",
]


BATCHES = (2, 1, 3)
"""Batch sizes to try. Two comes first, so that a model that mixes the samples of a batch shows it."""

_IMAGES = (
    (64, 96),
    (48, 96),
    (32, 100),
    (224, 224),
    (256, 320),
    (48, 192),
    (112, 112),
    (299, 299),
    (512, 512),
    (8, 12),
)
ODD_LENGTH = 7
"""With this length, each further symbol is one longer, so that no two lengths are equal by chance."""

_LENGTHS = (ODD_LENGTH, 16, 1, 64, 128, 256, 512, 1600, 16000)
"""Lengths of sequences; the last are windows of audio samples."""
CHANNELS = (1, 3, 4)
_CHOICES = 64

_UNKNOWN = UNNAMED | {""}
"""Symbols that name no length, and the empty one of a dim without a symbol."""

Dim = onnx.TensorShapeProto.Dimension


@dataclass(frozen=True)
class SizeChoice:
    """One choice of sizes: of a batch, an image (height and width), a sequence, and of an undeclared rank.

    `rank` is 0 if every input declares its rank.
    """

    batch: int
    image: tuple[int, int]
    length: int
    rank: int


def size_choices(model: onnx.ModelProto, batches: Sequence[int] = BATCHES) -> list[SizeChoice]:
    """Return the choices to try, likeliest first, at most 64; only one if the model leaves nothing open."""
    inputs = [value.type.tensor_type for value in fed_inputs(model.graph)]
    ranked = all(kind.HasField("shape") for kind in inputs)
    open_dims = [
        (axis, len(kind.shape.dim))
        for kind in inputs
        for axis, dim in enumerate(kind.shape.dim)
        if _is_open(dim)
    ]
    batches = batches if any(axis == 0 for axis, _ in open_dims) or not ranked else batches[:1]
    images = (
        _IMAGES if any(rank >= 4 and axis >= 2 for axis, rank in open_dims) or not ranked else _IMAGES[:1]
    )
    lengths = (
        _LENGTHS if any(rank < 4 and axis > 0 for axis, rank in open_dims) or not ranked else _LENGTHS[:1]
    )
    ranks = (0,) if ranked else (4, 2, 3, 1)
    positions = product(range(len(ranks)), range(len(lengths)), range(len(images)), range(len(batches)))
    # Ordered by how many first choices they give up: in nested order, most values would lie beyond the limit.
    ordered = sorted(positions, key=sum)[:_CHOICES]
    return [SizeChoice(batches[b], images[i], lengths[n], ranks[r]) for r, n, i, b in ordered]


def choice_after_crash(choices: list[SizeChoice], failed: int) -> int:
    """Return the index of the next choice with other lengths than all choices up to `failed`, or the number of choices.

    A model that crashes at some lengths is likely to crash at them with another batch too.
    """
    seen = {(choice.image, choice.length) for choice in choices[: failed + 1]}
    following = range(failed + 1, len(choices))
    return next((at for at in following if (choices[at].image, choices[at].length) not in seen), len(choices))


def _is_open(dim: Dim) -> bool:
    """Whether a dim has no number. ONNX Runtime takes a declared 0 as the length 0."""
    return dim.dim_value < 0 or not dim.HasField("dim_value")


def tensor_in(value: ValueInfoProto) -> tuple[TypeProto, int]:
    """Return the tensor type in an input's type, and how many tensors it gets: three in a sequence.

    Raises UsageError for a type that holds no tensors.
    """
    kind, copies = value.type, 1
    if kind.WhichOneof("value") == "optional_type":
        kind = kind.optional_type.elem_type
    if kind.WhichOneof("value") == "sequence_type":
        kind, copies = kind.sequence_type.elem_type, 3
    if kind.WhichOneof("value") != "tensor_type":
        raise UsageError(
            f"input {value.name!r} is neither a tensor nor a sequence of tensors, so no random value can be generated",
            code="input-data",
        )
    return kind, copies


def input_shapes(
    model: onnx.ModelProto,
    other: onnx.ModelProto | None,
    choice: SizeChoice,
    corrected: Mapping[str, int] | None = None,
) -> dict[str, tuple[int, ...]]:
    """Return a shape for every fed input, with the sizes of `choice` for open dims.

    Three kinds of open dims have other sizes. A dim that is a number in the same input of `other` has that number. A dim with a
    key in `corrected` has the size there (`open_dims`). A dim whose symbol is an expression of other symbols, like "past +
    current", has its value.
    """
    inputs = fed_inputs(model.graph)
    counterparts = {value.name: value for value in other.graph.input} if other is not None else {}
    corrected = corrected or {}
    symbols = dict(corrected)
    shapes: dict[str, list[int]] = {}
    for value in inputs:
        counterpart = counterparts.get(value.name)
        shapes[value.name] = _shape(value, counterpart, choice, symbols, len(corrected))
    # Expressions can refer to symbols of later inputs, so they follow in a second pass.
    for value in inputs:
        for axis, dim in enumerate(tensor_in(value)[0].tensor_type.shape.dim):
            if _is_expression(dim.dim_param) and _dim_key(value.name, axis, dim) not in corrected:
                quotients = dim.dim_param.strip().replace("//", "/").replace("/", "//")  # of whole numbers
                size = value_of(quotients, symbols)
                if size is not None and size >= 0:
                    shapes[value.name][axis] = size
    for mask, past, axis in attention_masks(model):
        _count_keys(shapes, inputs, mask, past, axis, corrected)
    return {name: tuple(shape) for name, shape in shapes.items()}


def _count_keys(
    shapes: Mapping[str, list[int]],
    inputs: Sequence[ValueInfoProto],
    mask: str,
    past: str,
    axis: int,
    corrected: Mapping[str, int],
) -> None:
    """Set the last axis of a mask to the number of past keys plus query keys, in place, and all axes of its symbol too."""
    dims = {value.name: tensor_in(value)[0].tensor_type.shape.dim for value in inputs}
    if len(dims[mask]) < 3 or len(dims[past]) <= axis or not _is_open(dims[mask][-1]):
        return
    symbol = dims[mask][-1].dim_param
    key = _dim_key(mask, len(dims[mask]) - 1, dims[mask][-1])
    if key in corrected or _is_expression(symbol) or symbol == dims[past][axis].dim_param:
        return
    total = shapes[past][axis] + shapes[mask][-2]
    shapes[mask][-1] = total
    for name, own in dims.items():
        for at, dim in enumerate(own):
            if symbol not in _UNKNOWN and dim.dim_param == symbol:
                shapes[name][at] = total


def open_dims(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the size in `shapes` of every dim that the model leaves open, by its key.

    The key is the symbol, or "input[axis]" if there is no symbol or it only says that the size is unknown.
    """
    sizes_by_key: dict[str, int] = {}
    for value in fed_inputs(model.graph):
        tensor = tensor_in(value)[0].tensor_type
        if not tensor.HasField("shape"):
            sizes_by_key.update(
                (f"{value.name}[{axis}]", size) for axis, size in enumerate(shapes[value.name])
            )
        for axis, dim in enumerate(tensor.shape.dim):
            if _is_open(dim):
                sizes_by_key.setdefault(_dim_key(value.name, axis, dim), shapes[value.name][axis])
    return sizes_by_key


def batch_keys(model: onnx.ModelProto) -> set[str]:
    """Return the keys of the open dims that are the first of an input."""
    kinds = ((value.name, tensor_in(value)[0].tensor_type) for value in fed_inputs(model.graph))
    return {
        _dim_key(name, 0, tensor.shape.dim[0]) if tensor.HasField("shape") else f"{name}[0]"
        for name, tensor in kinds
        if tensor.shape.dim or not tensor.HasField("shape")
    }


def _dim_key(name: str, axis: int, dim: Dim) -> str:
    """Return the key of an input's open dim: its symbol, or input and axis if the symbol is no name."""
    return dim.dim_param if dim.dim_param not in _UNKNOWN else f"{name}[{axis}]"


def _is_expression(symbol: str) -> bool:
    return any(sign in symbol for sign in "+-*/") and symbol not in _UNKNOWN


def _shape(
    value: ValueInfoProto,
    counterpart: ValueInfoProto | None,
    choice: SizeChoice,
    symbols: dict[str, int],
    fixed: int,
) -> list[int]:
    """Return the shape of one input; `symbols` maps keys to sizes, the first `fixed` corrected, and is extended."""
    name, tensor = value.name, tensor_in(value)[0].tensor_type
    if not tensor.HasField("shape"):
        return [symbols.get(f"{name}[{axis}]", size) for axis, size in enumerate(_unranked(choice))]
    counterpart_dims = list(counterpart.type.tensor_type.shape.dim) if counterpart is not None else []
    rank = len(tensor.shape.dim)
    dims = tensor.shape.dim
    # Images with channels last have 1, 3 or 4 of them, and a fixed axis 1 would be the channels itself.
    channel = rank - 1 if rank >= 4 and dims[1].dim_value <= 0 and dims[-1].dim_value in CHANNELS else 1
    shape = []
    for axis, dim in enumerate(dims):
        size = dim.dim_value if dim.HasField("dim_value") else -1
        key = _dim_key(name, axis, dim)
        if size < 0 and len(counterpart_dims) == rank and counterpart_dims[axis].dim_value > 0:
            size = counterpart_dims[axis].dim_value
        if size < 0:
            others = len(symbols) - fixed
            wanted = _open_size(axis, rank, channel, choice)
            if rank < 4 and axis > 0 and choice.length == ODD_LENGTH:
                wanted += others
            if rank == 3 and axis == 1 and dims[0].dim_value > 1:
                wanted = choice.batch  # a recurrent state: layers, batch, features
            shared = dim.dim_param not in _UNKNOWN and not _is_expression(dim.dim_param)
            size = symbols.setdefault(key, wanted) if shared else symbols.get(key, wanted)
        shape.append(size)
    return shape


def _open_size(axis: int, rank: int, channel: int, choice: SizeChoice) -> int:
    if axis == 0:
        return choice.batch
    if rank < 4:
        return choice.length
    return 3 if axis == channel else choice.image[min(axis - (2 if axis > channel else 1), 1)]


def _unranked(choice: SizeChoice) -> tuple[int, ...]:
    if choice.rank == 4:
        return (choice.batch, 3, *choice.image)
    return (choice.batch, choice.length, 4)[: choice.rank]
