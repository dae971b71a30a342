"""New names for values and nodes, unique in the whole model."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter

import onnx

from onnx_migrate.model.graphs import bodies, initializer_names, inputs_of_each, outputs_of_each

__all__ = ["Names"]


_name = attrgetter("name")


class Names:
    """Produces names that no body of a model uses, so that a new name shadows none in any scope."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._taken: set[str] | None = None
        self._last: dict[str, int] = {}
        self._proto = proto

    def fresh(self, wish: str) -> str:
        """Return `wish`, or `wish_N` with the smallest N from 1 on that is free, and reserve it."""
        if self._taken is None:
            self._taken = _names(self._proto)
        if wish not in self._taken:
            self._taken.add(wish)
            return wish
        # From the last number on, so that a name asked for often is not searched from 1 again.
        number = self._last.get(wish, 0)
        name = f"{wish}_{number}" if number else wish
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        self._last[wish] = number
        return name


def _names(proto: onnx.ModelProto) -> set[str]:
    """Return the names of all values and nodes of a model, of all its bodies."""
    all_names: set[str] = set()
    for located in bodies(proto):
        body = located.body
        # A function lists its inputs by name alone.
        if isinstance(body, onnx.GraphProto):
            all_names.update(value.name for value in (*body.input, *body.output))
            all_names |= initializer_names(body)
        else:
            all_names.update(body.input)
        all_names.update(map(_name, body.node))
        all_names.update(chain.from_iterable(inputs_of_each(body.node)))
        all_names.update(chain.from_iterable(outputs_of_each(body.node)))
    return all_names
