"""One Resize in each of the forms that it can be given, to tell by which of them a release knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from tests.campaigns.runtimes.sample import write_io

__all__ = ["FORMS", "build"]

FORMS = ("scales", "sizes", "scales at run time", "sizes at run time", "scales of axes", "sizes of axes")

_MODES = (
    ("nearest", "asymmetric", "floor"), ("nearest", "asymmetric", "ceil"), ("nearest", "half_pixel", "round_prefer_floor"),
    ("nearest", "half_pixel", "round_prefer_ceil"), ("nearest", "align_corners", "round_prefer_floor"),
    ("linear", "asymmetric", ""), ("linear", "half_pixel", ""), ("linear", "pytorch_half_pixel", ""),
    ("linear", "align_corners", ""), ("cubic", "half_pixel", ""), ("cubic", "asymmetric", ""),
)  # fmt: skip
_SIZES = (
    ((4, 6), (2, 2)),
    ((4, 6), (0.5, 0.5)),
    ((4, 6), (1.5, 1.5)),
    ((4, 6), (2, 0.5)),
    ((5, 5), (1.4, 1.4)),
)


def build(folder: Path) -> dict[tuple[int, str], list[str]]:
    """Write the models, of opsets 11, 13 and 18; return their names by opset and form."""
    (folder / "io").mkdir(parents=True)
    names: dict[tuple[int, str], list[str]] = {}
    rng = np.random.default_rng(0)
    options = ort.SessionOptions()
    options.log_severity_level = 4  # onnx infers another length for 5 by 1.4
    for opset in (11, 13, 18):
        (folder / f"opset{opset}").mkdir()
        for form in FORMS:
            if "axes" in form and opset < 18:
                continue
            for index, (mode, (lengths, scales)) in enumerate((a, b) for a in _MODES for b in _SIZES):
                attributes = dict(
                    zip(("mode", "coordinate_transformation_mode", "nearest_mode"), mode, strict=True)
                )
                node = {key: value for key, value in attributes.items() if value}
                proto = _model(opset, form, lengths, scales, node)
                x = rng.standard_normal((1, 3, *lengths)).astype(np.float32)
                session = ort.InferenceSession(
                    proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
                )
                case = f"{opset}-{form.replace(' ', '-')}-{index}"
                onnx.save(proto, folder / f"opset{opset}" / f"{case}.onnx")
                write_io(folder, case, {"x": x}, session.run(None, {"x": x}), ["y"])
                names.setdefault((opset, form), []).append(f"opset{opset}/{case}")
    return names


def _model(
    opset: int, form: str, lengths: tuple[int, ...], scales: tuple[float, ...], attributes: dict[str, object]
) -> onnx.ModelProto:
    sizes = [
        int(np.float32(length) * np.float32(scale)) for length, scale in zip(lengths, scales, strict=True)
    ]
    constants: dict[str, np.ndarray] = {}
    nodes: list[onnx.NodeProto] = []
    if "axes" in form:
        attributes = {**attributes, "axes": [2, 3]}
    if form.startswith("scales"):
        constants["scales"] = np.array(scales if "axes" in form else (1, 1, *scales), np.float32)
    else:
        constants["sizes"] = np.array(sizes if "axes" in form else (1, 3, *sizes), np.int64)
    if "run time" in form:
        nodes = list(_arithmetic(form, constants, sizes))
    left_out = "roi" if opset < 13 else ""
    inputs = ["x", left_out, "scales"] if form.startswith("scales") else ["x", left_out, left_out, "sizes"]
    if left_out:
        constants[left_out] = np.zeros(0, np.float32)
    graph = helper.make_graph(
        [*nodes, helper.make_node("Resize", inputs, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, *lengths])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3, *sizes])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7)


def _arithmetic(form: str, constants: dict[str, np.ndarray], sizes: list[int]) -> Iterator[onnx.NodeProto]:
    """Return the nodes that make scales or sizes of X's shape, as PyTorch's exporters write them."""
    constants.update(two=np.array([2]), four=np.array([4]))
    yield helper.make_node("Shape", ["x"], ["shape"])
    if form.startswith("sizes"):
        constants.update(zero=np.array([0]), wanted=constants.pop("sizes")[2:])
        yield helper.make_node("Slice", ["shape", "zero", "two"], ["kept"])
        yield helper.make_node("Concat", ["kept", "wanted"], ["sizes"], axis=0)
    else:
        del constants["scales"]
        constants.update(ones=np.ones(2, np.float32), wanted=np.array(sizes, np.float32))
        yield helper.make_node("Slice", ["shape", "two", "four"], ["lengths"])
        yield helper.make_node("Cast", ["lengths"], ["real"], to=onnx.TensorProto.FLOAT)
        yield helper.make_node("Div", ["wanted", "real"], ["factors"])
        yield helper.make_node("Concat", ["ones", "factors"], ["scales"], axis=0)
