"""The inputs that the user gave for one call, and the feeds that they become for a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import count_of, listed
from onnx_migrate.safe_open.paths import exists
from onnx_migrate.url import absolute
from onnx_migrate.verify.inputs.fitting import ModelInputs, is_array
from onnx_migrate.verify.inputs.image_form import ImageOptions, Numbers
from onnx_migrate.verify.inputs.readers import functions
from onnx_migrate.verify.inputs.readers.registry import files_of, format_of
from onnx_migrate.verify.inputs.source import DEFAULT_MOST, Part, Source
from onnx_migrate.verify.inputs.spool import Spool
from onnx_migrate.verify.inputs.stored import Reading, StoredInputs, Values, spaced
from onnx_migrate.verify.inputs.user_inputs import Feed, Feeds, InputData, LateFeeds, fitted_feed
from onnx_migrate.verify.kernel.arrays import is_float

__all__ = ["GivenInputs", "absolute_text", "data_files", "path_of", "texts_of"]


class GivenInputs(LateFeeds):
    """The user's inputs in any form of `InputData`, with the options that say how they are read.

    `bind` reads them for a model. Later calls for a model with the same inputs return the same feeds, because a function of the
    user's runs once.
    """

    def __init__(
        self,
        data: InputData,
        *,
        mean: Numbers = None,
        std: Numbers = None,
        layout: str | None = None,
        most: int = DEFAULT_MOST,
    ) -> None:
        self.data = data
        self._images = ImageOptions.of(mean, std, layout)
        self._most, self._spool = most, Spool(most)
        self._functions: dict[str, Part] = {}
        self._bound: dict[ModelInputs, Feeds] = {}
        self._has_own_sizes = False

    @classmethod
    def of(cls, data: Any) -> GivenInputs:
        """Return inputs of any form, which may be such inputs already."""
        return data if isinstance(data, cls) else cls(data)

    @property
    def feeds(self) -> Feeds:
        """The feeds for the model that was bound first."""
        if not self._bound:
            return Feeds.of(self.data)
        return next(iter(self._bound.values()))

    def bound_first(self, model: onnx.ModelProto) -> Feeds:
        """Return the feeds for the model that was bound first; that is this one if there was none. Raises UsageError."""
        return self.feeds if self._bound else self.bind(model, complete=False)

    @property
    def has_own_sizes(self) -> bool:
        """Whether the feeds are images in their own sizes, at which the model may not run."""
        return self._has_own_sizes

    def bind(self, model: onnx.ModelProto, *, complete: bool = True) -> Feeds:
        """Return the feeds for a model; each was checked against its inputs. Raises UsageError.

        Unless `complete`, passes will change the inputs, so that values for other names fit as well.
        """
        inputs = ModelInputs.of(model, complete=complete)
        if inputs not in self._bound:
            self._bound[inputs] = self._read(inputs)
        return self._bound[inputs]

    def round_sizes(self, multiple: int) -> Feeds:
        """Read the images again with their own sizes rounded to a multiple, and return `feeds`."""
        self._images = replace(self._images, multiple=multiple)
        self._bound = {inputs: self._read(inputs) for inputs in self._bound}
        return self.feeds

    def _read(self, inputs: ModelInputs) -> Feeds:
        texts = texts_of(self.data)
        parts = [self._part(text, inputs) for text in texts] if texts else [self._part_of_arrays()]
        forms = [part.form for part in parts if part.form is not None]
        if self._images.is_given and not forms:
            raise UsageError("--mean, --std and --layout are for images, and the input data has none")
        self._has_own_sizes = any(form.has_own_size for form in forms)
        feeds = joined(parts, texts)
        used = spaced(feeds, self._most)
        remarks = _Remarks()
        checked = [
            remarks.checked(inputs, feed, read=not all(part.checked for part in parts)) for feed in used
        ]
        notes = [note for part in parts for note in part.notes]
        if len(used) < len(feeds):
            notes.append(f"{len(used):,} of {len(feeds):,} sets of inputs were used; --max-inputs takes more")
        first = f"the first {self._most:,} sets of inputs"
        notes += [f"{first} of {label} were used; --max-inputs takes more" for label in self._spool.limited]
        return Feeds(tuple(checked), (*notes, *remarks.notes()))

    def _part_of_arrays(self) -> Part:
        """Return the feeds of arrays, of a function, or of an iterator."""
        data = self.data
        arrays = is_array(data) or isinstance(data, (Mapping, Sequence))
        if arrays or not (callable(data) or isinstance(data, Iterable)):
            return Part(Feeds.of(data).sets)
        label = getattr(data, "__name__", "input_data")
        return self._once(label, lambda: Part(self._spool.keep(functions.yielded(data, label), label)))

    def _part(self, text: str, inputs: ModelInputs) -> Part:
        name, path_text = _split(text)
        source = Source(Path(path_text), name, inputs, self._images, self._most, self._spool.keep)
        if name:
            source.input()
        if _names_function(path_text):
            return self._once(path_text, lambda: functions.read(source))
        return format_of(source.path).read(source)

    def _once(self, label: str, read: Callable[[], Part]) -> Part:
        """Return the part that a function yields, which is called once."""
        if label not in self._functions:
            self._functions[label] = read()
        return self._functions[label]


def texts_of(data: Any) -> list[str]:
    """Return the texts that name files, folders and functions; none for data of another form."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    several = isinstance(data, Sequence) and not is_array(data) and bool(data)
    if several and all(isinstance(entry, (str, os.PathLike)) for entry in data):
        return [os.fspath(entry) for entry in data]
    return []


def data_files(data: Any) -> list[Path]:
    """Return the files that inputs are read from, those of a function's module included."""
    paths: list[Path] = []
    for text in texts_of(data):
        path_text = _split(text)[1]
        if _names_function(path_text):
            module = functions.module_file(path_text)
            paths += [] if module is None else [module]
        elif Path(path_text).is_dir():
            folder = Path(path_text)
            paths += files_of(folder, format_of(folder))
        else:
            paths.append(Path(path_text))
    return paths


def path_of(text: str) -> str:
    """Return the path that a text names, "" if it names a function."""
    path_text = _split(text)[1]
    return "" if _names_function(path_text) else path_text


def absolute_text(text: str) -> str:
    """Return a text with an absolute path, a function of a module unchanged."""
    name, path_text = _split(text)
    if _names_function(path_text) and ".py" not in path_text:
        return text
    return f"{name}={absolute(path_text)}" if name else absolute(path_text)


def _split(text: str) -> tuple[str, str]:
    """Return the input and the path or function of a text like NAME=PATH; the input is "" if the text has none."""
    name, equals, path_text = text.partition("=")
    return (name, path_text) if equals and name and path_text and not exists(Path(text)) else ("", text)


def _names_function(place: str) -> bool:
    is_script = place.endswith(".py") or not exists(Path(place))
    return is_script and functions.is_function(place)


@dataclass(frozen=True)
class _Joined:
    """Reads the values of several sources as one feed."""

    reads: tuple[Reading, ...]

    def __call__(self) -> Values:
        return {name: value for read in self.reads for name, value in read().items()}


@dataclass(frozen=True, eq=False)
class _Held:
    """Returns values that are in memory."""

    values: Values

    def __call__(self) -> Values:
        return self.values


def joined(parts: Sequence[Part], texts: Sequence[str]) -> list[Feed]:
    """Return feeds with the values of all parts. Raises UsageError if these have other numbers of feeds, or one input twice."""
    if len(parts) == 1:
        return list(parts[0].feeds)
    counts = [len(part.feeds) for part in parts]
    wrong = [
        count for part, count in zip(parts, counts, strict=True) if count != max(counts) and not part.repeats
    ]
    if wrong:
        numbers = listed(
            f"{text} has {count_of(count, 'value')}" for text, count in zip(texts, counts, strict=True)
        )
        raise UsageError(
            f"the sources of the inputs have other numbers of values: {numbers}",
            code="input-data",
            hint="give equally many; only a single file repeats its value",
        )
    rows = zip(*(_repeated(part, max(counts)) for part in parts), strict=True)
    return [_one_feed(row) for row in rows]


def _repeated(part: Part, count: int) -> Sequence[Feed]:
    return part.feeds if len(part.feeds) == count else list(part.feeds) * count


def _one_feed(feeds: Sequence[Feed]) -> Feed:
    names = [name for feed in feeds for name in feed.inputs]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise UsageError(
            f"two sources have values of input {twice!r}", code="input-data", hint="give each input once"
        )
    reads = [
        feed.inputs.read if isinstance(feed.inputs, StoredInputs) else _Held(feed.inputs) for feed in feeds
    ]
    return Feed(feeds[0].name, StoredInputs(tuple(names), _Joined(tuple(reads))), feeds[0].expected)


class _Remarks:
    """Collects what the report says about values: floats that were rounded to the input's type, and NaN."""

    def __init__(self) -> None:
        self._rounded: dict[tuple[str, str, str], int] = {}
        self._nan: dict[str, tuple[str, int]] = {}

    def checked(self, inputs: ModelInputs, feed: Feed, *, read: bool) -> Feed:
        """Return a feed that was checked against the inputs of a model; without `read` its reader did so. Raises UsageError."""
        checked = fitted_feed(inputs, feed)
        if not read:
            return checked
        stored = isinstance(feed.inputs, StoredInputs)
        values = feed.inputs.read() if isinstance(feed.inputs, StoredInputs) else feed.inputs
        values = inputs.named(feed.name, values)
        fitted = inputs.fit(feed.name, values) if stored else checked.inputs
        for name, value in fitted.items():
            self._add(feed.name, name, values[name], value)
        return checked

    def _add(self, feed: str, name: str, before: Any, after: Any) -> None:
        if not isinstance(after, np.ndarray) or not is_float(after):
            return
        if isinstance(before, np.ndarray) and before.dtype != after.dtype:
            kinds = name, str(before.dtype), str(after.dtype)
            self._rounded[kinds] = self._rounded.get(kinds, 0) + 1
        count = int(
            np.count_nonzero(np.isnan(after if after.dtype.kind in "fc" else after.astype(np.float32)))
        )
        if count:
            self._nan.setdefault(name, (feed, count))

    def notes(self) -> Iterator[str]:
        """Yield the sentences."""
        for (name, before, after), count in self._rounded.items():
            yield f"input {name!r} is {after}, so {count_of(count, 'value')} of {before} were rounded to it"
        for name, (feed, count) in self._nan.items():
            yield f"input {name!r} has {count_of(count, 'NaN')} in {feed}: outputs that are NaN in both models prove nothing"
