"""Frozen dataclasses that are quick to make: a command imports two hundred, and `dataclasses` compiles six methods for each.

That takes a fifth of a small model's processor time. Here `__init__` alone is compiled, and all classes share the other methods.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in dataclasses.fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> bool:
    return self._compared(self) == self._compared(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._hashed(self))


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _tuple_of(names: list[str]) -> Any:
    """Return what makes the tuple of an object's fields with these names, as a static method of its class."""
    if len(names) > 1:
        return staticmethod(attrgetter(*names))
    return staticmethod(lambda item: tuple(getattr(item, name) for name in names))


def _init(cls: type, fields: tuple[Field[Any], ...]) -> Any:
    """Return the compiled `__init__`; a field with `init=False` is left to `__post_init__`."""
    names: dict[str, Any] = {"__name__": cls.__module__, "_set": object.__setattr__, "_left_out": object()}
    arguments = ["self"]
    keywords: list[str] = []
    body: list[str] = []
    for item in (item for item in fields if item.init):
        argument = value = name = item.name
        if item.default_factory is not MISSING:
            names[f"_of_{name}"] = item.default_factory
            argument, value = f"{name}=_left_out", f"_of_{name}() if {name} is _left_out else {name}"
        elif item.default is not MISSING:
            names[f"_of_{name}"] = item.default
            argument = f"{name}=_of_{name}"
        (keywords if item.kw_only else arguments).append(argument)
        body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    given = ", ".join([*arguments, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({given}):\n " + ("\n ".join(body) or "pass"), names)
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {**{item.name: item.type for item in fields if item.init}, "return": None}
    return init


def _frozen(cls: type, *, eq: bool = True, **options: Any) -> type:
    cls.__doc__ = (
        cls.__doc__ or cls.__name__
    )  # in place of a signature, for which inspect compiles Python's grammar
    dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {
        "__init__": _init(cls, fields),
        "__repr__": _repr,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
    }
    if eq:
        compared = [item for item in fields if item.compare]
        methods["_compared"] = _tuple_of([item.name for item in compared])
        methods["_hashed"] = _tuple_of([item.name for item in compared if item.hash is not False])
        methods["__eq__"], methods["__hash__"] = _equal, _hash
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:  # a class with an `__eq__` of its own has None for `__hash__`
            setattr(cls, name, method)
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, **options):
        """Make a class a dataclass, as `dataclasses.dataclass` does; a frozen one has no options but `eq` and `kw_only`."""

        def make(cls):
            return _frozen(cls, **options) if frozen else dataclasses.dataclass(**options)(cls)

        return make if cls is None else make(cls)
