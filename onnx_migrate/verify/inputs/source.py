"""One source of inputs: a file, a folder or a function, and the feeds that a reader returns for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import count_of, did_you_mean
from onnx_migrate.verify.inputs.fitting import InputType, ModelInputs
from onnx_migrate.verify.inputs.image_form import ImageForm, ImageOptions
from onnx_migrate.verify.inputs.stored import Reading, StoredInputs
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["DEFAULT_MOST", "Part", "Source", "column", "notes_on"]

DEFAULT_MOST = 1000
"""Number of sets of inputs that a run takes at most, unless the user gives another: each is run several times."""


@dataclass(frozen=True)
class Source:
    """A path, or for a function its text, with the input that it is for ("" if the user named none).

    `inputs` are those of the model. A reader returns `most` sets at most. `keep` stores feeds that a function or a large file
    yields.
    """

    path: Path
    name: str
    inputs: ModelInputs
    images: ImageOptions
    most: int
    keep: Callable[[Iterable[Mapping[str, Any]], str], list[Feed]] = field(repr=False)

    def input(self, fits: Callable[[InputType], bool] = lambda value: True) -> InputType:
        """Return the input that a source of single arrays is for: the one that the user named, or the only one that fits.

        Raises UsageError if there is no such input, or several.
        """
        names = [value.name for value in self.inputs.listed]
        if self.name:
            chosen = [value for value in self.inputs.listed if value.name == self.name]
            if not chosen:
                raise UsageError(
                    f"{self.path}: the model has no input {self.name!r}",
                    code="input-data",
                    hint=f"{did_you_mean(self.name, names)} {self.inputs.text}".strip(),
                )
            return chosen[0]
        chosen = list(self.inputs.fed) if len(self.inputs.fed) == 1 else list(filter(fits, self.inputs.fed))
        if len(chosen) != 1:
            raise UsageError(
                f"{self.path}: it has values of one input, and the model has {count_of(len(self.inputs.fed), 'input')}",
                code="input-data",
                hint=f"write NAME={self.path} for each; {self.inputs.text}",
            )
        return chosen[0]


@dataclass(frozen=True)
class Part:
    """The feeds of one source. A single file `repeats` its values beside a source with several feeds.

    `checked` says that the reader checked the files and makes arrays that fit, so that nobody has to read them first. `form` is
    that of images.
    """

    feeds: Sequence[Feed]
    notes: tuple[str, ...] = ()
    repeats: bool = False
    checked: bool = False
    form: ImageForm | None = None


def column(name: str, label: str, read: Reading) -> Feed:
    """Return a feed with the value of one input, which `read` returns by its name."""
    return Feed(label, StoredInputs((name,), read))


def notes_on(used: int, there: int, noun: str) -> tuple[str, ...]:
    """Return the note that not all files were used; none if they were."""
    if used >= there:
        return ()
    return (f"{used:,} of {there:,} {noun}s were used, evenly spaced by name; --max-inputs takes more",)
