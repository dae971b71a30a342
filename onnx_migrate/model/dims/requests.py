"""Parses the requests of users to make dims dynamic, and checks them against the inputs and outputs of a model."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import count_of
from onnx_migrate.model.interface import Interface, Port, axis_of, port_named, tokens_of

__all__ = ["DynamicAxes", "named_axes"]

_ByName = Mapping[str, Mapping[int, Any] | Sequence[int] | Sequence[int | str | None] | str]

DynamicAxes = _ByName | str | Iterable[str] | Iterable[_ByName]
"""A request to make dims dynamic, in one of these forms, or several as texts or dicts:

- torch.onnx's `dynamic_axes` with names: {"x": {0: "N"}}
- axes that get generated names: {"x": [0, 2]}; one dict may mix both forms
- a torch.export.Dim in place of a name, or None for an axis that stays
- the whole shape: {"x": ["N", 3, "H", "W"]} or "x:N,3,H,W"
"""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_NUMBER = re.compile(r"-?\d{1,9}")
_UNNAMED = frozenset({"?", "-1", "None"})
"""A dynamic axis without a name, as ONNX tools, TensorFlow and NumPy users write it."""

_FORMS = 'give {"x": {0: "N"}}, "x:N,3,H,W", or a list of such; dynamic_batch=True makes the batch of every input dynamic'


def named_axes(request: DynamicAxes, interface: Interface) -> dict[str, dict[int, str]]:
    """Return the requested symbol of each axis of an input or output, by name and axis.

    Axes without a name get the name "NAME_dim_AXIS". Axes may be counted from the end.

    Raises UsageError for an input, output or axis that does not exist, and for two names on one axis. It also does so for
    a number that is not the axis's length.
    """
    ports = {port.name: port for port in (*interface.inputs, *interface.outputs)}
    pairs = [pair for entry in _requests(request) for pair in _named_axes(entry, ports)]
    symbols_by_name: dict[str, dict[int, str]] = {}
    for name, axes in pairs:
        symbols = symbols_by_name.setdefault(name, {})
        for axis, symbol in axes.items():
            _set_name(symbols, name, axis, symbol)
    # A request may name no axis of an input.
    return {name: axes for name, axes in symbols_by_name.items() if axes}


def _requests(request: DynamicAxes) -> list[object]:
    """Return the requests one by one. Raises UsageError for a value without any request."""
    if isinstance(request, (str, Mapping)):
        return [request]
    if isinstance(request, Iterable):
        return [*request]
    raise UsageError(f"dynamic is {request!r}", hint=_FORMS)


def _named_axes(request: object, ports: Mapping[str, Port]) -> Iterator[tuple[str, dict[int, str]]]:
    if isinstance(request, Mapping):
        for name, axes in request.items():
            # A text in a dict has the same form as on the command line.
            if isinstance(axes, str):
                yield from _from_text(f"{name}:{axes}", ports)
            else:
                yield name, _from_torch(name, axes, ports)
    elif isinstance(request, str):
        yield from _from_text(request, ports)
    else:
        raise UsageError(f"{request!r} does not name an input and its axes", hint=_FORMS)


def _from_torch(name: str, axes: object, ports: Mapping[str, Port]) -> dict[int, str]:
    port = port_named(name, ports)
    if isinstance(axes, Mapping):
        axis_symbols: Iterable[tuple[Any, Any]] = (
            # A `?` asks for a generated name.
            (axis, f"{name}_dim_{axis_of(axis, port)}" if _symbol(symbol_request) == "?" else symbol_request)
            for axis, symbol_request in axes.items()
            if _symbol(symbol_request) != ""
        )
    elif isinstance(axes, (list, tuple)):
        if not all(isinstance(axis_entry, int) for axis_entry in axes):
            # A list with texts is the whole shape, with numbers for fixed axes.
            return _from_shape(name, axes, port)
        axis_symbols = ((axis, f"{name}_dim_{axis_of(axis, port)}") for axis in axes)
    else:
        raise UsageError(
            f"the axes of {name!r} are given as {axes!r}",
            hint='give a dict of axis to name, a list of axes, or the shape, as in ["N", 3, "H", "W"]',
        )
    result: dict[int, str] = {}
    for axis, symbol in axis_symbols:
        index = axis_of(axis, port)
        text = _symbol(symbol)
        if not isinstance(text, str) or not text:
            raise UsageError(
                f"{symbol!r} is not a name for axis {axis} of {name!r}",
                hint="a name is a text, and not empty",
            )
        _set_name(result, name, index, text)
    return result


def _from_text(text: str, ports: Mapping[str, Port]) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield the requests of one text, by input or output: one, or with JSON several."""
    if text.lstrip().startswith("{"):
        yield from ((name, _from_torch(name, axes, ports)) for name, axes in _from_json(text).items())
        return
    name, colon, dims = text.rpartition(":")
    if not colon or not name:
        raise UsageError(f"{text!r} does not name an input and its axes", hint=_example(text, ports))
    if name not in ports and name.partition(":")[0] in ports:
        raise UsageError(
            f"{text!r} has several requests in one text",
            hint="repeat --dynamic for each input; in Python, give a list of texts",
        )
    port = port_named(name, ports)
    tokens = tokens_of(dims)
    by_x = dims.strip().split("x")  # TensorRT's tools write 1x3x224x224
    if len(by_x) > 1 and len(by_x) == len(port.shape or ()) and any(map(str.isdecimal, by_x)):
        tokens = by_x
    if all("=" in token for token in tokens):
        yield name, _from_pairs(text, name, tokens, port)
        return
    yield name, _from_tokens(text, name, _with_all_axes(text, tokens, port), port)


def _with_all_axes(text: str, tokens: list[str], port: Port) -> list[str | None]:
    """Return one token for each axis: one alone is the first axis, and ... stands for all axes that are not written."""
    if len(tokens) == 1:
        tokens = [*tokens, "..."]
    if "..." not in tokens:
        return [*tokens]
    if tokens.count("...") > 1:
        raise UsageError(f"{text!r} has ... twice", hint="once stands for all axes that are not written")
    # Axes before ... count from the front, those behind it from the end.
    ellipsis_index = tokens.index("...")
    last = tokens[ellipsis_index + 1 :]
    if port.shape is None and last:
        raise UsageError(
            f"{text!r} counts axes from the end, but {port.name!r} declares no shape",
            hint="write the first axes, as in x:N,...",
        )
    missing = len(port.shape or ()) - ellipsis_index - len(last)
    return [*tokens[:ellipsis_index], *[None] * missing, *last]


def _from_json(text: str) -> Mapping[str, Mapping[int, Any] | Sequence[Any]]:
    """Return the value of JSON or Python text, as torch.onnx's `dynamic_axes`; keys of JSON are texts, so axes may be too."""
    try:
        request = json.loads(text)
    # A dict in Python's spelling has single quotes, which JSON does not accept.
    except ValueError as error:
        try:
            request = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise UsageError(
                f"{text!r} is not JSON: {error}", hint='write it like {"x": {"0": "N"}}'
            ) from error
    if not isinstance(request, dict):
        raise UsageError(f"{text!r} is not a dict", hint='write it like {"x": {"0": "N"}}')
    return {
        # JSON has only texts as keys.
        name: {_number(axis): symbol for axis, symbol in axes.items()} if isinstance(axes, dict) else axes
        for name, axes in request.items()
    }


def _from_pairs(text: str, name: str, tokens: Sequence[str], port: Port) -> dict[int, str]:
    """Return the symbols of `x:0=N,2=H`."""
    result: dict[int, str] = {}
    for token in tokens:
        axis, _, symbol = (part.strip() for part in token.partition("="))
        if not _NUMBER.fullmatch(axis) or not (_NAME.fullmatch(symbol) or symbol in _UNNAMED):
            raise UsageError(
                f"{text!r} has {token!r}, which is no axis and its name",
                hint="write axes and names, as in x:0=N,2=H",
            )
        index = axis_of(int(axis), port)
        _set_name(result, name, index, f"{name}_dim_{index}" if symbol in _UNNAMED else symbol)
    return result


def _number(axis: Any) -> Any:
    return int(axis) if isinstance(axis, str) and _NUMBER.fullmatch(axis) else axis


def _from_shape(name: str, dims: Sequence[Any], port: Port) -> dict[int, str]:
    """Return the request of a whole shape: a number or None keeps an axis, a text or a torch.export.Dim is its symbol."""
    tokens = [None if _symbol(dim) == "" else str(_symbol(dim) or dim) for dim in dims]
    return _from_tokens(f"{name}:{','.join(token or 'None' for token in tokens)}", name, tokens, port)


def _symbol(given: Any) -> str | None:
    """Return the text of a symbol, which may be a torch.export.Dim; "" means an axis that stays, and None no symbol."""
    if given is None:
        return ""
    hint = getattr(getattr(given, "type", None), "name", None)  # of Dim.DYNAMIC, Dim.AUTO and Dim.STATIC
    if type(given).__name__.endswith("DimHint"):
        return "" if hint == "STATIC" else "?"
    return (given or None) if isinstance(given, str) else getattr(given, "__name__", None)


def _from_tokens(text: str, name: str, tokens: Sequence[str | None], port: Port) -> dict[int, str]:
    """Return the symbols that a whole shape names, one token for each axis; messages call the request `text`."""
    if port.shape is not None and len(tokens) != len(port.shape):
        raise UsageError(
            f"{text!r} has {count_of(len(tokens), 'axis')}, but {port} has {len(port.shape)}",
            code="no-such-axis",
        )
    result: dict[int, str] = {}
    for axis, token in enumerate(tokens):
        size = port.shape[axis] if port.shape is not None else None
        if token is None:
            continue
        # A number keeps the axis fixed, and must be right.
        if token.isdecimal():
            if size is not None and size != int(token):
                raise UsageError(
                    f"{text!r} has {token} for axis {axis}, but that axis of {port} has the length {size}",
                    code="other-size",
                    hint=f"write {size} to keep the axis fixed, or a name to make it dynamic",
                )
        elif token in _UNNAMED:
            result[axis] = f"{name}_dim_{axis}"
        elif _NAME.fullmatch(token):
            result[axis] = token
        else:
            raise UsageError(
                f"{text!r} has {token!r} for axis {axis}, which is no number, name or ?",
                hint="write a number, a name or ? for each axis, as in x:N,3,H,W",
            )
    return result


def _set_name(axes: dict[int, str], name: str, axis: int, symbol: str) -> None:
    """Record the symbol of an axis of the input or output `name`. Raises UsageError if the axis has another one."""
    if axes.setdefault(axis, symbol) != symbol:
        raise UsageError(
            f"axis {axis} of {name!r} was given two names, {axes[axis]!r} and {symbol!r}", code="two-names"
        )


def _example(text: str, ports: Mapping[str, Port]) -> str:
    """Return how a request for an input of the model is written: for the one that the text names, or the first."""
    named = [port for name, port in ports.items() if text.startswith(name)]
    for port in [*named, *ports.values()][:1]:
        dims = ",".join(["N", *(str(dim) for dim in (port.shape or ())[1:] if dim is not None)])
        return f"write it like {port.name}:{dims}; the batch of every input is --dynamic-batch"
    return "write it like x:N,3,H,W"
