"""The backend test cases that onnx's releases carry: models with recorded inputs and outputs, out of the wheels.

A wheel is fetched with pip once and kept. Cases whose files are all equal are one case, of the oldest release.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.real.wheels import CACHE

__all__ = ["RELEASES", "SAMPLED", "Case", "Unavailable", "cases", "wheel"]

RELEASES = {
    "1.0.1": "3.6", "1.1.2": "3.6", "1.2.1": "3.6", "1.2.2": "3.6", "1.2.3": "3.6", "1.3.0": "3.6", "1.4.1": "3.6",
    "1.5.0": "3.6", "1.6.0": "3.7", "1.7.0": "3.7", "1.8.1": "3.7", "1.9.0": "3.7", "1.10.2": "3.9",
    "1.11.0": "3.9", "1.12.0": "3.9", "1.13.1": "3.11", "1.14.1": "3.11", "1.15.0": "3.11", "1.16.2": "3.12",
    "1.17.0": "3.12", "1.18.0": "3.12", "1.19.1": "3.12", "1.20.1": "3.12", "1.21.0": "3.12", "1.22.0": "3.12",
}  # fmt: skip
"""Every minor release of onnx that has a wheel with cases, the oldest first, and a Python it was built for."""

SAMPLED = ("1.0.1", "1.2.1", "1.4.1", "1.7.0", "1.13.1", "1.22.0")
"""The releases that the default run fetches: opsets 1 to 27."""

_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "win_amd64")
"""Its Python and platform do not matter: only a wheel's data is read. 1.0.1 was built for Windows alone."""

_FILE = re.compile(
    r"onnx/backend/test/data/(node|simple|model|pytorch-converted|pytorch-operator)/([\w.-]+)/"
    r"(model\.(?:onnx|pb)|test_data_set_\d+/(?:input|output)_\d+\.pb)$"
)


class Unavailable(Exception):
    """A wheel is not in the cache and cannot be fetched."""


def wheel(release: str) -> Path:
    """Return the wheel of a release of onnx, fetched into the cache when it is not there. Raises Unavailable."""
    found = _wheel(release)
    if isinstance(found, str):
        raise Unavailable(f"onnx {release} cannot be fetched: {found}")
    return found


@cache  # of what could not be fetched too: offline, one try is enough
def _wheel(release: str) -> Path | str:
    folder = CACHE / "onnx-wheels"
    found = sorted(folder.glob(f"onnx-{release}-*.whl"))
    if found:
        return found[0]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--disable-pip-version-check", "--retries", "2", "--dest", work]
        command += ["--implementation", "cp", "--python-version", RELEASES[release]]
        command += [word for platform in _PLATFORMS for word in ("--platform", platform)]
        try:
            done = subprocess.run(
                [*command, f"onnx=={release}"], capture_output=True, text=True, timeout=300, check=False
            )
        except subprocess.TimeoutExpired:
            return "not done after 300 s"
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"pip exits with {done.returncode}"])[-1]
        fetched = next(Path(work).glob("*.whl"))
        return Path(shutil.move(fetched, folder / fetched.name))


@dataclass(frozen=True)
class Case:
    """One model with one or more recorded runs, by the release that first carried it."""

    release: str
    kind: str
    name: str
    prefix: str
    """The folder of the case inside the wheel."""

    def __str__(self) -> str:
        return f"{self.release}/{self.kind}/{self.name}"

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        return onnx.ModelProto.FromString(self.content())

    def content(self) -> bytes:
        """Return the model's file."""
        archive, folders = _archive(self.release)
        (name,) = (name for name in folders[self.prefix] if name.startswith(f"{self.prefix}model."))
        return archive.read(name)

    def load(self) -> tuple[onnx.ModelProto, list[tuple[dict[str, Any], list[Any]]]]:
        """Return the model, and of each recorded run what is fed by input name and the outputs in order."""
        archive, folders = _archive(self.release)
        files = {name.removeprefix(self.prefix): archive.read(name) for name in folders[self.prefix]}
        model = self.model()
        given = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in given]
        runs = []
        for run in sorted({name.partition("/")[0] for name in files if name.startswith("test_data_set_")}):
            fed = _values(files, f"{run}/input", inputs)
            expected = _values(files, f"{run}/output", model.graph.output)
            runs.append((fed, list(expected.values())))
        return model, runs


@cache
def _archive(release: str) -> tuple[zipfile.ZipFile, dict[str, list[str]]]:
    """Return a release's wheel, open, and the files of each case by the case's folder."""
    archive = zipfile.ZipFile(wheel(release))
    folders: dict[str, list[str]] = {}
    for name in sorted(archive.namelist()):
        if match := _FILE.search(name):
            folders.setdefault(name[: match.start(3)], []).append(name)
    return archive, folders


def _values(files: dict[str, bytes], prefix: str, declared: Iterable[onnx.ValueInfoProto]) -> dict[str, Any]:
    return {
        value.name: _value(value.type, files[f"{prefix}_{index}.pb"])
        for index, value in enumerate(declared)
        if f"{prefix}_{index}.pb" in files
    }


def _value(kind: onnx.TypeProto, data: bytes) -> Any:
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    array = numpy_helper.to_array(onnx.TensorProto.FromString(data))
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
    # Up to 1.18, values of types that numpy lacks were recorded as unsigned integers of the same bits.
    if array.dtype != dtype and dtype.kind == "V" and array.dtype == np.dtype(f"u{dtype.itemsize}"):
        array = array.view(dtype)
    return array


def cases(releases: Iterable[str] = tuple(RELEASES)) -> list[Case]:
    """Return the distinct cases of these releases, the oldest first. Raises Unavailable."""
    found: dict[bytes, Case] = {}
    for release in releases:
        archive, folders = _archive(release)
        for prefix, names in folders.items():
            digest = hashlib.sha256()
            for name in names:
                data = archive.read(name)
                digest.update(f"{name.removeprefix(prefix)} {len(data)}\n".encode() + data)
            kind, case = prefix.split("/")[-3:-1]
            found.setdefault(digest.digest(), Case(release, kind, case, prefix))
    return list(found.values())
