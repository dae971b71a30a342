"""Runs ncnn on the CPU, by its Python package: pnnx first converts the model to ncnn's format, for the shapes of the inputs.

ncnn has no axis for the batch. For each input and output, pnnx reports which axis it treats as the batch, and whether ncnn gets
this axis. Everything is float32 there, and 16-bit arithmetic and storage are turned off.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import ncnn
import numpy as np

__all__ = ["load", "version"]

TITLE = "ncnn"
ALIASES = ("pnnx",)
PACKAGES = "ncnn pnnx"
FLOOR = 64.0
LOSES_AXES = True  # it has a batch of its own

_TYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8",
}  # fmt: skip
_INPUT = re.compile(
    r'ex\.input\("(\w+)", ncnn\.Mat\(\w+(?:\.squeeze\((-?\d+)\))?\.numpy\(\)(?:, batch_index=(-?\d+))?\)'
)
_OUTPUT = re.compile(
    r"torch\.from_numpy\((?:np\.array\()?(out\d+)(?:\.numpy\((?:batch_index=(-?\d+))?\))?\)+(?:\.unsqueeze\((-?\d+)\))?"
)
"""Code that pnnx 20261020 writes for an output; earlier releases remove the batch by squeeze and write np.array(out0)."""


def version() -> str:
    """Return the name of the runtime and its version; raises ImportError if pnnx is missing."""
    _converter()
    return f"ncnn {ncnn.__version__}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Convert a model for inputs of the shapes of `example`, and load it."""
    for name, value in example.items():
        if value.dtype.name not in _TYPES:
            raise TypeError(f"input {name!r} is of {value.dtype}, which pnnx does not take")
    shapes = ",".join(f"[{','.join(map(str, v.shape))}]{_TYPES[v.dtype.name]}" for v in example.values())
    net = ncnn.Net()
    for option in (
        "fp16_packed",
        "fp16_storage",
        "fp16_arithmetic",
        "bf16_packed",
        "bf16_storage",
        "vulkan_compute",
    ):
        # Older releases lack some options.
        if hasattr(net.opt, f"use_{option}"):
            setattr(net.opt, f"use_{option}", False)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(path, os.path.join(folder, "m.onnx"))
        command = [_converter(), "m.onnx", f"inputshape={shapes}", "fp16=0"]
        conversion = subprocess.run(command, cwd=folder, stdout=2, stderr=subprocess.PIPE, check=False)
        written = os.path.join(folder, "m.ncnn.param")
        if conversion.returncode or not os.path.exists(written):
            last_lines = conversion.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
            raise RuntimeError(
                f"pnnx does not convert it (exit code {conversion.returncode}): {' / '.join(last_lines)}"
            )
        with open(os.path.join(folder, "m_ncnn.py"), encoding="utf-8") as file:
            usage = file.read()
        if net.load_param(written) or net.load_model(os.path.join(folder, "m.ncnn.bin")):
            raise RuntimeError("ncnn does not load what pnnx made of it")
    declared_inputs, returned = _INPUT.findall(usage), _OUTPUT.findall(usage)
    if len(declared_inputs) != len(example) or len(returned) != len(outputs):
        raise RuntimeError(
            f"pnnx makes {len(declared_inputs)} inputs and {len(returned)} outputs of {len(example)} and {len(outputs)}"
        )

    def run(feed: dict[str, Any]) -> list[Any]:
        with net.create_extractor() as extractor:
            mats = [
                _mat(feed[name], squeezed, batch)
                for name, (_, squeezed, batch) in zip(example, declared_inputs)  # noqa: B905 (Python 3.9)
            ]
            # An ncnn.Mat does not own its array, so all of them must live until the outputs are extracted.
            for (own, _, _), mat in zip(declared_inputs, mats):  # noqa: B905
                if extractor.input(own, mat):
                    raise RuntimeError(f"ncnn does not take {own}")
            return [_array(extractor, *how) for how in returned]

    return run


def _mat(value: Any, squeezed: str, batch: str) -> Any:
    array = np.ascontiguousarray(value)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 4:
        narrow = array.astype(np.int32)
        if not np.array_equal(narrow, array):
            raise TypeError("an input holds integers beyond 32 bits, which ncnn does not have")
        array = narrow
    elif array.dtype == np.float64:
        array = array.astype(np.float32)
    if squeezed:
        array = np.ascontiguousarray(array.squeeze(int(squeezed)))
    # A Mat does not own its array; the clone does.
    return (ncnn.Mat(array, batch_index=int(batch)) if batch else ncnn.Mat(array)).clone()


def _array(extractor: Any, name: str, batch: str, unsqueezed: str) -> Any:
    ended, mat = extractor.extract(name)
    if ended:
        raise RuntimeError(f"ncnn does not compute {name} (code {ended})")
    array = np.array(mat.numpy(batch_index=int(batch)) if batch else mat.numpy())
    return np.expand_dims(array, int(unsqueezed)) if unsqueezed else array


def _converter() -> str:
    spec = importlib.util.find_spec("pnnx")  # importing it would import torch
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for name in ("pnnx", "pnnx.exe"):
            if os.path.isfile(os.path.join(folder, name)):
                return os.path.join(folder, name)
    program = shutil.which("pnnx")
    if not program:
        raise ImportError("No module named 'pnnx', which converts models for ncnn")
    return program
