"""Runs a model once and records its inner values, which later stand at the cuts of smaller models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onnx_migrate.errors import UsageError
from onnx_migrate.process import Returned, mark, seconds_left
from onnx_migrate.verify.equivalence.common_values import ValueTypes, chunks, shapes_of
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.evaluators import REFERENCE, UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.sizes import size_choices
from onnx_migrate.verify.settings import Settings, interruption

__all__ = [
    "Feeds",
    "Values",
    "feeds_of",
    "guessed_feeds",
    "record",
    "recorded_values",
    "run_feeds",
    "time_option",
    "unproved_feeds",
]

_MEMORY = 1 << 29
"""Bytes of values that one run returns, by the sizes that inference finds."""

_IN_MEMORY = 1 << 16
"""Bytes up to which a value stays in memory; a larger one goes to a file."""

_DISTRIBUTIONS = ("normal", "wide", "uniform", "pixels")
"""The random inputs on which the original is tried, in this order."""

Stored = Path | Any
"""A value, or the file that holds it."""


@dataclass(frozen=True)
class Values:
    """The values of a model's main graph on one feed, by name. `reason` says why there are none."""

    stored: Mapping[str, Stored] = field(default_factory=dict)
    reason: str = ""

    def __contains__(self, name: str) -> bool:
        return name in self.stored

    def get(self, name: str) -> Any:
        """Return a value, None if it was not recorded."""
        value = self.stored.get(name)
        # Many callers need only the type and the shape of a large value, and none of its numbers.
        return np.load(value, mmap_mode="r") if isinstance(value, Path) else value

    def array(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return a value that is a tensor; None for another one."""
        value = self.get(name)
        return value if isinstance(value, np.ndarray) else None


@dataclass(frozen=True)
class Feeds:
    """Inputs of the original. `reason` says why it does not run on them in ONNX Runtime; "" if it runs."""

    feeds: tuple[Mapping[str, Any], ...]
    outputs: tuple[Mapping[str, Any], ...] = ()
    """The outputs on each of them; () if it does not run."""
    reason: str = ""


def feeds_of(runnable: Runnable, settings: Settings) -> Feeds:
    """Return the inputs of a model: the user's, or random ones that it runs on. Raises UsageError for inputs that do not fit."""
    ending = settings.alone.call(f"{__name__}:run_feeds", runnable, settings.for_child)
    if isinstance(ending, Returned):
        feeds: Feeds = ending.value
        return feeds
    if (error := getattr(ending, "error", None)) is not None:
        raise error
    # For example, the model crashes ONNX Runtime.
    return guessed_feeds(runnable, settings, interruption(ending, time_option()))


def guessed_feeds(runnable: Runnable, settings: Settings, reason: str) -> Feeds:
    """Return the inputs of a model that nothing here runs for this reason."""
    ending = settings.alone.call(f"{__name__}:unproved_feeds", runnable, settings.for_child)
    return Feeds(ending.value if isinstance(ending, Returned) else (), reason=reason)


def time_option() -> str:
    """Return the option that allows the last child process more time: that of the check, or that of the whole search."""
    return "--check-timeout" if seconds_left() else "--time-limit"


def run_feeds(runnable: Runnable, settings: Settings) -> Feeds:
    """Find the inputs, in a child process."""
    model = runnable.model
    try:
        mark("loading the model")
        extent = Extent(distributions=_DISTRIBUTIONS, thorough=True)
        search = FeedSearch(_opened(runnable), model, model, settings.seed, extent)
        if settings.feeds is not None:
            search.use(settings.feeds)
        else:
            search.generate()
        return Feeds(tuple(dict(feed.inputs) for feed in search.feeds), tuple(search.outputs))
    except EvaluationError as error:
        return Feeds(unproved_feeds(runnable, settings), reason=str(error))


def unproved_feeds(runnable: Runnable, settings: Settings) -> tuple[Mapping[str, Any], ...]:
    """Return inputs of a model that nothing here runs: the user's, or random ones at the first choice of sizes."""
    if settings.feeds is not None:
        return tuple(dict(feed.inputs) for feed in settings.feeds.sets)
    choice = next(iter(size_choices(runnable.model)))
    try:
        feed = RandomInputs(runnable.model, None, choice, settings.seed).feed(_DISTRIBUTIONS[0])
    except UsageError:  # a type without a generator
        return ()
    return () if feed is None else (feed,)


def _opened(runnable: Runnable) -> Any:
    try:
        return open_model(runnable, UNOPTIMIZED)
    except EvaluationError as error:
        try:
            return open_model(runnable, REFERENCE)
        except EvaluationError:
            raise error from None


def recorded_values(runnable: Runnable, feed: Mapping[str, Any], folder: Path, settings: Settings) -> Values:
    """Run a model in a child process and return its values; large ones are written into the folder."""
    ending = settings.alone.call(f"{__name__}:record", runnable, feed, folder)
    if isinstance(ending, Returned):
        values: Values = ending.value
        return values
    return Values(reason=interruption(ending, time_option()))


def record(runnable: Runnable, feed: Mapping[str, Any], folder: Path) -> Values:
    """Record all values of the main graph, in a child process."""
    model = runnable.model
    names = [name for node in model.graph.node for name in node.output if name]
    stored: dict[str, Stored] = {}
    try:
        mark("running the model")
        for part in chunks(names, _types(runnable, feed, names), _MEMORY):
            for name, value in _run(runnable, feed, part).items():
                stored[name] = _stored(value, folder / f"{len(stored)}.npy")
    except EvaluationError as error:
        return Values(reason=str(error))
    return Values(stored)


def _types(runnable: Runnable, feed: Mapping[str, Any], names: list[str]) -> ValueTypes:
    """Return the sizes of the values; one that inference does not find has the mean size of the others."""
    types = ValueTypes(runnable.model, shapes_of(feed))
    known_sizes = [types.sizes[name] for name in names if name in types.sizes]
    mean = sum(known_sizes) // len(known_sizes) if known_sizes else _IN_MEMORY
    types.sizes.update({name: mean for name in names if name not in types.sizes})
    return types


def _run(runnable: Runnable, feed: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the values of one part, those that a runtime can return. Raises EvaluationError if the model does not run."""
    try:
        outputs = open_model(runnable, UNOPTIMIZED, names).run(feed)
    except EvaluationError:
        try:  # ONNX Runtime cannot return every value of an inner type
            open_model(runnable, UNOPTIMIZED).run(feed)
        except EvaluationError as error:
            if error.limit or error.loading:
                return open_model(runnable, REFERENCE, names).run(feed)
            raise
        if len(names) == 1:
            return {}
        half = len(names) // 2
        return {**_run(runnable, feed, names[:half]), **_run(runnable, feed, names[half:])}
    return {name: outputs[name] for name in names if name in outputs}


def _stored(value: Any, path: Path) -> Stored:
    if not isinstance(value, np.ndarray) or value.nbytes <= _IN_MEMORY or value.dtype.hasobject:
        return value
    np.save(path, value)
    return path
