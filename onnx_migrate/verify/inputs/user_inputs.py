"""Inputs and recorded outputs that the user supplies, as sets that runs take one after the other."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.errors import UsageError
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.standard.retyping import FLOATS
from onnx_migrate.verify.inputs.fitting import Fitted, ModelInputs, array_of, is_array, named
from onnx_migrate.verify.inputs.stored import Reading, StoredInputs, Values
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["ARRAYS_HINT", "Feed", "Feeds", "InputData", "LateFeeds", "check_feed", "fitted_feed"]

ARRAYS_HINT = 'give a path, arrays by input name, as in {"x": array}, several such dicts, or arrays in the order of the inputs'


@dataclass(frozen=True)
class Feed:
    """One set of inputs by name, and the outputs recorded with them, by name, if any.

    `fixed` marks, for each input, the elements whose exact numbers matter, so that no run moves them to measure rounding. A
    `corner` feed runs beside ordinary random inputs; time limits the number of corner feeds.
    """

    name: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Array] = field(default_factory=dict)
    corner: bool = False


@dataclass(frozen=True)
class Feeds:
    """The user's inputs. Those without a name (`input_0.pb`) have their position as a name: "#0".

    `notes` are sentences for the report on how files became these inputs. `key` tells the inputs of one call from those of
    another: a process that is kept has results on earlier ones.
    """

    sets: tuple[Feed, ...]
    notes: tuple[str, ...] = ()
    key: str = field(default_factory=lambda: os.urandom(8).hex(), compare=False)

    @classmethod
    def of(cls, data: Any) -> Feeds:
        """Return inputs of arrays: a dict by name, several, or arrays in order. Raises UsageError for anything else."""
        if isinstance(data, Mapping):
            return cls((_arrays(data, "input_data"),))
        sets: list[Any] = [data] if is_array(data) else list(data) if isinstance(data, Sequence) else []
        if sets and all(map(is_array, sets)):
            return cls((_arrays({f"#{at}": input_set for at, input_set in enumerate(sets)}, "input_data"),))
        if not sets or not all(isinstance(input_set, Mapping) for input_set in sets):
            raise UsageError(
                f"input_data is of the type {type(data).__name__}{'' if sets else ' and has no inputs'}",
                code="input-data",
                hint=ARRAYS_HINT,
            )
        return cls(tuple(_arrays(input_set, f"input_data {at}") for at, input_set in enumerate(sets)))

    def shapes(self, names: list[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the first set of inputs, of a model whose inputs have these names."""
        first = self.sets[0]
        return {name: np.shape(value) for name, value in named(first.inputs, names, first.name).items()}

    def cover(self, model: onnx.ModelProto) -> bool:
        """Return whether each set of inputs has as many as a model reads by position, or those that it reads by name."""
        names = [value.name for value in fed_inputs(model.graph)]
        positions = {f"#{index}" for index in range(len(names))}
        return all(set(feed.inputs) >= set(names) or set(feed.inputs) == positions for feed in self.sets)

    def of_part(
        self, whole: onnx.ModelProto, part: onnx.ModelProto, fixed: Mapping[str, Any] | None = None
    ) -> Feeds:
        """Return the inputs of a part of a model: those of the whole's inputs that the part reads; all inputs if it reads others.

        Raises UsageError if they have another value for an input that the part has as a constant, one of `fixed`.
        """
        names, read = ([value.name for value in fed_inputs(model.graph)] for model in (whole, part))
        if not self.cover(whole) or not set(read) <= set(names):
            return self
        outputs = [value.name for value in whole.graph.output]
        output_names = {value.name for value in part.graph.output}
        feeds = []
        for feed in self.sets:
            _require_fixed(feed, names, fixed or {})
            recorded = named(feed.expected, outputs, feed.name) if feed.expected else {}
            recorded = {name: value for name, value in recorded.items() if name in output_names}
            feeds.append(replace(_with(feed, partial(_chosen, names, read), read), expected=recorded))
        return replace(self, sets=tuple(feeds))

    def in_types_of(self, model: onnx.ModelProto) -> Feeds:
        """Return the inputs in the types that a model declares, which has another precision or int32; no expected outputs."""
        inputs = fed_inputs(model.graph)
        kinds = {value.name: value.type.tensor_type.elem_type for value in inputs}
        cast = partial(_cast, [value.name for value in inputs], kinds)
        feeds = (replace(_with(feed, cast, [*feed.inputs]), expected={}) for feed in self.sets)
        return replace(self, sets=tuple(feeds))


class LateFeeds(ABC):
    """Inputs that become feeds when the model is known that reads them: an image has the size that the model has."""

    @property
    @abstractmethod
    def feeds(self) -> Feeds:
        """The feeds for the model that was bound first."""

    @abstractmethod
    def bound_first(self, model: onnx.ModelProto) -> Feeds:
        """Return the feeds for the model that was bound first; that is this one if there was none. Raises UsageError."""


InputData = (
    str
    | os.PathLike[str]
    | Mapping[str, Any]
    | Sequence[Mapping[str, Any]]
    | Sequence[Any]
    | Iterable[Any]
    | Callable[[], Iterable[Mapping[str, Any]]]
    | LateFeeds
)
"""The forms in which users give inputs (docs/inputs.md).

A text is a path, "NAME=PATH" or "MODULE:FUNCTION", and several texts work too. A set has arrays by input name. Users give one
set, several, or a function or an iterator that yields sets. Arrays in the order of the inputs, like the arguments of
torch.onnx.export, work too. An array is anything that NumPy reads as one: a list, a number, a TensorProto, a tensor of PyTorch.
"""


@dataclass(frozen=True)
class _Changed:
    """Reads values and changes them by a function, which pickles."""

    read: Reading
    change: Callable[[Values], Values]

    def __call__(self) -> Values:
        return self.change(self.read())


def _with(feed: Feed, change: Callable[[Values], Values], names: Iterable[str]) -> Feed:
    """Return a feed with its values changed by a function, when they are read if they are in files."""
    if isinstance(feed.inputs, StoredInputs):
        return replace(feed, inputs=StoredInputs(tuple(names), _Changed(feed.inputs.read, change)))
    return replace(feed, inputs=change(feed.inputs))


def _chosen(names: list[str], kept: list[str], values: Values) -> Values:
    by_name = named(values, names, "input")
    return {name: by_name[name] for name in kept}


def _cast(names: list[str], kinds: Mapping[str, int], values: Values) -> Values:
    """Return values with floats, and integers for int32, in the types of inputs."""

    def cast(name: str, value: Any) -> Any:
        castable_kinds = (
            "f" if kinds.get(name) in FLOATS else "i" if kinds.get(name) == TensorProto.INT32 else ""
        )
        if not isinstance(value, np.ndarray) or value.dtype.kind not in castable_kinds or not castable_kinds:
            return value
        return value.astype(onnx.helper.tensor_dtype_to_np_dtype(kinds[name]))

    return {key: cast(key, array) for key, array in named(values, names, "input").items()}


def _require_fixed(feed: Feed, names: list[str], fixed: Mapping[str, Any]) -> None:
    """Raise UsageError if a feed has another value for an input than the one that it is fixed to."""
    values = named(feed.inputs, names, feed.name) if fixed else {}
    for name, value in fixed.items():
        if not np.array_equal(values[name], value):
            raise UsageError(
                f"{feed.name}: input {name!r} has another value than the one that it is fixed to",
                code="input-data",
                hint="leave the input out of the data, or fix it to the value that these have",
            )


def _arrays(values: Mapping[str, Any], name: str) -> Feed:
    """Return one set of inputs; numbers and lists stay until their type is known. Raises UsageError for other data."""
    return Feed(name, {str(key): array_of(f"{name}: input {key!r}", value) for key, value in values.items()})


def check_feed(model: onnx.ModelProto, feed: Feed) -> Feed:
    """Return the feed with names in place of positions. Raises UsageError, with the expected inputs as a hint.

    Inputs in files are checked when they are read.
    """
    return fitted_feed(ModelInputs.of(model), feed)


def fitted_feed(inputs: ModelInputs, feed: Feed) -> Feed:
    """Return the result of `check_feed` for these inputs of a model."""
    expected = named(feed.expected, list(inputs.outputs), f"{feed.name}: output")
    if not isinstance(feed.inputs, StoredInputs):
        return Feed(feed.name, inputs.fit(feed.name, feed.inputs), expected)
    names = inputs.named(feed.name, dict.fromkeys(feed.inputs))
    inputs.check_names(feed.name, names)
    read = Fitted(feed.inputs.read, inputs, feed.name)
    return Feed(feed.name, StoredInputs(tuple(names), read), expected)
