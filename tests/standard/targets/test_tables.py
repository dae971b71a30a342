"""The tables that come with this package: their form, facts recorded of runtimes, and how people ask for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import onnx
import pytest

from onnx_migrate.json_form import json_of
from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.schema import newest_but_for_types, newest_opset, operators, signature, versions
from onnx_migrate.standard.targets import (
    OperatorSupport,
    Table,
    Target,
    known_names,
    resolve,
    shipped,
    tables,
)
from onnx_migrate.standard.targets.names import check_names
from onnx_migrate.standard.targets.releases import key
from onnx_migrate.standard.unlisted_operators import EXPERIMENTAL_OPERATORS

REMOVED = {operator.name for operator in EXPERIMENTAL_OPERATORS}
STANDARD = {name for domain, name in operators() if not domain}

# What this project knows of the standard may be newer than the installed onnx, whose schemas these tests ask.
NEW = {
    "AffineGrid", "Attention", "BitCast", "CenterCropPad", "Col2Im", "CumProd", "DeformConv", "Gelu", "ImageDecoder",
    "RMSNormalization", "RegexFullMatch", "RotaryEmbedding", "StringConcat", "StringSplit", "Swish", "TensorScatter",
}  # fmt: skip


@pytest.mark.parametrize("name", known_names())
def test_the_names_in_a_table_are_known(name: str) -> None:
    check_names(shipped(name), tables())


def rows() -> Iterator[tuple[Table, OperatorSupport]]:
    for table in tables():
        for row in table.operators:
            yield table, row


@pytest.mark.parametrize("name", known_names())
def test_the_name_is_that_of_the_file_and_every_row_has_a_source(name: str) -> None:
    table = shipped(name)
    assert table.name == name
    assert table.file == f"{name}.toml"
    assert all(row.source for row in table.releases)
    for row in (*table.operators, *table.faults):
        assert row.source, row


@pytest.mark.parametrize("name", known_names())
def test_releases_ascend_and_take_ever_more(name: str) -> None:
    releases = shipped(name).releases
    for one, other in pairwise(releases):
        assert key(one.since) < key(other.since)
        assert (one.opset or 99) <= (other.opset or 99)
        assert (one.ir_version or 99) <= (other.ir_version or 99)
        assert other.oldest is None or (one.oldest or 0) <= other.oldest


@pytest.mark.parametrize("name", known_names())
def test_the_ir_version_has_the_opset(name: str) -> None:
    for row in shipped(name).releases:
        if row.opset is not None and row.ir_version is not None:
            assert minimal_ir_version(row.opset) <= row.ir_version, row


@pytest.mark.parametrize("name", known_names())
def test_operators_are_those_of_the_standard(name: str) -> None:
    for row in shipped(name).operators:
        if not row.domain:
            unknown = set(row.names) - STANDARD - REMOVED - NEW
            assert not unknown, row.source
        elif row.domain == "ai.onnx.ml":
            assert all(onnx.defs.has(operator, row.domain) for operator in row.names)


@pytest.mark.parametrize("name", known_names())
def test_the_newest_version_is_a_version_of_the_operator(name: str) -> None:
    for row in shipped(name).operators:
        for operator in row.names:
            if (
                row.newest is not None
                and not row.domain
                and operator in STANDARD
                and row.newest <= newest_opset()
            ):
                assert row.newest in versions("", operator), operator


@pytest.mark.parametrize("name", known_names())
def test_attributes_are_those_of_the_operator(name: str) -> None:
    for row in shipped(name).operators:
        for operator in set(row.names) & STANDARD:
            known = {
                a for version in versions("", operator) for a in signature("", operator, version).attributes
            }
            assert newest_opset() < 23 or set(row.attributes) <= known, operator


@pytest.mark.parametrize("name", known_names())
def test_a_row_on_values_or_types_makes_no_listed_table_have_the_operator(name: str) -> None:
    table = shipped(name)
    releases = {since for row in (*table.releases, *table.operators) if (since := row.since)} or {""}
    for release in releases if table.listed else ():
        target = Target(table, table.releases[-1], release, release)
        for operator in {operator for row in table.operators for operator in row.names}:
            found = target._operators.get(("", operator), ())
            assert not found or not all(row.limits for row in found), (operator, release)


@pytest.mark.parametrize("name", known_names())
def test_a_default_is_a_release_of_the_table(name: str) -> None:
    table = shipped(name)
    if table.default:
        target = resolve([f"{name}=={table.default}"]).members[0]
        assert not target.later
        assert target.row is table.releases[-1]


def test_what_is_not_run_is_not_called_measured() -> None:
    can_run = {"onnxruntime", "openvino", "opencv", "onnxruntime-web", "tract", "mnn", "ncnn", "rknn"}
    measured = {table.name for table in tables() if any(row.measured for row in table.releases)}
    measured |= {table.name for table, row in rows() if row.measured}
    assert measured <= can_run


FIRST = {
    "7.1": ["If"],
    "7.2": ["Celu", "CumSum", "EyeLike", "GatherElements", "GreaterOrEqual", "LessOrEqual", "LpNormalization",
            "LpPool", "ReverseSequence"],
    "8.0": ["NonMaxSuppression"],
    "8.2": ["Einsum", "GatherND", "IsNaN", "Round", "Scatter", "ScatterElements", "ScatterND", "Sign"],
    "8.4": ["HardSwish", "Shrink", "Xor"],
    "8.5": ["GridSample", "MeanVarianceNormalization", "Mod", "NonZero", "OneHot", "RandomNormal", "RandomNormalLike",
            "RoiAlign", "Trilu"],
    "8.6": ["GroupNormalization", "IsInf", "LayerNormalization"],
    "9.1": ["CastLike"],
    "9.2": ["Hardmax"],
    "10.0": ["Gelu", "Mish"],
    "10.1": ["DeformConv"],
    "10.14": ["Attention"],
    "10.15": ["RMSNormalization", "RotaryEmbedding", "TensorScatter"],
    "11.0": ["Swish"],
}  # fmt: skip
"""The release of TensorRT whose importer is the first to register an operator."""

RELEASES = sorted({"7.0", "9.0", *FIRST}, key=key)


def tensorrt(release: str) -> Target:
    return resolve([f"tensorrt=={release}"]).members[0]


@pytest.mark.parametrize(
    ("release", "operator"), [(r, operator) for r, names in FIRST.items() for operator in names]
)
def test_tensorrt_has_operators_from_the_release_that_registers_them(release: str, operator: str) -> None:
    assert tensorrt(release).has("", operator)
    assert not tensorrt(RELEASES[RELEASES.index(release) - 1]).has("", operator)


@pytest.mark.parametrize(
    ("release", "opset"),
    [("5.1", 9), ("6.0", 10), ("7.0", 11), ("7.1", 11), ("7.2", 13), ("8.0", 13), ("8.2", 13), ("8.4", 17), ("8.5", 17),
     ("8.6", 17), ("9.0", 19), ("10.0", 20), ("10.9", 22), ("10.13", 24), ("11.0", 24), ("11.5", 25)],
)  # fmt: skip
def test_tensorrt_takes_the_opsets_that_it_documents(release: str, opset: int) -> None:
    assert tensorrt(release).opset == opset


def test_tensorrt_takes_functions_from_9_on_and_axes_of_resize_from_10_on() -> None:
    assert [tensorrt(r).row.functions for r in ("8.6", "9.0", "10.0")] == [False, True, True]
    assert [tensorrt(r).row.resize_axes for r in ("9.3", "10.0")] == [False, True]
    assert len(resolve(["tensorrt==8.6", "onnxruntime==1.14"]).without_functions) == 1
    assert not resolve(["tensorrt==10.0"]).without_functions


def taken(release: str, operator: str, attribute: str) -> set[object]:
    found = [
        set(row.attributes[attribute])
        for row in tensorrt(release).rows_of("", operator)
        if attribute in row.attributes
    ]
    return set.intersection(*found) if found else set()


def test_tensorrt_takes_the_values_of_attributes_that_it_documents() -> None:
    assert taken("5.1", "Pad", "mode") == {"constant"}
    assert taken("8.2", "Pad", "mode") == {"constant", "reflect", "edge"}
    assert taken("10.0", "Pad", "mode") == set()  # all
    assert taken("7.1", "Resize", "coordinate_transformation_mode") == {"asymmetric"}
    assert "tf_crop_and_resize" not in taken("8.6", "Resize", "coordinate_transformation_mode")
    assert taken("8.4", "Resize", "mode") == {"nearest", "linear"}
    assert taken("8.5", "Resize", "mode") == taken("10.0", "Resize", "mode") == {"nearest", "linear", "cubic"}
    assert taken("9.0", "ScatterElements", "reduction") == {"none"}
    assert taken("10.0", "ScatterElements", "reduction") == set()


def test_tensorrt_takes_the_element_types_of_its_importer() -> None:
    assert [("uint8" in tensorrt(r).row.types) for r in ("8.4", "8.5", "9.0")] == [False, True, True]
    assert [("bfloat16" in tensorrt(r).row.types) for r in ("8.6", "9.0")] == [False, True]
    assert tensorrt("10.9").row.types == ()  # no source of it was read


@pytest.mark.parametrize(
    ("jetpack", "release"),
    [("4.6", "8.0"), ("4.6.1", "8.2"), ("5.1.2", "8.5"), ("6.0", "8.6"), ("6.2", "10.3")],
)
def test_a_jetpack_has_its_tensorrt(jetpack: str, release: str) -> None:
    assert resolve([f"jetpack=={jetpack}"]).members[0].number == release


def test_qnn_has_the_versions_of_operators_that_it_documents() -> None:
    qnn = resolve(["qnn"]).members[0]
    found = {
        name: qnn.newest_version("", name)
        for name in ("Clip", "Conv", "Dropout", "Cast", "BatchNormalization")
    }
    # It documents 24 for Cast; versions 25 and 28 differ in element types only.
    assert found == {
        "Clip": newest_but_for_types("", "Clip", 12),
        "Conv": 22,
        "Dropout": 10,
        "Cast": newest_but_for_types("", "Cast", 24),
        "BatchNormalization": 15,
    }
    assert not qnn.has("", "NegativeLogLikelihoodLoss")


def test_onnxjs_has_the_versions_of_operators_that_it_documents() -> None:
    onnxjs = resolve(["onnx.js"]).members[0]
    found = {name: onnxjs.newest_version("", name) for name in ("Clip", "MaxPool", "Pad", "Softmax")}
    assert found == {"Clip": 6, "MaxPool": 8, "Pad": 2, "Softmax": 11}


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    "request_", ["opencv==4.5", "opencv==4.8", "opencv==4.12", "opencv==5.0", "mnn==3.6"]
)
def test_pools_without_padding_are_taken(request_: str, operator: str) -> None:
    for _, row in resolve([request_]).limits("", operator):
        assert "VALID" in dict(row.attributes).get("auto_pad", ("VALID",))


@pytest.mark.parametrize("release", ["4.5", "4.6", "4.7"])
def test_opencv_takes_operators_at_the_versions_that_its_opset_has(release: str) -> None:
    (target,) = resolve([f"opencv=={release}"])
    for name in ("Gemm", "Expand", "Greater", "Less", "LogSoftmax"):
        assert (target.oldest_version("", name) or 0) <= target.opset


def test_operators_that_people_miss() -> None:
    def has(request: str, operator: str) -> bool:
        return resolve([request]).members[0].has("", operator)

    assert [has(f"sentis=={r}", "GridSample") for r in ("1.5", "1.6")] == [False, True]
    assert not has("sentis==2.1", "If")
    assert [has(f"mnn=={r}", "LayerNormalization") for r in ("2.7", "2.8")] == [False, True]
    assert [has(f"tract=={r}", "LayerNormalization") for r in ("0.20.21", "0.20.22")] == [False, True]
    assert not has("tract", "Upsample")
    assert [has(f"stm32=={r}", "LayerNormalization") for r in ("3.0", "4.0")] == [False, True]
    assert [has(name, "Sigmoid") for name in ("kl520", "kl720")] == [False, True]


ASKED = [
    ("Jetson with TensorRT 8.2", "tensorrt", None, 13, None),
    ("Windows 10 build 19041", "windowsml", 7, 9, 4),
    ("windows 10 2004", "windowsml", 7, 9, 4),
    ("winml==1809", "windowsml", 7, 7, 3),
    ("winml==18362", "windowsml", 7, 8, 3),
    ("Windows 11", "windowsml", 7, 12, 7),
    ("RK3588", "rknn", 12, 19, None),
    ("rknn-toolkit2==1.5.2", "rknn", None, 12, None),
    ("RV1126", "rknn-toolkit", None, 12, None),
    ("Unity Sentis 2.1", "sentis", 7, 15, None),
    ("Inference Engine 2.2", "sentis", 7, 15, None),
    ("Hailo-8", "hailo", None, 17, 9),
    ("Horizon", "horizon", 10, 11, None),
    ("Snapdragon", "qnn", None, None, None),
    ("QNN", "qnn", None, None, None),
    ("STM32", "stedgeai", 7, 20, 9),
    ("Ascend 310", "cann", None, 17, None),
    ("Kneron", "kneron", 12, 18, None),
    ("SiMa", "sima", 16, 17, 8),
    ("ONNX Runtime 1.9", "onnxruntime", None, 15, 8),
    ("ONNX Runtime 0.5", "onnxruntime", None, 10, 5),
    ("onnxruntime-web", "onnxruntime-web", None, 26, 13),
    ("onnxruntime-web==1.14", "onnxruntime-web", None, 18, 8),
    ("OpenCV 4.8", "opencv", None, 19, None),
    ("OpenVINO 2023.1", "openvino", None, 17, None),
    ("ncnn", "ncnn", None, None, None),
    ("ncnn==1.0.20260526", "ncnn", None, 16, None),
    ("MNN", "mnn", None, None, None),
    ("tract", "tract", None, None, None),
    ("TVM", "tvm", None, None, None),
    ("Vitis AI", "vitis-ai", None, 17, None),
    ("x3", "horizon", 10, 11, None),
    ("J5", "horizon", 10, 11, None),
    ("orin==6.0", "tensorrt", None, 17, None),
    ("CoreML", "coreml", None, None, None),
    ("WebNN", "webnn", 7, None, None),
    ("WebGPU", "webgpu", None, None, None),
    ("MIGraphX", "migraphx", None, 19, None),
    ("torch-mlir", "iree", None, None, None),
    ("burn", "burn", None, None, None),
    ("Arm NN", "armnn", None, None, None),
    ("TDA4VM", "tidl", None, None, None),
    ("BM1684X", "sophgo", None, None, None),
    ("RZV2L", "drp-ai", None, None, None),
    ("AX650", "pulsar2", 11, None, None),
]
"""What a newcomer asks for, and the runtime, oldest and newest opset and IR version that it should give."""


@pytest.mark.parametrize(
    ("request_", "name", "oldest", "opset", "ir_version"), ASKED, ids=[asked[0] for asked in ASKED]
)
def test_a_newcomers_request_is_understood(
    request_: str, name: str, oldest: int | None, opset: int | None, ir_version: int | None
) -> None:
    target = resolve([request_]).members[0]
    assert (target.name, target.oldest, target.ir_version) == (name, oldest, ir_version)
    assert target.opset == opset or opset is None  # a survey may find one


def test_a_release_that_nobody_names_is_told() -> None:
    target = resolve(["rk3588"]).members[0]
    assert target.assumed
    assert json_of(target)["release_assumed"]
    assert not resolve(["rk3588==2.0"]).members[0].assumed
    assert re.fullmatch(r"RKNN-Toolkit2 [\d.]+", str(target))
