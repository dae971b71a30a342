"""Which axes a user wants dynamic, in every way users write it."""

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


def named_axes(wish: DynamicAxes, interface: Interface) -> dict[str, dict[int, str]]:
    """Return the symbol each named axis of an input or output is to have.

    Axes given without a name get one: "NAME_dim_AXIS". Axes may be counted from the end. Raises UsageError for an
    input, output or axis that is not there, for two names on one axis, and for a number that is not the axis's.
    """
    ports = {port.name: port for port in (*interface.inputs, *interface.outputs)}
    if isinstance(wish, str):
        wish = [wish]
    if isinstance(wish, Mapping):
        pairs = [(name, _from_torch(name, axes, ports)) for name, axes in wish.items()]
    else:
        pairs = [_from_text(text, ports) for text in wish]
    found: dict[str, dict[int, str]] = {}
    for name, axes in pairs:
        known = found.setdefault(name, {})
        for axis, symbol in axes.items():
            if known.setdefault(axis, symbol) != symbol:
                raise UsageError(
                    f"axis {axis} of {name!r} is given two names, {known[axis]!r} and {symbol!r}",
                    code="two-names",
                )
    return {name: axes for name, axes in found.items() if axes}


def fixed_axes(wish: FixedDims, interface: Interface) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
    """Return the size of each axis of an input that is to be fixed, and of each symbol.

    Raises UsageError for a symbol or input that is not there, and for an axis that has another size already.
    """
    ports = {port.name: port for port in interface.inputs}
    known = {dim for port in interface.inputs for dim in port.shape or () if isinstance(dim, str)}
    sizes: dict[str, dict[int, int]] = {}
    symbols: dict[str, int] = {}
    for name, given in _fixes(wish):
        if isinstance(given, int):
            if name not in known:
                raise UsageError(
                    f"no input has a dim named {name!r}",
                    code="unknown-symbol",
                    hint=f"there are {', '.join(sorted(known)) or 'none'}",
                )
            if symbols.setdefault(name, given) != given:
                raise UsageError(f"{name!r} is to be {symbols[name]} and {given}", code="other-size")
            continue
        port = _port(name, ports)
        if port.shape is not None and len(given) != len(port.shape):
            raise UsageError(f"{len(given)} sizes are given for {port}", code="no-such-axis")
        for axis, size in enumerate(given):
            old = port.shape[axis] if port.shape is not None else None
            if isinstance(old, int) and old > 0 and old != size:
                raise UsageError(f"axis {axis} of {port} is to be {size}, and is {old}", code="other-size")
            if isinstance(old, str) and old not in _EMPTY and symbols.setdefault(old, size) != size:
                raise UsageError(f"{old!r} is to be {symbols[old]} and {size}", code="other-size")
            sizes.setdefault(name, {})[axis] = size
    return sizes, symbols


def _fixes(wish: FixedDims) -> Iterator[tuple[str, int | list[int]]]:
    if isinstance(wish, Mapping):
        for name, given in wish.items():
            yield name, given if isinstance(given, int) else list(given)
        return
    for text in [wish] if isinstance(wish, str) else wish:
        name, colon, dims = text.rpartition(":")
        symbol, equals, size = text.rpartition("=")
        numbers = [token.strip() for token in dims.split(",")]
        if colon and name and all(map(str.isdecimal, numbers)):
            yield name, list(map(int, numbers))
        elif equals and symbol and size.strip().isdecimal():
            yield symbol.strip(), int(size)
        else:
            raise UsageError(
                f"{text!r} does not say which dim is fixed", hint="write it like N=1 or x:1,3,224,224"
            )


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
            f"the axes of {name!r} are {axes!r}", hint="a dict of axis to name, or a list of axes, is meant"
        )
    result: dict[int, str] = {}
    for axis, symbol in items:
        place = _axis(axis, port)
        text = f"{name}_dim_{place}" if symbol is None else symbol
        if not isinstance(text, str) or not text:
            raise UsageError(f"axis {axis} of {name!r} is to be called {symbol!r}", hint="a name is meant")
        if result.setdefault(place, text) != text:
            raise UsageError(
                f"axis {place} of {name!r} is given two names, {result[place]!r} and {text!r}",
                code="two-names",
            )
    return result


def _from_text(text: str, ports: Mapping[str, Port]) -> tuple[str, dict[int, str]]:
    name, colon, dims = text.rpartition(":")
    if not colon or not name:
        raise UsageError(f"{text!r} does not say which axes are dynamic", hint="write it like x:N,3,H,W")
    port = _port(name, ports)
    tokens = [token.strip() for token in dims.split(",")]
    if port.shape is not None and len(tokens) != len(port.shape):
        raise UsageError(
            f"{text!r} gives {len(tokens)} axes, and {port} has {len(port.shape)}", code="no-such-axis"
        )
    result: dict[int, str] = {}
    for axis, token in enumerate(tokens):
        size = port.shape[axis] if port.shape is not None else None
        if token.isdecimal():
            if size is not None and size != int(token):
                raise UsageError(
                    f"{text!r} says {token} for axis {axis}, and {port} has {size} there",
                    code="other-size",
                    hint="a number keeps an axis as it is, a name makes it dynamic",
                )
        elif token == "?":
            result[axis] = f"{name}_dim_{axis}"
        elif _NAME.fullmatch(token):
            result[axis] = token
        else:
            raise UsageError(
                f"{text!r} has {token!r} for axis {axis}",
                hint="a number, a name or ? is meant, as in x:N,3,H,W",
            )
    return name, result


def _port(name: str, ports: Mapping[str, Port]) -> Port:
    if name not in ports:
        raise UsageError(
            f"there is no input or output {name!r}",
            code="no-such-input",
            hint=f"there are {', '.join(ports)}",
        )
    return ports[name]


def _axis(axis: object, port: Port) -> int:
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise UsageError(f"{axis!r} is not an axis of {port.name!r}", hint="axes are integers")
    rank = len(port.shape) if port.shape is not None else None
    if rank is not None and not -rank <= axis < rank:
        raise UsageError(f"{port} has no axis {axis}", code="no-such-axis")
    if axis < 0 and rank is None:
        raise UsageError(f"axis {axis} of {port.name!r} cannot be counted, as its rank is not declared")
    return axis % rank if rank else axis
