"""Models of one Pad, and what they are fed."""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "float16": np.float16,
}  # fmt: skip


def text(
    opset: int, attributes: str, pads: list[int], *, value: str = "", axes: list[int] | None = None, dtype: str = "float",
    shape: str = "4, 5",
) -> str:  # fmt: skip
    """Return a model of one Pad whose pads, value and axes are constants."""
    constants = [f"int64[{len(pads)}] p = {{{', '.join(map(str, pads))}}}"]
    constants += [f"{dtype} v = {{{value}}}"] if value else []
    constants += [f"int64[{len(axes)}] a = {{{', '.join(map(str, axes))}}}"] if axes is not None else []
    inputs = ["x", "p", "v" if value else "", "a" if axes is not None else ""]
    while not inputs[-1]:
        inputs.pop()
    return f"""<ir_version: 6, opset_import: ["": {opset}]> graph ({dtype}[{shape}] x) => ({dtype}[] y)
        <{", ".join(constants)}> {{ y = Pad {attributes} ({", ".join(inputs)}) }}"""


def feeds(dtype: str = "float") -> dict[str, np.ndarray[Any, Any]]:
    """Return distinct values of a type for the input of 4 by 5."""
    return {"x": np.arange(20).reshape(4, 5).astype(KINDS[dtype])}
