"""What a node demands of its inputs that onnx's inference does not check, and whether it mixes the items of a batch."""

from __future__ import annotations

from collections.abc import Callable

from .domain import Dim, Value
from .node_context import Place

__all__ = ["contradiction", "misfit", "mixture"]


_ELEMENTWISE = frozenset(
    {
        "Add", "Sub", "Mul", "Div", "Pow", "Where", "Min", "Max", "Sum", "And", "Or",
        "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal",
    }
)  # fmt: skip


def contradiction(place: Place) -> str:
    """Say why a node cannot run at other sizes although inference finds nothing; "" if it can."""
    check = _CHECKS.get(place.node.op_type)
    return check(place) if check else ""


def _dims(place: Place, index: int) -> tuple[Dim | None, ...] | None:
    value = place.input(index)
    return value.dims if value is not None else None


def _convolution(place: Place) -> str:
    x, weights = _dims(place, 0), _dims(place, 1)
    if x is None or weights is None or len(x) < 2 or x[1] is None or not x[1].varies:
        return ""
    return f"its weights are for {x[1].frozen} channels, and that axis follows {place.name_of(x[1])}"


def _gemm(place: Place) -> str:
    a, b = _dims(place, 0), _dims(place, 1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return ""
    inner = a[0 if place.attributes.get("transA") else 1]
    other = b[1 if place.attributes.get("transB") else 0]
    if inner is None or other is None or inner.sizes == other.sizes:
        return ""
    return f"the axes it multiplies follow {place.name_of(inner)} and {place.name_of(other)}"


def _channels(place: Place) -> str:
    x = _dims(place, 0)
    if x is None or len(x) < 2 or x[1] is None or not x[1].varies:
        return ""
    held = [_dims(place, index) for index in range(1, len(place.given))]
    if all(dims is not None and len(dims) == 1 and dims[0] == x[1] for dims in held):
        return ""
    return f"its constants are for {x[1].frozen} channels, and that axis follows {place.name_of(x[1])}"


def _recurrent(place: Place) -> str:
    x = _dims(place, 0)
    if x is None or len(x) != 3:
        return ""
    if x[2] is not None and x[2].varies:
        return f"its weights are for {x[2].frozen} features, and that axis follows {place.name_of(x[2])}"
    layout = place.attributes.get("layout", 0)
    batch = x[0 if layout else 1]
    for index in (5, 6):
        state = _dims(place, index)
        if state is None or len(state) != 3 or batch is None:
            continue
        items, directions = state[0 if layout else 1], state[1 if layout else 0]
        if directions is not None and directions.varies:
            return f"its state has an axis for directions, and that follows {place.name_of(directions)}"
        if items is not None and items.sizes != batch.sizes:
            return f"its input has {place.name_of(batch)} items, and its state {place.name_of(items)}"
    return ""


_CHECKS: dict[str, Callable[[Place], str]] = {
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Gemm": _gemm,
    "BatchNormalization": _channels,
    "InstanceNormalization": _channels,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
}


def misfit(place: Place) -> str:
    """Say which axes do not fit, of a node that takes its inputs element by element."""
    shapes = [value.dims if value is not None else None for value in place.given]
    if place.node.op_type not in _ELEMENTWISE or None in shapes:
        return ""
    known = [(name, dims) for name, dims in zip(place.node.input, shapes, strict=True) if dims]
    for back in range(1, max((len(dims) for _, dims in known), default=0) + 1):
        along = [(name, len(dims) - back, dims[-back]) for name, dims in known if len(dims) >= back]
        moving = next((place.name_of(dim) for _, _, dim in along if dim is not None and dim.varies), "")
        for name, axis, dim in along:
            if moving and dim is not None and not dim.varies and dim.frozen != 1:
                return (
                    f"axis {axis} of {name!r} is {dim.frozen} whatever the sizes, and is to follow {moving}"
                )
    return ""


def mixture(place: Place, outputs: list[Value]) -> str:
    """Say over which axis a node mixes the items of a batch; "" if over none."""
    x = _dims(place, 0)
    if x is None or not any(map(place.worlds.carries_batch, x)):
        return ""
    mixed = [
        axis
        for axis in _mixed(place, len(x))
        if -len(x) <= axis < len(x) and place.worlds.carries_batch(x[axis])
    ]
    if not mixed:
        return ""
    return f"it mixes the items of a batch, which lie on its axis {mixed[0]}"


def _mixed(place: Place, rank: int) -> list[int]:
    """Return the axes of the first input along which elements meet."""
    kind, attributes = place.node.op_type, place.attributes
    if kind in ("Softmax", "LogSoftmax", "Hardmax"):
        axis = attributes.get("axis", -1 if place.rw.version >= 13 else 1)
        return [axis] if place.rw.version >= 13 else list(range(axis % max(rank, 1), rank))
    if kind in ("ArgMax", "ArgMin"):
        return [attributes.get("axis", 0)]
    if kind in ("TopK", "CumSum"):
        axis = place.numbers(1) if kind == "CumSum" else None
        return (
            [int(axis.reshape(-1)[0])]
            if axis is not None
            else [attributes.get("axis", -1)]
            if kind == "TopK"
            else []
        )
    if kind.startswith("Reduce"):
        axes = place.numbers(1)
        given = axes.tolist() if axes is not None else attributes.get("axes")
        if given:
            return [int(axis) for axis in given]
        known = len(place.node.input) < 2 or not place.node.input[1]
        return list(range(rank)) if known and not attributes.get("noop_with_empty_axes") else []
    if kind in (
        "Conv",
        "ConvTranspose",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "LpPool",
    ):
        return list(range(1, rank))
    if kind in ("InstanceNormalization", "GroupNormalization"):
        return list(range(2, rank))
    if kind == "LayerNormalization":
        return list(range(attributes.get("axis", -1) % max(rank, 1), rank))
    if kind in ("LSTM", "GRU", "RNN"):
        return [1, 2] if attributes.get("layout", 0) else [0, 2]
    if kind == "MatMul":
        return [rank - 1]
    if kind == "Gemm":
        return [0 if attributes.get("transA") else 1]
    return []
