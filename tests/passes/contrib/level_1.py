"""One-node models of ONNX Runtime's activations, normalizations, fused products and movements, with all options varied."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.passes.contrib.one_node import Array, Case

RNG = np.random.default_rng(1)


def floats(*shape: int, dtype: str = "float32") -> Array:
    """Return normal numbers."""
    return np.asarray(RNG.standard_normal(shape), dtype)


def integers(low: int, high: int, *shape: int, dtype: str = "int64") -> Array:
    """Return integers from low to high - 1."""
    return np.asarray(RNG.integers(low, high, shape), dtype)


def gelus() -> Iterator[Case]:
    """Yield the Gelus."""
    x, b = floats(2, 5, 8), floats(8)
    opsets, near = (7, 13, 17, 20, 24, 26), 2e-7
    yield Case("Gelu", {"x": x}, opsets=(9, 13, 20), within=near)
    yield Case("ScaledSiLU", {"x": x}, {"alpha": 1.7}, opsets=(9, 13), within=near)
    yield Case("ScaledSiLU", {"x": x, "s": floats()}, opsets=(9, 13), within=near, label="scale")
    yield Case("BiasGelu", {"x": x, "b": b}, opsets=(9, 13, 20), within=near)
    yield Case("BiasGelu", {"x": x, "b": b}, constants=("b",), opsets=(13,), within=near, label="constant")
    yield Case("FastGelu", {"x": x}, opsets=opsets, within=near)
    yield Case("FastGelu", {"x": x, "b": b}, opsets=opsets, within=near, label="bias")
    for alpha in (None, 1.0, 0.5, -2.0):
        yield Case(
            "QuickGelu", {"x": x}, {} if alpha is None else {"alpha": alpha}, opsets=opsets, within=near
        )


def layer_normalizations() -> Iterator[Case]:
    """Yield normalizations of a sum, of embeddings, and simplified ones."""
    x, s, g, b, c = floats(2, 5, 8), floats(2, 5, 8), floats(8), floats(8), floats(8)
    near = 5e-7
    for (beta, bias), skip, eps in product(
        ((None, None), (b, None), (None, c), (b, c)), (s, s[0], s[:1]), (None, 1e-3)
    ):
        given: dict[str, Any] = {} if eps is None else {"epsilon": eps}
        label = f"{beta is not None}-{bias is not None}-{skip.ndim}-{skip.shape[0]}-{eps}"
        yield Case(
            "SkipLayerNormalization", {"x": x, "s": skip, "g": g, "beta": beta, "bias": bias}, given, opsets=(9, 17),
            outputs=("y", "", "", "t"), within=near, label=label,
        )  # fmt: skip
    for bias, eps in product((None, c), (None, 1e-3)):
        given = {} if eps is None else {"epsilon": eps}
        label = f"{bias is not None}-{eps}"
        yield Case(
            "SkipSimplifiedLayerNormalization", {"x": x, "s": s, "g": g, "bias": bias}, given, opsets=(9, 17, 23),
            outputs=("y", "", "", "t"), within=near, label=label,
        )  # fmt: skip
        yield Case(
            "SkipSimplifiedLayerNormalization", {"x": x, "s": s, "g": g, "bias": bias}, given, opsets=(13,),
            within=near, label=f"{label}-one",
        )  # fmt: skip
    for axis, eps in product((None, -1, 2, 1), (None, 1e-3)):
        given = {} if eps is None else {"epsilon": eps}
        given |= {} if axis is None else {"axis": axis}
        scale = floats(5, 8) if axis == 1 else g
        yield Case(
            "SimplifiedLayerNormalization",
            {"x": x, "g": scale},
            given,
            domain="",
            opsets=(13, 17),
            within=near,
        )
        yield Case(
            "LayerNormalization",
            {"x": x, "g": scale, "b": scale},
            given,
            domain="",
            opsets=(9, 13),
            within=near,
        )
    halves = {
        "x": x.astype("float16"),
        "s": s.astype("float16"),
        "g": g.astype("float16"),
        "beta": b.astype("float16"),
    }
    yield Case("SkipLayerNormalization", halves, opsets=(13, 17), within=1e-3, label="half")


def embeddings() -> Iterator[Case]:
    """Yield EmbedLayerNormalization, with and without segments, masks and positions."""
    ids = integers(0, 11, 2, 5, dtype="int32")
    tables = {"words": floats(11, 8), "positions": floats(7, 8), "segments": floats(3, 8)}
    gamma, beta = floats(8), floats(8)
    mask = integers(0, 2, 2, 5, dtype="int32")
    places = integers(0, 7, 2, 5, dtype="int32")
    segments = integers(0, 3, 2, 5, dtype="int32")
    for segment, masked, placed in product((False, True), (False, True), (None, places, places[:1])):
        yield Case(
            "EmbedLayerNormalization",
            {
                "ids": ids, "segment": segments if segment else None, "words": tables["words"],
                "positions": tables["positions"], "segments": tables["segments"] if segment else None,
                "gamma": gamma, "beta": beta, "mask": mask if masked else None, "placed": placed,
            },
            {"epsilon": 1e-5} if masked else {},
            constants=("words", "positions", "segments", "gamma", "beta"),
            outputs=("y", "index", "sum") if placed is not None else ("y", "index"),
            opsets=(11, 17), within=5e-7, label=f"{segment}-{masked}-{0 if placed is None else len(placed)}",
        )  # fmt: skip


def products() -> Iterator[Case]:
    """Yield fused products."""
    for ta, tb, alpha in product((0, 1), (0, 1), (1.0, 0.125, -3.0)):
        a = floats(2, *((4, 3) if ta else (3, 4)))
        b = floats(2, *((5, 4) if tb else (4, 5)))
        yield Case(
            "FusedMatMul", {"a": a, "b": b}, {"transA": ta, "transB": tb, "alpha": alpha}, opsets=(9, 13)
        )
    for ta, tb, ba, bb in product((0, 1), repeat=4):
        if not (ba or bb):
            continue
        k, batch, m, n = 4, 2, 3, 5
        a = floats(batch, *((k, m) if ta else (m, k)))
        b = floats(batch, *((n, k) if tb else (k, n)))
        a, b = (np.swapaxes(value, 0, 1).copy() if first else value for value, first in ((a, ba), (b, bb)))
        given = {"transA": ta, "transB": tb, "transBatchA": ba, "transBatchB": bb}
        yield Case("FusedMatMul", {"a": a, "b": b}, given, opsets=(13,))
    yield Case("FusedMatMul", {"a": floats(4), "b": floats(4, 5)}, {"transA": 1}, label="vector")
    yield Case("TransposeMatMul", {"a": floats(4, 3), "b": floats(4, 5)}, {"transA": 1, "alpha": 0.5})
    activations: dict[str, dict[str, float]] = {
        "Relu": {}, "Tanh": {}, "Sigmoid": {}, "LeakyRelu": {"activation_alpha": 0.3}, "Elu": {"activation_alpha": 2.0},
        "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4}, "Softplus": {}, "Softsign": {},
        "ThresholdedRelu": {"activation_alpha": 0.5}, "Selu": {"activation_alpha": 1.5, "activation_gamma": 1.1},
    }  # fmt: skip
    for (name, more), c in product(activations.items(), (floats(5), None)):
        given = {"activation": name, "alpha": 0.5, "beta": 2.0, "transB": 1, **more}
        yield Case(
            "FusedGemm", {"a": floats(3, 4), "b": floats(5, 4), "c": c}, given, opsets=(9, 11, 17), label=f"{name}-{c is None}"
        )  # fmt: skip


def convolutions() -> Iterator[Case]:
    """Yield FusedConv, with a sum and activations."""
    x, w, b = floats(1, 4, 6, 7), floats(4, 2, 3, 3), floats(4)
    for (name, numbers), z in product(
        (
            ("", None), ("Relu", None), ("Tanh", None), ("Sigmoid", None), ("HardSwish", None), ("LeakyRelu", [0.2]),
            ("Clip", [-0.5, 1.0]), ("HardSigmoid", [0.3, 0.4]),
        ),
        (None, floats(1, 4, 6, 7)),
    ):  # fmt: skip
        given: dict[str, Any] = {"group": 2, "pads": [1, 1, 1, 1], **({"activation": name} if name else {})}
        given |= {"activation_params": numbers} if numbers else {}
        yield Case(
            "FusedConv", {"x": x, "w": w, "b": b, "z": z}, given, constants=("w", "b"), opsets=(9, 17), within=3e-7,
            label=f"{name}-{z is not None}",
        )  # fmt: skip
    given = {
        "strides": [2, 1],
        "auto_pad": "SAME_UPPER",
        "activation": "Relu",
        "kernel_shape": [3, 3],
        "group": 2,
    }
    yield Case("FusedConv", {"x": x, "w": w}, given, within=3e-7, label="auto-pad")
    pooled = integers(0, 200, 1, 6, 7, 4, dtype="uint8")
    yield Case(
        "NhwcMaxPool",
        {"x": pooled},
        {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [0, 1, 0, 1]},
        opsets=(12, 17),
    )
    yield Case("NhwcMaxPool", {"x": pooled.astype("int8")}, {"kernel_shape": [2, 3]}, opsets=(12, 17))


def movements() -> Iterator[Case]:
    """Yield Pad, GridSample, Trilu and the like."""
    x = floats(2, 3, 4)
    for mode, flat in product(("constant", "reflect", "edge"), (True, False)):
        pads = np.array([1, 0, 1, 0, 1, 2], np.int64)
        pads = pads if flat else pads[None]
        for constants in ((), ("pads",)):
            yield Case(
                "Pad",
                {"x": x, "pads": pads},
                {"mode": mode},
                constants,
                opsets=(11, 13, 19),
                label=f"{mode}-{flat}-{constants}",
            )
    yield Case(
        "Pad", {"x": x, "pads": np.array([1, 0, 1, 0, 1, 2]), "v": np.array([2.5], "float32")}, label="value"
    )
    for mode, padding, corners in product(
        ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (0, 1)
    ):
        grid = np.asarray(RNG.uniform(-1.4, 1.4, (1, 3, 5, 2)), "float32")
        given = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        yield Case("GridSample", {"x": floats(1, 2, 4, 6), "grid": grid}, given, opsets=(16, 20))
    for upper, k in product((0, 1), (None, -1, 2)):
        yield Case(
            "Trilu",
            {"x": x, "k": None if k is None else np.array(k)},
            {"upper": upper},
            ("k",),
            opsets=(11, 14),
            label=f"{upper}-{k}",
        )
    yield Case("GatherND", {"x": x, "i": integers(0, 2, 4, 2)}, opsets=(11, 17))
    yield Case("GatherND", {"x": x, "i": integers(0, 2, 4, 2, dtype="int32")}, opsets=(11, 17), label="int32")
    for dtype in ("float32", "float64", "int16", "int32", "int64"):
        ends = [np.array(value, dtype) for value in (1, 9, 2)]
        yield Case("Range", dict(zip("abc", ends, strict=True)), opsets=(11,), label=dtype)
        yield Case("Range", dict(zip("ab", ends, strict=False)), opsets=(13,), label=f"{dtype}-one")
    for axis in (-1, 0, 1, -2):
        yield Case(
            "ExpandDims",
            {"x": x, "axis": np.array(axis, np.int32)},
            {},
            ("axis",),
            opsets=(11, 13),
            label=str(axis),
        )
    yield Case(
        "Unique", {"x": np.array([2, 1, 1, 3, 4, 3], "float32")}, outputs=("y", "i", "n"), opsets=(11, 17)
    )
    yield Case("SampleOp", {"x": x}, opsets=(7, 17))
    yield Case(
        "MatMulInteger16",
        {"a": integers(-99, 99, 3, 4, dtype="int16"), "b": integers(-99, 99, 4, 2, dtype="int16")},
        opsets=(9, 13),
    )
    for metric in ("euclidean", "sqeuclidean"):
        yield Case(
            "CDist", {"a": floats(4, 3), "b": floats(5, 3)}, {"metric": metric}, within=1e-6, opsets=(9, 17)
        )
    for size in (2, 3):
        yield Case(
            "Inverse",
            {"x": floats(2, size, size) + 3 * np.eye(size, dtype="float32")},
            within=1e-6,
            opsets=(11, 17),
            label=str(size),
            fixed=True,
        )
    yield Case("GatedAdd", {"x": x, "z": floats(2, 3, 4), "g": floats(2, 3, 1)}, within=1e-7)


def others() -> Iterator[Case]:
    """Yield windows, and convolutions whose pads are an input."""
    for dim, step in product((-1, 1, 0), (1, 2)):
        given = {"dim": dim, "size": 2, "step": step}
        yield Case("UnfoldTensor", {"x": floats(3, 4, 5)}, given, opsets=(11, 17), fixed=True)
    for pads, group in product(([0, 0, 0, 0], [1, 0, 1, 1]), (1, 2)):
        given = {
            "x": floats(1, 4, 5, 6),
            "w": floats(4, 2, 3, 3),
            "pads": np.array(pads),
            "b": floats(2 * group),
        }
        more = {"group": group, "strides": [2, 1]}
        yield Case(
            "ConvTransposeWithDynamicPads",
            given,
            more,
            ("w", "pads", "b"),
            opsets=(11, 17),
            label=f"{pads}-{group}",
        )


def states() -> Iterator[Case]:
    """Yield the operators of linear attention that keep a state, or gate one."""
    x, b = floats(2, 6, 5), floats(6)
    for activation, biased, past in product((None, "silu"), (False, True), (False, True)):
        given = {
            "x": x,
            "w": floats(6, 1, 4),
            "b": b if biased else None,
            "p": floats(2, 6, 3) if past else None,
        }
        attributes = {} if activation is None else {"activation": activation}
        label = f"{activation}-{biased}-{past}"
        yield Case("CausalConvWithState", given, attributes, ("w",), ("y", "state"), within=2e-6, label=label)
    given = {"x": floats(2, 3, 8), "s": floats(4), "g": floats(2, 3, 8)}
    yield Case("GatedRMSNorm", given, constants=("s",), opsets=(9, 13, 23), within=1e-6)
    yield Case("GatedRMSNorm", given, {"epsilon": 0.1}, ("s",), opsets=(13, 23), within=1e-6)
    gates = {"a": floats(2, 3, 8), "d": floats(8), "s": floats(8), "b": floats(2, 3, 8)}
    yield Case("LinearAttentionGate", gates, outputs=("y", "beta"), opsets=(9, 13, 21), within=1e-6)
    yield Case("LinearAttentionGate", {**gates, "b": None}, opsets=(13,), within=1e-6, label="decay")


def boxes() -> Iterator[Case]:
    """Yield CropAndResize, with boxes that are mirrored, or reach out of the image."""
    rois = np.array(
        [[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [-0.3, 0.1, 0.5, 1.2], [0.9, 0.8, 0.2, 0.1]], np.float32
    )
    for mode, size, outside in product(("bilinear", "nearest"), ([3, 4], [1, 5], [7, 1]), (0.0, -2.5)):
        given = {"x": floats(2, 3, 8, 9), "rois": rois, "b": np.array([0, 1, 1, 0], np.int32)}
        given["size"] = np.array(size, np.int32)
        attributes = {"mode": mode, "extrapolation_value": outside}
        label = f"{mode}-{size}-{outside}"
        yield Case(
            "CropAndResize", given, attributes, ("size",), opsets=(11, 13, 21), within=1e-6, label=label
        )


def experts() -> Iterator[Case]:
    """Yield MoE with each activation that the kernel has."""
    count, hidden, width = 4, 8, 12
    for activation, k, scaled in product(("relu", "gelu", "silu", "identity", "swiglu"), (1, 2), (0, 1)):
        attributes: dict[str, Any] = {
            "activation_type": activation,
            "k": k,
            "normalize_routing_weights": scaled,
        }
        if activation == "swiglu":
            attributes |= {"swiglu_fusion": 1, "activation_alpha": 1.7, "activation_beta": 1.0}
            attributes |= {"swiglu_limit": 0.7} if scaled else {}
        inner = width * (2 if activation == "swiglu" else 1)
        given = {
            "x": floats(2, 3, hidden) if scaled else floats(6, hidden), "r": floats(6, count),
            "w1": floats(count, inner, hidden), "b1": floats(count, inner) if scaled else None,
            "w2": floats(count, hidden, width), "b2": floats(count, hidden) if k == 2 else None,
        }  # fmt: skip
        constants = ("w1", "b1", "w2", "b2")
        label = f"{activation}-{k}-{scaled}"
        yield Case("MoE", given, attributes, constants, opsets=(11, 13, 21), within=1e-6, label=label)


GRIDS = (
    gelus,
    layer_normalizations,
    embeddings,
    products,
    convolutions,
    movements,
    others,
    states,
    boxes,
    experts,
)
