"""Samples of the campaigns on equal pairs and on NNSmith's models: the rewrites are equal, and none is reported as different."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from onnx import parser

from tests.campaigns.proof import equal, nnsmith
from tests.campaigns.proof.base import Base, written
from tests.campaigns.proof.rewrites import REWRITES

BASES = {base.name: base for base in written()}
MODELS = {
    "gemm": """<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,2] y)
        <float[2,3] w = {1.0,2.0,3.0,-1.0,0.5,0.25}, float[2] b = {0.5,-0.5}> { y = Gemm <transB = 1> (x, w, b) }""",
    "double": """<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,3] y) <float two = {2.0}> {
        a = Mul (x, two)
        y = Relu (a) }""",
    "function": """<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float[2,3] x) => (float[2,3] y) {
        a = own.Twice (x)
        y = Neg (a) }
        <domain: "own", opset_import: ["" : 17]> Twice (v) => (w) { w = Add (v, v) }""",
    "threshold": """<ir_version: 8, opset_import: ["" : 17]> g (float[2,4] x) => (bool[2,4] y)
        <float one = {1.0}> { y = GreaterOrEqual (x, one) }""",
}
FITTING = {
    "BatchNormalization folded": "conv_net",
    "padding apart": "conv_net",
    "onnxsim": "conv_net",
    "ONNX Runtime, basic": "conv_net",
    "ONNX Runtime, extended": "conv_net",
    "opset by onnx": "conv_net",
    "Clip as Max and Min": "clip_far",
    "nodes reordered": "two_thresholds",
    "comparison turned": "two_thresholds",
    "operands swapped": "integers",
    "values renamed": "masked_attention",
    "constant as a sum": "classes",
    "transposed twice": "top_classes",
    "Gemm as MatMul and Add": "gemm",
    "x*2 as x+x": "double",
    "Relu as Max": "double",
    "functions inlined": "function",
}
"""A model that each rewrite changes; the others change `tree_classifier` or one made of it."""


def _base(name: str) -> Base:
    if name in BASES:
        return BASES[name]
    model = parser.parse_model(MODELS[name])
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    feed = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    return Base(name, model, feed, name)


@pytest.mark.parametrize(
    "rewrite", sorted(set(REWRITES) - {"onnxslim", "comparison negated", "Constant nodes as initializers"})
)
def test_a_rewritten_model_is_equal_and_not_reported_as_different(rewrite):
    verdict, reason, other = equal.judged(_base(FITTING.get(rewrite, "masked_where")), rewrite)
    assert (verdict, reason) == ("verified", "")
    assert onnx.ModelProto.FromString(other).graph.node


def test_constants_come_back_as_initializers():
    base = BASES["clip_far"]
    apart = base.changed(REWRITES["initializers as Constant nodes"])
    assert not apart.model.graph.initializer
    assert equal.judged(apart, "Constant nodes as initializers")[0] == "verified"


def test_a_rewrite_that_is_wrong_for_nan_does_not_count():
    verdict, reason, _ = equal.judged(_base("threshold"), "comparison negated")
    assert verdict == "not equal"
    assert "NaN" in reason


def test_a_rewrite_that_does_not_fit_is_left_out():
    assert equal.judged(BASES["clip_far"], "Gemm as MatMul and Add")[:2] == ("unfit", "no Gemm")


@pytest.mark.parametrize("request_of", ["11", "21", "fp16"])
def test_a_migrated_model_is_judged_right(request_of):
    done = nnsmith.outcome(_base("gemm").model.SerializeToString(), request_of)
    assert (done.kind, done.reason) == ("right", "")


def test_a_wrong_result_is_seen():
    base = _base("gemm")
    wrong = base.changed(lambda model: model.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.float32([[1, 2, 3.01], [-1, 0.5, 0.25]]), "w")))  # fmt: skip
    text, feed = nnsmith._judged(base.model, wrong.model, float16=False, limits={})
    assert "largest magnitude" in text
    assert not nnsmith._moves(base.model, feed)


def test_the_report_s_own_figures_are_read():
    verdict = SimpleNamespace(
        rounded=(SimpleNamespace(name="z", limit=0.01, error=0.002),),
        summary="float16: within the limit: output 'y' differs by up to 0.57 % of its largest value (limit 1.1 %)",
    )
    assert nnsmith._reported(verdict) == {"z": 0.01, "y": pytest.approx(0.011)}


@pytest.mark.campaign
def test_no_equal_pair_is_reported_as_different(capsys):
    with patch.object(sys, "argv", ["equal", "--pairs", "300"]):
        assert equal.main() == 0, capsys.readouterr().out
