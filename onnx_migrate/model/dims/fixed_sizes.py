"""Parses the requests of users to fix dims, and checks them against the inputs of a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from onnx_migrate.advice import Advice
from onnx_migrate.errors import UsageError
from onnx_migrate.messages import count_of
from onnx_migrate.model.interface import UNNAMED, Interface, Port, axis_of, port_named, tokens_of

__all__ = ["FixedDims", "fixed_axes"]

FixedDims = Mapping[str, int | Sequence[int] | Mapping[int, int]] | str | Iterable[str]
"""A request to fix dims, in one of these forms, or several as texts:

- a size for a symbol: {"N": 1} or "N=1"
- all sizes of an input: {"x": [1, 3, 224, 224]} or "x:1,3,224,224"
- the sizes of some axes: {"y": {0: 1}} or "y:0=1"
"""

_PAIR = re.compile(r"(-?\d{1,9})\s*=\s*(\d{1,9})")


def fixed_axes(request: FixedDims, interface: Interface) -> tuple[dict[str, dict[int, int]], dict[str, int]]:
    """Return the requested size of each axis, by input and axis, and of each symbol.

    Raises UsageError for a symbol or input that does not exist, and for an axis that already has another size.
    """
    ports = {port.name: port for port in interface.inputs}
    symbol_names = {dim for port in interface.inputs for dim in port.shape or () if isinstance(dim, str)}
    sizes: dict[str, dict[int, int]] = {}
    symbols: dict[str, int] = {}
    for name, requested in _fixes(request):
        if isinstance(requested, int):
            if name not in symbol_names:
                raise UsageError(
                    f"no input has a dim named {name!r}",
                    code="unknown-symbol",
                    hint=_hint_for_unknown(name, requested, ports, symbol_names),
                )
            if symbols.setdefault(name, requested) != requested:
                raise UsageError(
                    f"{name!r} was given two sizes, {symbols[name]} and {requested}", code="other-size"
                )
            continue
        port = port_named(name, ports, inputs=True)
        if port.shape is not None and isinstance(requested, list) and len(requested) != len(port.shape):
            raise UsageError(
                f"{port} is given {count_of(len(requested), 'size')}, and has {count_of(len(port.shape), 'axis')}",
                code="no-such-axis",
            )
        for axis, size in _sizes_by_axis(requested, port):
            old = port.shape[axis] if port.shape is not None else None
            # A length of 0 or -1 stands for an open dim in some exports.
            if isinstance(old, int) and old > 0 and old != size:
                raise UsageError(
                    f"axis {axis} of {port} has the length {old} and cannot become {size}",
                    code="other-size",
                    hint=Advice(
                        f"make it dynamic first, with --dynamic {name}:{axis}=N; then fix the result with --fix-shape N={size}",
                        options={"fix_shape": None, "dynamic": f"{name}:{axis}=N"},
                    ),
                )
            # All axes of one symbol get the same size.
            if isinstance(old, str) and old not in UNNAMED and symbols.setdefault(old, size) != size:
                raise UsageError(f"{old!r} was given two sizes, {symbols[old]} and {size}", code="other-size")
            sizes.setdefault(name, {})[axis] = size
    return sizes, symbols


def _hint_for_unknown(name: str, size: int, ports: Collection[str], known: Collection[str]) -> Advice | str:
    """Return the way out for a name that is not the name of a dim."""
    if name in ports:
        return Advice(
            f"--fix-value {name}={size} fixes the value of this input",
            options={"fix_shape": None, "fix_values": f"{name}={size}"},
        )
    if "=" in name:
        return "use the option once for each dim: --fix-shape N=1 --fix-shape H=640"
    return f"the names are {', '.join(sorted(known))}" if known else "all dims of the inputs are numbers"


def _sizes_by_axis(given: list[int] | dict[int, int], port: Port) -> Iterator[tuple[int, int]]:
    if isinstance(given, list):
        return ((axis, size) for axis, size in enumerate(given) if size is not None)
    return ((axis_of(axis, port), size) for axis, size in given.items())


def _fixes(request: FixedDims) -> Iterator[tuple[str, int | list[int] | dict[int, int]]]:
    if isinstance(request, Mapping):
        for name, requested in request.items():
            if isinstance(requested, Mapping):
                yield name, dict(requested)
            else:
                yield name, requested if isinstance(requested, int) else list(requested)
        return
    for text in [request] if isinstance(request, str) else request:
        name, colon, dims = text.rpartition(":")
        symbol, equals, size = text.rpartition("=")
        numbers = tokens_of(dims)
        pairs = [_PAIR.fullmatch(token) for token in numbers]
        # A name may contain colons, as in TensorFlow, so the numbers decide.
        if colon and name and all(map(str.isdecimal, numbers)):
            yield name, list(map(int, numbers))
        elif colon and name and all(pairs):
            yield name, {int(pair[1]): int(pair[2]) for pair in pairs if pair}
        elif equals and symbol and size.strip().isdecimal():
            yield symbol.strip(), int(size)
        else:
            raise UsageError(
                f"{text!r} is not a dim and its size", hint="write it like N=1, x:1,3,224,224 or x:0=1"
            )
