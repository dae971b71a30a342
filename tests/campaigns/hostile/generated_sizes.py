"""Generated models whose values have sizes of their own choice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from onnx import NodeProto, TensorProto

from tests.campaigns.hostile.building import model, node, value
from tests.campaigns.hostile.case import Made
from tests.campaigns.hostile.numbers import constant, reading

__all__ = ["sizes"]


def _sized(size: int) -> dict[str, tuple[object, list[NodeProto], list[TensorProto]]]:
    """Return operators whose output has `size` elements or more: the numbers "n" that they read, the nodes, other constants."""
    image, one = constant("w", np.ones((1, 1, 2, 2), np.float32)), constant("one", np.ones(1, np.float32))
    zero, step = constant("z", np.int64(0)), constant("step", np.int64(1))
    return {
        "Expand": ([size], [node("Expand", ["one", "n"], ["big"])], [one]),
        "Tile": ([size], [node("Tile", ["one", "n"], ["big"])], [one]),
        "ConstantOfShape": ([size], [node("ConstantOfShape", ["n"], ["big"])], []),
        "Range": (size, [node("Range", ["z", "n", "step"], ["big"])], [zero, step]),
        "Pad": ([0, size], [node("Pad", ["one", "n"], ["big"])], [one]),
        "OneHot": (
            size,
            [node("OneHot", ["i", "n", "v"], ["big"])],
            [constant("i", [1]), constant("v", np.array([0, 1], np.float32))],
        ),
        "Resize": ([1, 1, 1, size], [node("Resize", ["w", "", "", "n"], ["big"], mode="nearest")], [image]),
        "ResizeLinear": ([1, 1, size, 1], [node("Resize", ["w", "", "", "n"], ["big"], mode="linear")], [image]),
        "EyeLike": ([size, 1], [node("ConstantOfShape", ["n"], ["e"]), node("EyeLike", ["e"], ["big"])], []),
        "NonZero": ([size], [node("Expand", ["one", "n"], ["e"]), node("NonZero", ["e"], ["big"])], [one]),
        "CumSum": ([size], [node("Expand", ["one", "n"], ["e"]), node("CumSum", ["e", "z"], ["big"])], [one, zero]),
        "Gather": (
            [size],
            [
                node("ConstantOfShape", ["n"], ["e"], value=constant("", np.zeros(1, np.int64))),
                node("Gather", ["one", "e"], ["big"]),
            ],
            [one],
        ),
        "RandomLike": ([size], [node("ConstantOfShape", ["n"], ["e"]), node("RandomNormalLike", ["e"], ["big"])], []),
        "TopK": ([size], [node("ConstantOfShape", ["n"], ["e"]), node("TopK", ["e", "n"], ["big", "places"])], []),
        "Slice": (
            [size],
            [node("ConstantOfShape", ["n"], ["e"]), node("Slice", ["e", "zs", "n"], ["big"])],
            [constant("zs", [0])],
        ),
    }  # fmt: skip


def sizes() -> Iterator[tuple[str, Made]]:
    for (source, power), operator in itertools.product(
        (("stored", 28), ("stored", 33), ("computed", 31), ("function", 40), ("shape", 62)), _sized(4)
    ):
        numbers, nodes, constants = _sized(2**power)[operator]
        if operator == "Pad" and source == "shape":
            source = "constant"
        yield f"size_{operator}_{source}_{power}", reading(source, "n", numbers, nodes, constants)
    for power in (14, 20, 31):
        size = 2**power
        image = value("x", (1, 1, 4, 4))
        weight = constant("w", np.ones((1, 1, 2, 2), np.float32))
        for name, made in (
            ("ConvTranspose", node("ConvTranspose", ["x", "w"], ["y"], strides=[size, size])),
            ("Conv", node("Conv", ["x", "w"], ["y"], pads=[size] * 4)),
            ("MaxPool", node("MaxPool", ["x"], ["y"], kernel_shape=[1, 1], pads=[0, 0, size, size])),
            ("RandomNormal", node("RandomNormal", [], ["y"], shape=[size, size])),
            ("Multinomial", node("Multinomial", ["m"], ["y"], sample_size=size)),
        ):
            constants = [weight] if "Conv" in name else [constant("m", np.ones((1, 4), np.float32))]
            yield (
                f"attribute_{name}_{power}",
                model([made], [image], [value("y", None, 6 if name == "Multinomial" else 1)], constants),
            )
        yield (
            f"upsample_{power}",
            model(
                [node("Upsample", ["x", "s"], ["y"], mode="nearest")],
                [image],
                [value("y", None)],
                [constant("s", np.array([1, 1, size, size], np.float32))],
                opset=9,
            ),
        )
