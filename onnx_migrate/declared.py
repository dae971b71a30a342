"""Declares options, and makes functions that take all declared options as keywords."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, wraps
from inspect import Parameter, cleandoc, signature
from textwrap import indent
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

__all__ = [
    "Declared",
    "KeywordsOf",
    "OfSource",
    "Shapes",
    "check_names",
    "current_names",
    "declared",
    "formerly",
    "option",
    "parameters_of",
]

Shapes = Mapping[str, "Sequence[int | str | None] | None"]
"""The shapes of inputs and outputs by name; None for an unknown one."""

T = TypeVar("T")
P = ParamSpec("P")
V = TypeVar("V")
S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Declared:
    """An option: its name, type and default in the library, its text in the library's help, and its flags on the command line.

    `flags` are empty if the command line does not have the option. `panel` is the part of the help that shows it. `click` has
    the arguments of click.option. They give types and completions by name, so that the library does not import click. `off` is
    the value that the flag --no-NAME sets. `reported` says whether a result depends on the option. `former` are earlier names
    of the option; keywords, flags and configuration files may still use them.

    `changes_graph` says whether the option asks for another graph. Without such an option, a migration may change the header
    alone. If `keeps_opset` is true and the caller names no opset, the model keeps its own: who asks for a batch did not ask for
    another opset. If it is false, a newer opset helps, even beside such an option.

    `words` gets a value as JSON's types, and the shapes of the model's inputs and outputs by name. It returns the text, or the
    list of texts, that the flag takes for this value; None if a command line cannot express it.
    """

    name: str
    type: Any
    default: Any
    text: str
    flags: tuple[str, ...]
    panel: str
    off: str
    reported: bool
    former: tuple[str, ...]
    changes_graph: bool
    keeps_opset: bool | None
    words: Callable[[Any, Shapes], Any]
    click: Mapping[str, Any]

    @property
    def negated(self) -> bool:
        """Whether its flag turns off a default."""
        return bool(self.flags) and self.flags[0].startswith("--no-")

    @property
    def parameter(self) -> str:
        """The name of the parameter that passes the flag's value to a command."""
        return f"no_{self.name}" if self.negated else self.name

    @property
    def former_flags(self) -> tuple[str, ...]:
        """The flags of its former names."""
        return tuple(f"--{name.replace('_', '-')}" for name in self.former)


def option(
    default: T, /, *flags: str, text: str, panel: str = "", off: str = "", reported: bool = True,
    former: tuple[str, ...] = (), changes_graph: bool = False, keeps_opset: bool | None = None,
    words: Callable[[Any, Shapes], Any] = lambda value, shapes: value, **click: Any,
) -> T:  # fmt: skip
    """Declare an option as a field of a dataclass; see `Declared`."""
    metadata = {
        "text": cleandoc(text),
        "flags": flags,
        "panel": panel,
        "off": off,
        "reported": reported,
        "former": former,
        "changes_graph": changes_graph,
        "keeps_opset": keeps_opset,
        "words": words,
        "click": click,
    }
    declaration: T = field(default=default, metadata=metadata)
    return declaration


def declared(of: type) -> tuple[Declared, ...]:
    """Return the options that a dataclass declares."""
    return _declared(of)


@cache
def _declared(of: Any) -> tuple[Declared, ...]:
    return tuple(
        Declared(option_field.name, option_field.type, option_field.default, **option_field.metadata)
        for option_field in fields(of)
    )


class OfSource(Protocol[S_contra, P, R_co]):
    """A function of a source and of options as keywords."""

    def __call__(self, source: S_contra, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""


class KeywordsOf(Generic[P]):
    """A decorator: a function of options, after a source or not, takes each of them as a typed keyword.

    Its signature, and the Args of its docstring in place of `options`, come from the declarations of the dataclass.
    """

    def __init__(self, options: Callable[P, Any]) -> None:
        self._options: Any = options

    @overload
    def __call__(self, function: Callable[[V], R]) -> Callable[P, R]: ...

    @overload
    def __call__(self, function: Callable[[S, V], R]) -> OfSource[S, P, R]: ...

    def __call__(self, function: Callable[..., R]) -> Callable[..., R]:
        """Return the function with keywords, which raises TypeError for one that is not declared."""
        own_signature = signature(function)
        *before, _ = own_signature.parameters.values()
        own = {option.name: option for option in declared(self._options)}
        keywords = [
            Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
            for option in own.values()
        ]
        # Tools that read signatures see the options as keywords.
        shown = own_signature.replace(parameters=[*before, *keywords])

        @wraps(function)
        def call(*args: Any, **options: Any) -> R:
            # Scripts that use an old name go on working.
            options = current_names(self._options, options)
            # The error names the function that the caller used.
            check_names(function.__name__, options, shown.parameters)
            bound = shown.bind(*args, **options)
            chosen = {name: bound.arguments.pop(name) for name in options if name in own}
            return function(*bound.arguments.values(), self._options(**chosen))

        # The docstring of the function has one line for all options, which their texts replace.
        lines = (f"{option.name}: {option.text}".replace("\n", "\n    ") for option in own.values())
        docstring = cleandoc(function.__doc__ or "")
        call.__doc__ = re.sub(r"( +)options: .*", lambda place: indent("\n".join(lines), place[1]), docstring)
        call.__signature__ = shown  # type: ignore[attr-defined]
        return call


def current_names(of: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options under their current names. Raises TypeError for an option that has both names."""
    former = {name: option.name for option in declared(of) for name in option.former}
    renamed = dict[str, Any]()
    for name, value in options.items():
        current = former.get(name, name)
        # With both names, it is not clear which value counts.
        if current != name and current in options:
            raise TypeError(f"{name!r} is the old name of {current!r}: pass only one of them")
        renamed[current] = value
    return renamed


def formerly(**former: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return the decorator of a function that still takes keywords under these former names: `former="current"`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> R:
            for name, current in former.items():
                if name in keywords:
                    keywords[current] = keywords.pop(name)
            return function(*args, **keywords)

        return call

    return decorate


def check_names(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for a keyword that a function does not have."""
    for name in given:
        if name not in known:
            from difflib import get_close_matches  # only errors need it

            near = get_close_matches(name, known, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{meant}")


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of a user's function.

    Python 3.14 and later evaluate annotations on request. An annotation may use a name that only type checkers import: it
    becomes a `ForwardRef`.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return list(signature(function, annotation_format=Format.FORWARDREF).parameters.values())
    return list(signature(function).parameters.values())
