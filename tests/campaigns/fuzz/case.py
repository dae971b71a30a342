"""One case: a seed makes a model or bytes, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import onnx
from onnx import helper, parser

from tests.campaigns.fuzz.models import NEWEST, random_model
from tests.campaigns.fuzz.mutations import mutate
from tests.campaigns.fuzz.onnx_cases import onnx_cases
from tests.campaigns.fuzz.texts import TEXTS
from tests.campaigns.fuzz.wire_mutations import mutate_bytes
from tests.support.paths import FIXTURES

__all__ = ["KINDS", "Case", "case_of", "prepare"]

KINDS = ("generated", "mutated", "bytes")
"""As the generator made it; with changes to its structure; with changes to its bytes."""

_RUNTIMES = ("onnxruntime==1.14", "onnxruntime==1.9", "tensorrt==8.6", "openvino==2023.1", "opencv==4.8", "tensorrt==7.2",
             "onnxruntime==1.20", "ncnn==1.0.20240410")  # fmt: skip
_LARGEST = 40_000


@dataclass(frozen=True)
class Case:
    """Bytes, where they come from, and the arguments of `migrate`. `passed_as` is bytes, path or proto."""

    seed: int
    kind: str
    source: str
    data: bytes
    options: dict[str, Any] = field(default_factory=dict)
    passed_as: str = "bytes"


def prepare() -> None:
    """Collect what cases are made of, which takes seconds, so that no case is blamed for that."""
    _onnx_cases()


def case_of(seed: int) -> Case:
    """Return the case of a seed; the same for one release of onnx."""
    rng = Random(seed)
    kind = rng.choices(KINDS, (45, 35, 20))[0]
    source, model = _source(rng, 0.02 if kind == "generated" else 0.0)
    if kind == "mutated":
        model = mutate(rng, model)
    data = model.SerializeToString(deterministic=True)
    if kind == "bytes":
        data = mutate_bytes(rng, data)
    passed_as = rng.choice(("bytes", "bytes", "path", "proto"))
    return Case(seed, kind, source, data, _options(rng), passed_as)


def _source(rng: Random, wrong: float) -> tuple[str, onnx.ModelProto]:
    """Return a model and where it comes from: made at random, a fixture, a case of onnx's own, or written as text."""
    where = rng.choices(("random", "fixture", "onnx", "text"), (50, 10, 25, 15))[0]
    if where == "random":
        return "random", random_model(rng, wrong)
    if where == "fixture":
        name = rng.choice(_fixtures())
        return name, onnx.load(FIXTURES / name)
    if where == "text":
        place, data = rng.choice(_texts())
        return f"text {place}", onnx.ModelProto.FromString(data)
    name, data = rng.choice(_onnx_cases())
    model = onnx.ModelProto.FromString(data)
    if rng.random() < 0.2:
        _wrap(rng, model)
    return name, model


def _wrap(rng: Random, model: onnx.ModelProto) -> None:
    """Put the whole graph into a local function."""
    graph = model.graph
    inputs, outputs = [value.name for value in graph.input], [value.name for value in graph.output]
    if not graph.initializer and not model.functions and len(set(inputs)) == len(inputs):
        model.functions.append(
            helper.make_function("local", "All", inputs, outputs, [*graph.node], [*model.opset_import])
        )
        del graph.node[:]
        graph.node.append(helper.make_node("All", inputs, outputs, domain="local"))
        model.opset_import.append(helper.make_opsetid("local", 1))


@cache
def _texts() -> tuple[tuple[int, bytes], ...]:
    """Return the models of texts.py with their places, but for what the installed onnx does not parse."""
    parsed = ((place, _parsed(text)) for place, text in enumerate(TEXTS))
    return tuple((place, data) for place, data in parsed if data is not None)


def _parsed(text: str) -> bytes | None:
    try:
        return bytes(parser.parse_model(text).SerializeToString())
    except parser.ParseError:  # onnx 1.16 takes no input that is left out before others
        return None


@cache
def _fixtures() -> tuple[str, ...]:
    return tuple(sorted(path.name for path in FIXTURES.glob("*.onnx") if path.stat().st_size < _LARGEST))


@cache
def _onnx_cases() -> tuple[tuple[str, bytes], ...]:
    return tuple(sorted((name, data) for name, data in onnx_cases() if len(data) < _LARGEST))


def _options(rng: Random) -> dict[str, Any]:
    options: dict[str, Any] = {
        "simplify": rng.random() < 0.25,
        "verify": "off" if rng.random() < 0.2 else "auto",
    }
    which = rng.random()
    if which < 0.08:
        options["runtime"] = rng.choice(_RUNTIMES)
    elif which < 0.16:
        options["ir_version"] = rng.choice((3, 4, 6, 7, 8, 9, 10, 11, 13))
    elif which < 0.86:
        options["opset"] = rng.choice((*range(7, NEWEST + 1), 13, 17, 21, "17+", "latest"))
    if rng.random() < 0.08:
        options["dynamic_batch"] = True
    if rng.random() < 0.03:
        options["opset"] = f"{rng.choice((13, 17, 21))},ai.onnx.ml={rng.choice((1, 2, 3, 4, 5))}"
        options.pop("runtime", None)
    if rng.random() < 0.03:
        options["keep_initializers_as_inputs"] = True
    return options
