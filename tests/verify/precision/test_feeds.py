"""Inputs on which precision is judged: masks that hide rows, and floats of the model's domain."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.facts.typed_graph import Frame, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.precision.feeds import ALL_HIDDEN, mask_feeds, share_of_numbers
from onnx_migrate.verify.precision.reference import Reference, reference_of
from tests.harness import model

SETTINGS = Settings(isolated=False)


def graph_of(text: str) -> Frame:
    proto = model(text)
    return frames_of(proto, TypeTable(proto))[0]


def reference(text: str) -> Reference:
    original = Runnable(structure=model(text).SerializeToString())
    return reference_of(original, original, SETTINGS, 2)


@pytest.mark.parametrize(
    ("inputs", "nodes", "hidden"),
    [
        ("bool[4,6] m", "f = Cast<to = 1>(m)  y = Mul(f, f)", False),
        ("int64[4,6] m", "u = Unsqueeze(m, a)  f = Cast<to = 9>(u)  g = Not(f)  y = Cast<to = 1>(g)", 0),
        ("int64[4,6] m", "f = Equal(m, a)  y = Cast<to = 1>(f)", 0),
        ("int64[4,6] attention_mask", "y = Gather(t, attention_mask)", 0),
        ("float[4,6] mask", "y = Mul(mask, t)", 0.0),
        ("float[4,6] mask", "y = Add(mask, t)", np.finfo(np.float32).min),
        # Ids of words, floats without the name of a mask, and single numbers are none.
        ("int64[4,6] ids", "y = Gather(t, ids)", None),
        ("float[4,6] x", "y = Mul(x, t)", None),
        ("bool[1] m", "y = Cast<to = 1>(m)", None),
    ],
)
def test_which_inputs_are_masks(inputs: str, nodes: str, hidden: float | None) -> None:
    graph = graph_of(
        f"17 ({inputs}) => (float y) <int64[1] a = {{1}}, float[6] t = {{1, 2, 3, 4, 5, 6}}> {{ {nodes} }}"
    )
    name = graph.body.input[0].name
    kind = {"b": bool, "i": np.int64, "f": np.float32}[inputs[0]]
    shape = (1,) if "[1]" in inputs else (4, 6)
    found = dict(mask_feeds(graph, {name: np.ones(shape, kind)}))

    if hidden is None:
        assert not found
        return
    every, padded, none = (values[name] for values in found.values())
    assert (every == hidden).all()
    assert every.dtype == kind
    is_hidden = padded == hidden
    assert is_hidden[0].tolist() == [True] * 3 + [False] * 3
    assert is_hidden[1].all()
    assert is_hidden[2].tolist() == [False] * 3 + [True] * 3
    assert not is_hidden[3].any()
    assert not (none == hidden).any()


def test_the_first_row_of_a_single_one_is_padded_at_the_left() -> None:
    graph = graph_of("17 (bool[1,5] m) => (float[1,5] y) { y = Cast<to = 1>(m) }")
    padded = dict(mask_feeds(graph, {"m": np.ones((1, 5), bool)}))["masks: rows padded"]["m"]

    assert padded.tolist() == [[False] * 3 + [True] * 2]


def test_masks_are_tried_beside_random_inputs() -> None:
    found = reference(
        "17 (float[4,4] x, bool[4,4] k) => (float[4,4] y) <float c = {-1e9}> { m = Where(k, x, c)  y = Softmax(m) }"
    )

    names = [feed.name for feed in found.feeds]
    assert names[-3:] == [ALL_HIDDEN, "masks: rows padded", "masks: nothing hidden"]
    hidden = found.outputs[names.index(ALL_HIDDEN)]["y"]
    assert np.allclose(hidden, 0.25)


@pytest.mark.parametrize(
    ("nodes", "domain"),
    [
        ("y = Sqrt(x)", "positive"),
        ("a = Asin(x)  y = Add(a, a)", "0 to 1"),
        ("a = Acosh(x)  y = Add(a, a)", "above 1"),
        ("n = Neg(x)  y = Sqrt(n)", "negative"),
        ("y = Exp(x)", ""),
    ],
)
def test_inputs_are_of_the_models_domain(nodes: str, domain: str) -> None:
    found = reference(f"17 (float[8,8] x) => (float[8,8] y) {{ {nodes} }}")
    found.draw_again()

    assert found.domain == domain
    assert all(share_of_numbers(outputs) > 0.9 for outputs in found.outputs)
    assert (domain == "") == any(feed.name == "small" for feed in found.feeds)


def test_a_model_without_numbers_keeps_its_inputs() -> None:
    found = reference("17 (float[4,4] x) => (float[4,4] y) { a = Exp(x)  n = Neg(a)  y = Log(n) }")

    assert found.domain == ""
    assert found.feeds
    assert max(map(share_of_numbers, found.outputs)) == 0
