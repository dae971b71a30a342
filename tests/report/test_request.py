"""What a report says that was asked for, and the command line that asks for it again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnx_migrate
from onnx_migrate.model.interface import Port
from onnx_migrate.options import Options
from onnx_migrate.report.request import Request, tool_versions
from onnx_migrate.standard.targets import resolve
from tests.harness import ONNX_NEWEST, model
from tests.support.skips import Elsewhere, skip_if
from tests.support.targets import targets_of

PORTS = (Port("x", "tensor(float)", (1, 3, "H", 32)), Port("u", "tensor(float)", None))


def request(**arguments: Any) -> Request:
    return Request.of(Options(**arguments))


def command(**arguments: Any) -> str | None:
    return request(**arguments).command("my model.onnx", PORTS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ""),
        (
            {"opset": "17+", "verify": True, "keep_resize_mode": frozenset(), "passes": (), "simplify": True},
            "",
        ),
        ({"isolated": False, "progress": print}, ""),
        ({"opset": 13}, "--opset 13"),
        ({"opset": {"": 13, "ai.onnx.ml": 2}}, "--opset ai.onnx=13,ai.onnx.ml=2"),
        ({"opset": "17+", "ir_version": 9}, "--opset 17+ --ir-version 9"),
        ({"runtime": "tensorrt==8.6"}, "--for tensorrt==8.6"),
        ({"runtime": ["TensorRT 8.6", "ort==1.14"]}, "--for 'TensorRT 8.6' --for ort==1.14"),
        ({"runtime": resolve(["opencv==4.8"])}, "--for opencv==4.8"),
        ({"lower": False}, "--no-lower"),
        ({"simplify": False, "verify": False}, "--no-verify --no-simplify"),
        ({"simplify": "require", "verify": "require"}, "--verify=require --simplify=require"),
        ({"dynamic": "x:N,3,H,W"}, "--dynamic x:N,3,H,W"),
        ({"dynamic": {"x": {0: "N", -1: "W"}}}, "--dynamic x:N,3,H,W"),
        ({"dynamic": {"x": [0]}}, "--dynamic 'x:?,3,H,32'"),
        ({"dynamic": {"x": ["N", 3, None, "W"]}}, "--dynamic x:N,3,H,W"),
        ({"dynamic_batch": True}, "--dynamic-batch"),
        ({"dynamic_batch": "B"}, "--dynamic-batch=B"),
        ({"fix_shape": {"N": 1, "x": [1, 3]}}, "--fix-shape N=1 --fix-shape x:1,3"),
        ({"dynamic": {"x": "N,3,H,W"}}, "--dynamic x:N,3,H,W"),
        ({"fix_shape": {"x": {0: 1, -1: 3}, "y": [None, 2]}}, "--fix-shape x:0=1,-1=3 --fix-shape y:1=2"),
        ({"fix_shape": ["N=1", "M=2"]}, "--fix-shape N=1 --fix-shape M=2"),
        ({"resize_form": "scales", "resize_intent": True}, "--resize-form scales --resize-intent"),
        ({"keep_resize_mode": {"tf_half_pixel_for_nn"}}, "--keep-resize-mode tf_half_pixel_for_nn"),
        ({"passes": ["a:b", "c"], "skip_pass": ("cleanup",)}, "--pass a:b --pass c --skip-pass cleanup"),
        ({"rtol": 0.001, "seed": 3, "timeout": 5.0}, "--rtol 0.001 --seed 3 --timeout 5.0"),
        ({"memory_limit": 3 << 29}, "--memory-limit 1.5"),
        ({"run_in": ("tract", "opencv")}, "--run-in tract --run-in opencv"),
    ],
)
def test_options_become_a_command(arguments: dict[str, Any], words: str) -> None:
    assert command(**arguments) == f"onnx-migrate 'my model.onnx' OUTPUT {words}".rstrip()


@pytest.mark.parametrize(
    "arguments",
    [
        {"passes": [print]}, {"pipeline": onnx_migrate.default_pipeline()}, {"lower": "nearest"},
        {"dynamic": {"u": {0: "N"}}}, {"input_data": {"x": np.ones((2, 3), np.float32)}},
    ],
)  # fmt: skip
def test_what_the_command_line_does_not_have_makes_no_command(arguments: dict[str, Any]) -> None:
    assert command(**arguments) is None
    assert request(**arguments).options


def test_arrays_are_told_by_type_and_shape() -> None:
    data = [{"x": np.ones((2, 3), np.float32)}, {"x": [[1, 2, 3], [4, 5, 6]]}]

    assert request(input_data=data).options["input_data"] == [
        {"x": "float32[2, 3]"},
        {"x": [[1, 2, 3], [4, 5, 6]]},
    ]


def test_an_installed_release_is_named() -> None:
    found = command(runtime="onnxruntime")

    assert found is not None
    assert found.endswith(f"--for onnxruntime=={tool_versions()['onnxruntime']}")


def test_streams_and_models_in_memory() -> None:
    assert request().command("<stdin>") == "onnx-migrate - OUTPUT"
    assert request().command("<ModelProto>") == "onnx-migrate MODEL OUTPUT"


def test_a_report_holds_request_targets_and_versions() -> None:
    source = model('<ir_version: 7, opset_import: ["": 12]> g (float[2] x) => (float[2] y) { y = Relu (x) }')
    report = onnx_migrate.migrate(source, runtime=["tensorrt==8.6", "onnxruntime==1.14"], verify=False).report

    found = report.saved("out.onnx", "--save-as-external-data").as_dict()["request"]

    assert [(target["title"], target["measured"]) for target in found["targets"]] == [
        ("TensorRT", False), ("ONNX Runtime", True),
    ]  # fmt: skip
    assert found["options"] == {"runtime": ["tensorrt==8.6", "onnxruntime==1.14"], "verify": "off"}
    assert found["versions"].keys() >= {"onnx-migrate", "onnx", "onnxruntime"}
    assert found["command"] == (
        "onnx-migrate MODEL out.onnx --no-verify --for tensorrt==8.6 --for onnxruntime==1.14 --save-as-external-data"
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("", "we do not know whether it supports Relu as the model uses them (1 of 1 node)"),
        (
            '[[operator]]\nnames = ["Relu"]\n',
            "supports every operator of the result (by its documentation, not tested by us)",
        ),
        (
            '[[operator]]\nnames = ["Relu"]\nmeasured = true\n',
            "supports every operator of the result (tested by us)",
        ),
    ],
)
def test_a_report_says_how_the_operators_of_the_result_are_known(rows: str, sentence: str) -> None:
    source = model("17 (float[2] x) => (float[2] y) { y = Relu (x) }")
    report = onnx_migrate.migrate(
        source, runtime=targets_of(f"[[release]]\nopset = 13\n{rows}"), verify=False
    ).report

    assert f"chip: {sentence}" in report.text()
    assert f"\n  chip: {sentence}\n" in report.text(verbose=True)
    assert f"chip: {sentence}" in report.html()
    (known,) = report.as_dict()["operators_known"]
    assert known["state"] == ("not known" if not rows else "measured" if "measured" in rows else "read")
    warned = [note.code for note in report.notes if note.severity == "warning"]
    assert warned == ([] if rows else ["operators-not-known"])


@skip_if(
    ONNX_NEWEST < 22,
    "this onnx is used with an onnxsim that folds no Shape unless it optimises",
    Elsewhere.NEWEST,
)
def test_the_warning_names_what_the_result_has_when_it_is_simplified() -> None:
    source = model(
        """17 (float[2,3] x) => (float[2,3] y) <int64[1] at = {0}, int64[1] rest = {-1}> {
          s = Shape (x) f = Gather (s, at) t = Concat <axis = 0> (f, rest) y = Reshape (x, t) }"""
    )
    report = onnx_migrate.migrate(source, runtime=targets_of("[[release]]\nopset = 17\n")).report

    (warning,) = (note.message for note in report.notes if note.code == "operators-not-known")
    assert "Shape" not in warning
    assert report.operators_known[0].warning == warning

    known = targets_of('[[release]]\nopset = 17\n[[operator]]\nnames = ["Reshape", "Identity"]\n')
    report = onnx_migrate.migrate(source, runtime=known).report
    assert [note.code for note in report.notes if note.code == "operators-not-known"] == []


def test_a_report_says_that_a_release_was_assumed() -> None:
    source = model("13 (float[2] x) => (float[2] y) { y = Relu (x) }")

    assumed, named = (
        onnx_migrate.migrate(source, runtime=runtime, verify=False).report.text()
        for runtime in ("rknn", "rknn==2.3")
    )

    assert "RKNN-Toolkit2 2.5 (assumed release): supports every operator" in assumed
    assert "RKNN-Toolkit2 2.3: supports every operator" in named
