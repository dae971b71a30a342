"""docs/library.md: its code runs, in one process of its own, and a type checker accepts it as a user's scripts."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import FIXTURES, ROOT
from tests.support.skips import Elsewhere, skip_if
from tests.support.warm_start import warm

TEXT = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)

TORCH = """
import types

import numpy as np
from onnx import load


def module(*_):
    return types.SimpleNamespace(eval=lambda: None)


nn = types.SimpleNamespace(Sequential=module, Conv2d=module, ReLU=module)
onnx = types.SimpleNamespace(export=lambda *_, **__: types.SimpleNamespace(model_proto=load("model.onnx")))


def rand(*shape):
    return np.random.default_rng(0).random(shape, np.float32)
"""
"""As much of PyTorch as the page uses, for where it is not installed: its exporter returns the model of the page."""

RUN = """
import pathlib, sys, traceback
for path in sorted(pathlib.Path("blocks").glob("*.py")):
    try:
        exec(compile(path.read_text(encoding="utf-8"), path, "exec"), {"__name__": "__main__"})
    except BaseException:
        sys.exit(f"{path}:\\n{path.read_text(encoding='utf-8')}\\n{traceback.format_exc()}")
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with the model of the page, and its blocks as scripts."""
    source = FIXTURES / "conv_relu_upsample_opset11.onnx"
    (tmp_path / "model.onnx").write_bytes(source.read_bytes())
    (tmp_path / "blocks").mkdir()
    (tmp_path / "stand_in").mkdir()
    (tmp_path / "stand_in" / "torch.py").write_text(TORCH, encoding="utf-8")
    for index, block in enumerate(BLOCKS):
        if "import onnx_ir" in block and importlib.util.find_spec("onnx_ir") is None:
            continue  # it would bring a newer NumPy into the oldest versions
        (tmp_path / "blocks" / f"block_{index:02}.py").write_text(block, encoding="utf-8")
    return tmp_path


@pytest.mark.long
def test_the_code_runs_as_it_stands(work: Path) -> None:
    assert len(BLOCKS) >= 12
    ended = subprocess.run(
        [sys.executable, "-c", warm(RUN)],
        cwd=work,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{'' if importlib.util.find_spec('torch') else 'stand_in'}",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert (work / "net.onnx").exists()
    assert (work / "migrated.onnx").exists()


def has_types(path: Path) -> bool:
    """Whether what a script imports has types that a checker can read."""
    return "import torch" not in path.read_text(encoding="utf-8") or bool(importlib.util.find_spec("torch"))


@pytest.mark.long
@skip_if(
    sys.version_info < (3, 11),
    "types are checked with the newest releases of what is imported",
    Elsewhere.NEWEST,
)
def test_a_type_checker_accepts_it_strictly(work: Path) -> None:
    scripts = sorted(str(path) for path in (work / "blocks").glob("*.py") if has_types(path))
    options = ("--strict", "--scripts-are-modules", "--cache-dir", os.devnull, "--ignore-missing-imports")
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *scripts], cwd=work, env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout


def test_the_options_of_its_table_exist() -> None:
    from inspect import signature

    import onnx_migrate
    from onnx_migrate.cli.app import app

    options = {name for command in app.commands.values() for item in command.params for name in item.opts}
    of_others = {"--strict", "--no-deps"}  # of mypy, and of pip
    assert set(re.findall(r"(--[a-z][a-z-]+)", TEXT)) - of_others <= options
    rows = "".join(re.findall(r"^\|.*\|$", TEXT, re.MULTILINE))
    named = set(re.findall(r"`(\w+)=", rows))
    assert named <= signature(onnx_migrate.migrate).parameters.keys()
    assert {
        "runtime",
        "opset",
        "dynamic",
        "fix_shape",
        "input_data",
        "passes",
        "adapters",
        "memory_limit",
    } <= named
