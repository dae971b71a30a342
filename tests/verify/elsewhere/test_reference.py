"""What the original computes in ONNX Runtime, and why it does not."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify import Feed, Feeds
from onnx_migrate.verify.elsewhere.reference import Reference, reference_values
from tests.verify.harness import RELU, runnable


def test_outputs_on_every_feed():
    found = reference_values(runnable(RELU), runnable(RELU), None, 0)
    assert isinstance(found, Reference)
    assert found.names == ("normal", "wide")
    for feed, values in zip(found.feeds, found.outputs, strict=True):
        assert list(values) == ["y"]
        assert np.array_equal(values["y"], np.maximum(feed["x"], 0))
    assert (found.eps, found.quantized) == (2.0**-23, False)


def test_the_users_inputs():
    feeds = Feeds((Feed("mine", {"x": np.ones((3, 4), np.float32)}),))
    found = reference_values(runnable(RELU), runnable(RELU), feeds, 0)
    assert isinstance(found, Reference)
    assert found.outputs[0]["y"].shape == (3, 4)


def test_an_original_that_does_not_run_is_said_with_its_reason():
    broken = runnable("(float[2,4] x) => (float[3] y) { y = Reshape(x, s) }", s=[3])
    found = reference_values(broken, broken, None, 0)
    assert isinstance(found, str)
    assert "nothing to compare with" in found
