"""Turns a user's request for a runtime, such as "tract" or "onnxruntime==1.9@FOLDER", into an installed runtime."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import did_you_mean
from onnx_migrate.process import Limits
from onnx_migrate.verify.evaluators.driver_facts import drivers
from onnx_migrate.verify.evaluators.foreign import ForeignProcess, NotInstalled, Place

__all__ = ["RuntimeRequest", "asked_for", "place_of"]

_PATIENCE = 120.0
"""Seconds in which a runtime must have been imported."""


@dataclass(frozen=True)
class RuntimeRequest:
    """A runtime for the proof of a result: the user's request, its location, and its name and version."""

    text: str
    place: Place
    runtime: str


def asked_for(texts: str | Iterable[str]) -> tuple[RuntimeRequest, ...]:
    """Return the runtimes that one or several texts ask for, each once (`place_of`)."""
    request_texts = (texts,) if isinstance(texts, str) else tuple(texts)
    return tuple(place_of(text) for text in dict.fromkeys(text.strip() for text in request_texts))


@cache
def place_of(text: str) -> RuntimeRequest:
    """Return the runtime that NAME[==VERSION][@FOLDER] stands for; the function starts it once to see that it is installed.

    FOLDER is a virtual environment, a folder that `pip install --target` wrote, or, for onnxruntime-web, one with node_modules.
    Without it, the runtime is installed beside this package. Raises UsageError if the runtime is unknown, not installed, or of
    another version.
    """
    head, _, folder = text.strip().partition("@")
    name, _, version = (part.strip() for part in head.partition("=="))
    # Users name the package or the product.
    known, name = drivers(), name.lower()
    name = next((own for own, facts in known.items() if name in facts.aliases), name)
    if name not in known:
        meant = did_you_mean(name, known)
        raise UsageError(
            f"nothing can be run in {text!r} here",
            code="no-such-evaluator",
            hint=f"{meant} models can be run in {', '.join(known)}".lstrip(),
        )
    runtime_place = _in_folder(name, folder) if folder else Place.here(name)
    try:
        # The process tells the version that really runs.
        with ForeignProcess(runtime_place, Limits(_PATIENCE)) as process:
            runtime = process.runtime
    except NotInstalled as error:
        raise UsageError(
            f"{known[name].title} is not installed{f' in {folder}' if folder else ''}: {error}",
            code="runtime-not-installed",
            hint=_command(name, version, folder),
        ) from error
    # A request for a version must not run another one.
    if version and not _is(runtime, version):
        raise UsageError(
            f"{text!r} asks for another version than the one that is there, {runtime}",
            code="runtime-not-installed",
            hint=_command(name, version, folder or "FOLDER")
            + ("" if folder else f", then name it as {name}=={version}@FOLDER"),
        )
    return RuntimeRequest(text.strip(), runtime_place, runtime)


def _in_folder(name: str, folder: str) -> Place:
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise UsageError(
            f"there is no folder {folder}", code="runtime-not-installed", hint=_command(name, "", folder)
        )
    for python in (path / "bin" / "python", path / "Scripts" / "python.exe"):
        if python.is_file():
            return Place(name, str(python))
    return Place(name, sys.executable, (str(path), *(entry or os.curdir for entry in sys.path)))


def _command(name: str, version: str, folder: str) -> str:
    """Return how a runtime is installed."""
    facts = drivers()[name]
    package = facts.packages or name
    if facts.manager == "npm":
        return f"npm install {f'--prefix {folder} ' if folder else ''}{package}{f'@{version}' if version else ''}"
    if not folder:
        return f'pip install "onnx-migrate[{name}]"'
    release = f"=={version}" if version else ""
    return f"python -m venv {folder} && {folder}/bin/pip install {package}{release}"


def _is(runtime: str, version: str) -> bool:
    """Return whether a name with a version, for example "ONNX Runtime 1.9.0", has this version or one of its patches."""
    number = re.search(r"\d+(?:\.\d+)*", runtime.rpartition(" ")[2])
    have = number[0].split(".") if number else []
    # A request for 1.9 accepts 1.9.0.
    wanted = version.split(".")
    return have[: len(wanted)] == wanted
