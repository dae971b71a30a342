"""Clip: its bounds became inputs."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Clip", 12, reason="more types are allowed")
compatible(
    "Clip", 13, reason="more types are allowed, and what max < min gives is said: max, as runtimes did"
)


@adapter("Clip", to=11)
def clip_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`min` and `max` move from attributes to inputs of the data's type.

    Why equal: a bound left out is the least or greatest finite number of the data's type in both versions
    (so an infinity is clipped all the same), and stays left out.
    """
    for index, name in enumerate(("min", "max"), start=1):
        rw.attribute_to_input(name, index, like=node.input[0])
