"""Old releases of runtimes: installed with pip or npm once, then kept, and run in a Python of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from onnx_migrate.verify.evaluators.driver_facts import DRIVERS
from tests.real.wheels import CACHE

__all__ = ["Ran", "Unavailable", "run"]

_PROBE = Path(__file__).with_name("probe.py")
_PACKAGES = {
    "mnn": lambda version: [f"MNN=={version}"],
    "ncnn": lambda version: [f"ncnn=={version}", f"pnnx=={version.rpartition('.')[2]}"],
    "opencv": lambda version: [f"opencv-python-headless=={version}"],
    "tvm": lambda version: [
        f"apache-tvm=={version}",
        "apache-tvm-ffi",
        "ml-dtypes",
        "onnx",
        "protobuf",
        "typing-extensions",
    ],
}
"""What to install for a release, where it is not one distribution of the runtime's name."""


class Unavailable(Exception):
    """No Python that is here can install a release."""


@dataclass(frozen=True)
class Ran:
    """How each model ended ("right", "wrong", "fails", "crashes" or "times out"), why, and what the release says of itself."""

    ended: dict[str, str]
    why: dict[str, str]
    release: dict[str, Any]


def run(runtime: str, version: str, folder: Path, names: Iterable[str], python: str = "") -> Ran:
    """Run the models FOLDER/NAME.onnx, on what lies in FOLDER/io, in a release. Raises Unavailable.

    `python` is one that has the release; without it, one is found and pip installs the release for it. A model that brings
    the process down is one that crashes; the others are run in a new one.
    """
    paths: list[Path] = []
    if not python:
        wanted = _PACKAGES.get(runtime, lambda version: [f"{runtime}=={version}"])(version)
        python, paths = _installed(wanted) if runtime != "onnxruntime-web" else _of_npm(version)
    arguments = ["probe", runtime, str(folder), str(DRIVERS), str(_PROBE.parent / "drivers")]
    code = f"import sys; sys.path[:0] = {list(map(str, paths))!r}; sys.argv = {arguments!r}; "
    code += f"exec(compile(open({str(_PROBE)!r}).read(), 'probe', 'exec'))"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    left, ran = list(names), Ran({}, {}, {})
    while not ran.release:
        done = subprocess.run(
            [python, "-I", "-c", code],
            input="".join(f"{name}\n" for name in left),
            capture_output=True,
            text=True,
            env={**environment, "OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"},
            check=False,
        )
        begun = ""
        for line in map(json.loads, done.stdout.splitlines()):
            if "ended" in line:
                ran.ended[begun], ran.why[begun] = line["ended"], line.get("why", "")
            elif "begins" in line:
                begun = line["begins"]
            else:
                ran.release.update(line["release"])
        if done.returncode and not begun:
            raise RuntimeError(f"{runtime} {version} does not start: {done.stderr[-2000:]}")
        if not ran.release:
            ran.ended.setdefault(begun, "times out" if done.returncode == -signal.SIGALRM else "crashes")
            left = left[left.index(begun) + 1 :]
    return ran


@cache
def _pythons() -> dict[str, str]:
    """Return the Pythons that are here by tag: this one, then pyenv's, the newest first."""
    found = {f"cp{sys.version_info.major}{sys.version_info.minor}": sys.executable}
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in sorted(folder.glob("3.*/bin/python"), key=_minor, reverse=True):
        found.setdefault(f"cp3{_minor(path)}", str(path))
    return found


def _minor(python: Path) -> int:
    return int(python.parts[-3].split(".")[1])


def _installed(wanted: Sequence[str]) -> tuple[str, list[Path]]:
    """Return a Python that runs a release, and the folders that it and NumPy lie in. Raises Unavailable."""
    for there in (True, False):
        for tag, python in _pythons().items():
            folder = CACHE / "runtimes" / tag / wanted[0].replace("==", "-")
            if folder.is_dir() or (not there and _install(python, wanted, folder)):
                return python, [folder, _numpy(tag, python)]
    raise Unavailable(f"{' and '.join(wanted)} cannot be installed for any Python that is here")


def _of_npm(version: str) -> tuple[str, list[Path]]:
    """Return this Python, and the folders that its packages and a release of onnxruntime-web lie in. Raises Unavailable."""
    folder = CACHE / "runtimes" / "npm" / f"onnxruntime-web-{version}"
    if not folder.is_dir():
        folder.mkdir(parents=True)
        command = ["npm", "install", "--silent", "--prefix", str(folder), f"onnxruntime-web@{version}"]
        if subprocess.run(command, capture_output=True, check=False, timeout=600).returncode:
            shutil.rmtree(folder)
            raise Unavailable(f"npm does not install onnxruntime-web {version}")
    return sys.executable, [folder, *(Path(entry) for entry in sys.path if entry)]


def _numpy(tag: str, python: str) -> Path:
    """Return where NumPy lies: of the newest that old releases can be run with."""
    folder, minor = CACHE / "runtimes" / tag / "numpy", int(tag.removeprefix("cp3"))
    wanted = "numpy<1.24" if minor <= 8 else "numpy<2" if minor <= 12 else "numpy"
    if not folder.is_dir() and not _install(python, [wanted], folder):
        raise Unavailable(f"{wanted} cannot be installed for {python}")
    return folder


def _install(python: str, requirements: Sequence[str], folder: Path) -> bool:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        target = Path(work) / "target"
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--target", str(target), *requirements]
        if subprocess.run(command, capture_output=True, check=False, timeout=600).returncode:
            return False
        if not folder.is_dir():  # another process may have been quicker
            shutil.move(target, folder)
    return True
