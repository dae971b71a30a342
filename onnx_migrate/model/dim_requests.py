"""What users write to make dims dynamic or fixed, parsed against the inputs and outputs of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from onnx_migrate.errors import UsageError
from onnx_migrate.model.interface import Interface, Port

__all__ = ["DynamicAxes", "FixedDims", "fixed_axes", "named_axes"]

DynamicAxes = Mapping[str, Mapping[int, str] | Sequence[int]] | str | Iterable[str]
"""torch.onnx's `dynamic_axes` (names, indices, or both mixed), or "input:N,3,H,W", or several such texts."""

FixedDims = Mapping[str, int | Sequence[int]] | str | Iterable[str]
"""A size for a symbol, or all sizes of an input: {"N": 1, "x": [1, 3, 224, 224]}, "N=1", "x:1,3,224,224", or several."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_EMPTY = frozenset({"?", "None", "none", "-1", "0", "unk", "dynamic"})
"""What exporters write for a dim they do not know: twice the same does not mean the same size."""


def named_axes(request: DynamicAxes, interface: Interface) -> dict[str, dict[int, str]]:
    """Return the symbol that is asked for each axis of an input or output, by name and axis.

    Axes given without a name get one: "NAME_dim_AXIS". Axes may be counted from the end. Raises UsageError for an
    input, output or axis that is not there, for two names on one axis, and for a number that is not the axis's.
    """
    ports = {port.name: port for port in (*interface.inputs, *interface.outputs)}
    if isinstance(request, str):
        request = [request]
    if isinstance(request, Mapping):
        pairs = [(name, _from_torch(name, axes, ports)) for name, axes in request.items()]
    else:
        pairs = [_from_text(text, ports) for text in request]
    found: dict[str, dict[int, str]] = {}
    for name, axes in pairs:
        known = found.setdefault(name, {})
        for axis, symbol in axes.items():
            if known.setdefault(axis, symbol) != symbol:
                raise UsageError(
                    f"axis {axis} of {name!r} was given two names, {known[axis]!r} and {symbol!r}",
                    code="two-names",
                )
    return {name: axes for name, axes in found.items() if axes}


def fixed_axes(request: FixedDims, interface: Interface) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
    """Return the size that is asked for each axis, by input and axis, and for each symbol.

    Raises UsageError for a symbol or input that does not exist, and for an axis that has another size already.
    """
    ports = {port.name: port for port in interface.inputs}
    known = {dim for port in interface.inputs for dim in port.shape or () if isinstance(dim, str)}
    sizes: dict[str, dict[int, int]] = {}
    symbols: dict[str, int] = {}
    for name, given in _fixes(request):
        if isinstance(given, int):
            if name not in known:
                raise UsageError(
                    f"no input has a dim named {name!r}",
                    code="unknown-symbol",
                    hint=f"the names are {', '.join(sorted(known))}"
                    if known
                    else "all dims of the inputs are numbers",
                )
            if symbols.setdefault(name, given) != given:
                raise UsageError(
                    f"{name!r} was given two sizes, {symbols[name]} and {given}", code="other-size"
                )
            continue
        port = _port(name, ports)
        if port.shape is not None and len(given) != len(port.shape):
            raise UsageError(
                f"{len(given)} sizes were given for {port}, which has {len(port.shape)} axes",
                code="no-such-axis",
            )
        for axis, size in enumerate(given):
            old = port.shape[axis] if port.shape is not None else None
            if isinstance(old, int) and old > 0 and old != size:
                raise UsageError(
                    f"axis {axis} of {port} has the length {old} and cannot become {size}", code="other-size"
                )
            if isinstance(old, str) and old not in _EMPTY and symbols.setdefault(old, size) != size:
                raise UsageError(f"{old!r} was given two sizes, {symbols[old]} and {size}", code="other-size")
            sizes.setdefault(name, {})[axis] = size
    return sizes, symbols


def _fixes(request: FixedDims) -> Iterator[tuple[str, int | list[int]]]:
    if isinstance(request, Mapping):
        for name, given in request.items():
            yield name, given if isinstance(given, int) else list(given)
        return
    for text in [request] if isinstance(request, str) else request:
        name, colon, dims = text.rpartition(":")
        symbol, equals, size = text.rpartition("=")
        numbers = [token.strip() for token in dims.split(",")]
        if colon and name and all(map(str.isdecimal, numbers)):
            yield name, list(map(int, numbers))
        elif equals and symbol and size.strip().isdecimal():
            yield symbol.strip(), int(size)
        else:
            raise UsageError(f"{text!r} is not a dim and its size", hint="write it like N=1 or x:1,3,224,224")


def _from_torch(
    name: str, axes: Mapping[int, str] | Sequence[int], ports: Mapping[str, Port]
) -> dict[int, str]:
    port = _port(name, ports)
    if isinstance(axes, Mapping):
        items: Iterable[tuple[int, str | None]] = axes.items()
    elif isinstance(axes, (list, tuple)):
        items = ((axis, None) for axis in axes)
    else:
        raise UsageError(
            f"the axes of {name!r} are given as {axes!r}",
            hint="give a dict of axis to name, or a list of axes",
        )
    result: dict[int, str] = {}
    for axis, symbol in items:
        index = _axis(axis, port)
        text = f"{name}_dim_{index}" if symbol is None else symbol
        if not isinstance(text, str) or not text:
            raise UsageError(
                f"{symbol!r} is not a name for axis {axis} of {name!r}",
                hint="a name is a text, and not empty",
            )
        if result.setdefault(index, text) != text:
            raise UsageError(
                f"axis {index} of {name!r} was given two names, {result[index]!r} and {text!r}",
                code="two-names",
            )
    return result


def _from_text(text: str, ports: Mapping[str, Port]) -> tuple[str, dict[int, str]]:
    name, colon, dims = text.rpartition(":")
    if not colon or not name:
        raise UsageError(f"{text!r} does not name an input and its axes", hint="write it like x:N,3,H,W")
    port = _port(name, ports)
    tokens = [token.strip() for token in dims.split(",")]
    if port.shape is not None and len(tokens) != len(port.shape):
        raise UsageError(
            f"{text!r} has {len(tokens)} axes, but {port} has {len(port.shape)}", code="no-such-axis"
        )
    result: dict[int, str] = {}
    for axis, token in enumerate(tokens):
        size = port.shape[axis] if port.shape is not None else None
        if token.isdecimal():
            if size is not None and size != int(token):
                raise UsageError(
                    f"{text!r} has {token} for axis {axis}, but that axis of {port} has the length {size}",
                    code="other-size",
                    hint=f"write {size} to keep the axis fixed, or a name to make it dynamic",
                )
        elif token == "?":
            result[axis] = f"{name}_dim_{axis}"
        elif _NAME.fullmatch(token):
            result[axis] = token
        else:
            raise UsageError(
                f"{text!r} has {token!r} for axis {axis}, which is no number, name or ?",
                hint="write a number, a name or ? for each axis, as in x:N,3,H,W",
            )
    return name, result


def _port(name: str, ports: Mapping[str, Port]) -> Port:
    if name not in ports:
        raise UsageError(
            f"the model has no input or output {name!r}",
            code="no-such-input",
            hint=f"its inputs and outputs are {', '.join(ports)}",
        )
    return ports[name]


def _axis(axis: object, port: Port) -> int:
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise UsageError(f"{axis!r} is not an axis of {port.name!r}", hint="axes are integers")
    rank = len(port.shape) if port.shape is not None else None
    if rank is not None and not -rank <= axis < rank:
        raise UsageError(f"{port} has no axis {axis}", code="no-such-axis")
    if axis < 0 and rank is None:
        raise UsageError(
            f"axis {axis} of {port.name!r} counts from the end, but {port.name!r} declares no shape",
            hint="count axes from 0",
        )
    return axis % rank if rank else axis
