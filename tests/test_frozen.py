"""Frozen dataclasses with shared methods, which do what those of `dataclasses` do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from onnx_migrate.frozen import dataclass


def classes(dataclass: Any) -> dict[str, Any]:
    """Return the same classes as one of two decorators makes them."""

    @dataclass(frozen=True)
    class Base:
        kind: ClassVar[str] = "base"
        first: int
        second: str = field(default="b", compare=False)
        hidden: list[int] = field(default_factory=list, repr=False, hash=False)

    @dataclass(frozen=True)
    class Derived(Base):
        third: float = 0.5
        named: int = field(kw_only=True)
        made: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.first + 1)

    @dataclass(frozen=True)
    class Nothing:
        pass

    @dataclass(frozen=True, eq=False)
    class Apart:
        first: int = 1

    @dataclass(frozen=True)
    class OwnEquality:
        first: int

        def __eq__(self, other: Any) -> bool:
            return abs(self.first - other.first) < 2

    @dataclass
    class Open:
        first: int = 1

    return {item.__name__: item for item in (Base, Derived, Nothing, Apart, OwnEquality, Open)}


OURS, THEIRS = classes(dataclass), classes(dataclasses.dataclass)

CALLS: list[Callable[[Any], Any]] = [
    lambda cls: cls(1),
    lambda cls: cls(first=1, second="c"),
    lambda cls: cls(1, "c", [2]),
    lambda cls: cls(1, named=3),
    lambda cls: cls(1, "c", [2], 0.25, named=3),
    lambda cls: cls(),
    lambda cls: cls(1, wrong=2),
    lambda cls: cls(1, "c", [2], 0.25, 3),
    lambda cls: setattr(cls(1), "first", 2),
    lambda cls: setattr(cls(1, named=2), "unknown", 2),
    lambda cls: delattr(cls(1), "first"),
    lambda cls: cls(1) == cls(1, "other"),
    lambda cls: cls(1) == cls(2),
    lambda cls: cls(1, hidden=[1]) == cls(1),
    lambda cls: cls(1) == 1,
    lambda cls: hash(cls(1, hidden=[1])) == hash(cls(1, "other")),
    lambda cls: len({cls(1), cls(2)}),
    lambda cls: len({cls(), cls()}),
    lambda cls: cls(1).hidden is cls(1).hidden,
    lambda cls: dataclasses.replace(cls(1), first=5),
    lambda cls: dataclasses.replace(cls(1, named=2), first=5).made,
    lambda cls: dataclasses.asdict(cls(1, "c", [2])),
    lambda cls: copy.deepcopy(cls(1, named=2)),
    lambda cls: cls.__match_args__,
    lambda cls: cls.kind,
    lambda cls: [
        (item.name, item.kind, item.annotation) for item in inspect.signature(cls).parameters.values()
    ],
]


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("call", CALLS)
def test_it_does_what_dataclasses_do(name: str, call: Callable[[Any], Any]) -> None:
    def outcome(cls: Any) -> str:
        try:
            return repr(call(cls))
        except (TypeError, AttributeError) as error:
            return f"{type(error).__name__}: {error}"

    assert outcome(OURS[name]) == outcome(THEIRS[name])


@dataclass(frozen=True)
class Pickled:
    """A class that pickle finds, and that may hold itself."""

    first: int
    others: list[Any] = field(default_factory=list)


def test_it_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, [2]))) == Pickled(1, [2])


def test_what_holds_itself_is_shown_once() -> None:
    made = Pickled(1)
    made.others.append(made)

    assert repr(made) == "Pickled(first=1, others=[...])"
