"""How a model stands with all releases of a runtime."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.advice.advice import Standing
from onnx_migrate.advice.advisor import Advisor
from onnx_migrate.advice.outlook import Outlook, outlooks, with_nearest_release
from onnx_migrate.spec.targets import resolve, shipped, tables
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y) <float[3] s = {1., 1., 1.}> { [n] y = LayerNormalization <axis = 1> (x, s) }"""


def advisor(text: str = TEXT) -> Advisor:
    return Advisor(files.load(model(text)))


def test_the_releases_of_tensorrt_that_have_layer_normalization() -> None:
    (found,) = outlooks(advisor(), [shipped("tensorrt")])

    assert found.since(Standing.AS_IS) == "8.6 and on"
    standings = dict(found.releases)
    assert standings["8.5"] is Standing.AFTER
    assert found.advice.standing is Standing.AS_IS


@pytest.mark.parametrize(
    ("standings", "least", "expected"),
    [
        ("NAAI", "AS_IS", "4 and on"), ("NAAI", "AFTER", "2 and on"), ("NNNN", "AFTER", ""), ("IIII", "AFTER", "1 and on"),
        ("IINI", "AS_IS", "1 to 2, 4 and on"), ("INAN", "AS_IS", "1"), ("NIIN", "AFTER", "2 to 3"), ("I", "AS_IS", "yes"),
        ("N", "AS_IS", ""),
    ],
)  # fmt: skip
def test_spans_of_releases(standings: str, least: str, expected: str) -> None:
    kinds = {"N": Standing.NO, "A": Standing.AFTER, "I": Standing.AS_IS}
    advice = advisor().advise(*resolve(["onnxruntime==1.14"]))
    releases = tuple((str(at), kinds[letter]) for at, letter in enumerate(standings, 1))

    assert Outlook(advice, releases).since(Standing[least]) == expected


def test_the_nearest_release_is_named_where_the_answer_is_no() -> None:
    text = """<ir_version: 7, opset_import: ["": 13]> g (float[4] x) => (int64[1,n] y) { y = NonZero (x) }"""
    found = advisor(text)
    (target,) = resolve(["tensorrt==8.4"])
    advice = with_nearest_release(found, found.advise(target))

    assert advice.standing is Standing.NO
    assert advice.helps[-1] == "TensorRT 8.5 takes it as it is"
    (target,) = resolve(["tensorrt==8.5"])
    assert with_nearest_release(found, found.advise(target)) == found.advise(target)


def long(count: int) -> Advisor:
    """A model of `count` nodes of operators that many runtimes take in another form, or not at all."""
    proto = model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }'
    )
    name = "x"
    del proto.graph.node[:]
    kinds = ("Clip", "Softmax", "HardSwish", "Unsqueeze", "Squeeze")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axis"))
    for at in range(count):
        kind = kinds[at % len(kinds)]
        inputs = [name, "axis"] if kind in ("Unsqueeze", "Squeeze") else [name]
        name = "y" if at == count - 1 else f"v{at}"
        proto.graph.node.append(onnx.helper.make_node(kind, inputs, [name]))
    return Advisor(files.load(proto))


def seconds(count: int) -> float:
    given = long(count)
    start = time.process_time()
    outlooks(given, tables())
    return time.process_time() - start


@pytest.mark.slow
def test_all_runtimes_take_seconds_and_the_time_is_linear() -> None:
    seconds(5)
    short, whole = min(seconds(250) for _ in range(3)), min(seconds(1000) for _ in range(2))

    assert whole < 12
    assert whole < 7 * short
