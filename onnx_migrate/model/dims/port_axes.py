"""What requests for dims have in common: inputs and outputs by name, axes by number, and what is written for each axis."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import islice

from onnx_migrate.errors import UsageError
from onnx_migrate.model.interface import Port

__all__ = ["axis_of", "port_named", "tokens_of"]


def port_named(name: str, ports: Mapping[str, Port]) -> Port:
    """Return the input or output of this name. Raises UsageError, which names the one that may be meant."""
    if name not in ports:
        raise UsageError(
            f"the model has no input or output {name!r}",
            code="no-such-input",
            hint=_nearest(name, ports),
        )
    return ports[name]


def _nearest(name: str, ports: Mapping[str, Port]) -> str:
    lowered = {port.lower(): port for port in ports}
    close = [lowered[near] for near in get_close_matches(name.lower(), lowered, 1)]
    shown = [*islice(ports, 10), *(["..."] if len(ports) > 10 else [])]
    return f"{f'did you mean {close[0]}? ' if close else ''}its inputs and outputs are {', '.join(shown)}"


def axis_of(axis: object, port: Port) -> int:
    """Return the number of an axis, counted from 0. Raises UsageError for what is no axis of the port."""
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


def tokens_of(dims: str) -> list[str]:
    """Return what is written for each axis; brackets around all of it, as of a list, have no meaning."""
    dims = dims.strip()
    if (dims[:1], dims[-1:]) in (("[", "]"), ("(", ")")):
        dims = dims[1:-1]
    return [token.strip() for token in dims.split(",")]
