"""How the models of one migration or comparison are run and compared, and how a child process that runs them ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import onnx

from onnx_migrate import process
from onnx_migrate.advice import untried
from onnx_migrate.cached import cached_property
from onnx_migrate.errors import UsageError
from onnx_migrate.process import Ending, Limits, Listener, Worker
from onnx_migrate.process.endings import what_helps
from onnx_migrate.url import absolute
from onnx_migrate.verify.inputs.user_inputs import Feeds, InputData, LateFeeds
from onnx_migrate.verify.kernel import Tolerance

if TYPE_CHECKING:
    from onnx_migrate.verify.inputs.given import GivenInputs

__all__ = ["Libraries", "Settings", "inputs_of", "interruption", "is_crash_of_result", "libraries_of"]

Libraries = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""The path of a shared library, or several."""


@dataclass(frozen=True)
class Settings:
    """Settings for the verification of any model: inputs, tolerances, and the resources of runs.

    Without `input_data` the inputs are random, and the same for the same `seed`. `listen` receives the progress of a
    verification. `worker` is a child process that is ready for it, if there is one. `libraries` have kernels of custom operators,
    for ONNX Runtime. `precision_tolerance` is the error that an output of another precision may have, as a share of its largest
    value. None stands for the limits of the types.
    """

    input_data: InputData | Feeds | None = None
    tolerance: Tolerance = field(default_factory=Tolerance)
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    isolated: bool = True
    listen: Listener | None = None
    worker: Worker | None = None
    libraries: tuple[str, ...] = ()
    precision_tolerance: float | None = None

    @cached_property
    def feeds(self) -> Feeds | None:
        """Return the user's inputs, None for random ones. Raises UsageError if they cannot be read."""
        own_inputs = self.input_data
        # The inputs are read when the model is known.
        if isinstance(own_inputs, LateFeeds):
            return own_inputs.feeds
        return own_inputs if own_inputs is None or isinstance(own_inputs, Feeds) else Feeds.of(own_inputs)

    def feeds_of(self, original: onnx.ModelProto) -> Feeds | None:
        """Return the user's inputs, read for `original` if no model was bound. Raises UsageError if they do not fit."""
        own_inputs = self.input_data
        return own_inputs.bound_first(original) if isinstance(own_inputs, LateFeeds) else self.feeds

    @property
    def for_child(self) -> Settings:
        """The settings with the inputs read, and without the listener and worker of this process."""
        return replace(self, input_data=self.feeds, listen=None, worker=None)

    @property
    def alone(self) -> Settings:
        """The settings for a child process of its own, that nobody listens to."""
        return replace(self, listen=None, worker=None)

    def call(self, function: str, *args: object) -> Ending:
        """Call a function ("package.module:name") in a child process, the one that is ready if there is one."""
        return process.run(
            function,
            *args,
            limits=self.limits,
            isolated=self.isolated,
            listen=self.listen,
            worker=self.worker,
            keep=not self.libraries,
        )


def inputs_of(
    data: InputData | None,
    *,
    mean: str | float | Sequence[float] | None,
    std: str | float | Sequence[float] | None,
    layout: str | None,
    most: int,
) -> GivenInputs | None:
    """Return the user's inputs for one call, None without any. Raises UsageError for options on images alone."""
    if data is None and mean is None and std is None and layout is None:
        return None
    from onnx_migrate.verify.inputs.given import GivenInputs  # most calls have random inputs

    if data is None:
        raise UsageError(
            "--mean, --std and --layout are for images", hint="give these with --input-data FOLDER"
        )
    if isinstance(data, GivenInputs):
        return data
    return GivenInputs(data, mean=mean, std=std, layout=layout, most=most)


def libraries_of(given: Libraries) -> tuple[str, ...]:
    """Return the absolute paths of libraries; this function loads none of them.

    Raises UsageError for one that is no file, and for a relative path if the working folder was deleted.
    """
    paths = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    absolute_paths = tuple(map(absolute, paths))
    for path in absolute_paths:
        # A missing library would show only when a session is made.
        if not os.path.isfile(path):
            raise UsageError(
                f"{path}: there is no such library of custom operators",
                code="ort-library",
                hint="give the path of a shared library that exports RegisterCustomOps; that of onnxruntime-extensions is"
                " onnxruntime_extensions.get_library_path()",
            )
    return absolute_paths


def interruption(ending: Ending, time_option: str = "--timeout") -> str:
    """Describe an ending other than Returned, for example "timed out after 600 s, in the step 'original: running'; …"."""
    text = f"{ending}, in the step {getattr(ending, 'stage', '') or 'start'!r}"
    fault = "that is a fault of onnx-migrate: please report it" if isinstance(ending, process.Raised) else ""
    helps = what_helps(ending, time_option)
    return "; ".join(filter(None, (text, helps and untried(helps), fault)))


def is_crash_of_result(ending: Ending) -> bool:
    """Return whether the result, and nobody from outside, ended the process that loaded or ran it."""
    return (
        isinstance(ending, process.Crashed) and not ending.from_outside and ending.stage.startswith("result")
    )
