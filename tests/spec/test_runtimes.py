"""The table of runtimes."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import onnxruntime
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.spec import runtimes
from onnx_migrate.spec.ir_versions import minimal_ir_version
from onnx_migrate.spec.runtimes import TABLE, runtime
from onnx_migrate.spec.schema import newest_opset
from tests.harness import ORT_NEWEST


@pytest.mark.parametrize(
    ("text", "opset", "ir_version"),
    [
        ("onnxruntime==1.6", 13, 7), ("onnxruntime==1.10.0", 15, 8), ("onnxruntime==1.14", 18, 8),
        ("onnxruntime==1.15.1", 18, 9), ("OnnxRuntime == 1.20.1", 21, 10), ("onnxruntime==1.22", 22, 10),
        ("tensorrt==7.2", 13, None), ("tensorrt==8.2.5", 13, None), ("tensorrt==8.6", 17, None), ("tensorrt==10.1", 20, None),
        ("openvino==2023.1", 17, None), ("opencv==4.8.1.78", 19, None), ("opencv==4.10", 21, None),
    ],
)  # fmt: skip
def test_rows(text: str, opset: int, ir_version: int | None) -> None:
    found = runtime(text)

    assert (found.opset, found.ir_version) == (opset, ir_version)


def test_the_installed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    release = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
    if release <= runtimes.LAST["onnxruntime"]:
        assert min(runtime("onnxruntime").opset, newest_opset()) == ORT_NEWEST
    assert runtime("onnxruntime").release == release
    monkeypatch.setattr(runtimes, "version", lambda package: "9.9.9")
    assert runtime("onnxruntime").opset == TABLE["onnxruntime"][-1].opset, (
        "at least what its forerunners took"
    )


def test_any_of_a_runtime_s_packages_is_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "opencv-contrib-python":
            return "4.8.1.78"
        raise PackageNotFoundError(package)

    monkeypatch.setattr(runtimes, "version", version)

    assert runtime("opencv").release == (4, 8)
    with pytest.raises(UsageError, match="openvino is not installed"):
        runtime("openvino")


def test_those_that_try_newer_opsets_take_the_nearest() -> None:
    lower = {
        name: runtime(name).lower
        for name in ("onnxruntime==1.14", "tensorrt==8.6", "openvino==2023.1", "opencv==4.8")
    }

    assert list(lower.values()) == [True, True, "nearest", "nearest"]


@pytest.mark.parametrize(
    "text",
    ["", "onnx==1", "onnxruntime=1.14", "onnxruntime==", "onnxruntime==1.5", "onnxruntime==9.9", "tensorrt"],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        runtime(text)


@pytest.mark.parametrize("row", [row for rows in TABLE.values() for row in rows], ids=str)
def test_the_ir_version_that_an_opset_needs_is_taken(row: runtimes.Runtime) -> None:
    assert row.ir_version is None or minimal_ir_version(row.opset) <= row.ir_version


@pytest.mark.parametrize("name", list(TABLE))
def test_rows_rise(name: str) -> None:
    rows = TABLE[name]

    assert [row.release for row in rows] == sorted({row.release for row in rows})
    assert [row.opset for row in rows] == sorted(row.opset for row in rows)
    assert {row.name for row in rows} == {name}
    assert rows[-1].release <= runtimes.LAST[name]
