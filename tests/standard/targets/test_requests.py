"""What users ask for."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import onnxruntime
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.standard.schema import newest_opset
from onnx_migrate.standard.targets import releases
from onnx_migrate.standard.targets.requests import resolve
from tests.harness import ORT_NEWEST


@pytest.mark.parametrize(
    ("text", "opset", "ir_version"),
    [
        ("onnxruntime==1.6", 13, 7), ("onnxruntime==1.10.0", 15, 8), ("onnxruntime==1.14", 18, 8),
        ("onnxruntime==1.15.1", 18, 9), ("OnnxRuntime == 1.20.1", 21, 10), ("onnxruntime==1.22", 22, 10),
        ("openvino==2023.1", 17, None), ("openvino==2023", 17, None), ("opencv==4.8.1.78", 19, None),
        ("opencv==4.10", 21, None), ("cv2==4.10", 21, None), ("tensorrt==10", 20, None),
    ],
)  # fmt: skip
def test_rows(text: str, opset: int, ir_version: int | None) -> None:
    found = resolve([text])

    assert (found.opset, found.ir_version) == (opset, ir_version)
    assert found.requests == (text,)


def test_the_installed_release(monkeypatch: pytest.MonkeyPatch) -> None:
    (target,) = resolve(["onnxruntime"])
    if not target.later:
        assert min(target.opset or 0, newest_opset()) == ORT_NEWEST
    assert target.release == onnxruntime.__version__.partition("+")[0]
    monkeypatch.setattr(releases, "version", lambda package: "9.9.9")
    assert resolve(["onnxruntime"]).members[0].later

    def version(package: str) -> str:
        if package == "opencv-contrib-python":
            return "4.8.1.78"
        raise PackageNotFoundError(package)

    monkeypatch.setattr(releases, "version", version)
    assert str(resolve(["opencv"])) == "OpenCV 4.8.1.78"
    with pytest.raises(
        UsageError,
        match=r"OpenVINO is not installed, so its release is needed\nHint: add it, for example openvino==",
    ) as e:
        resolve(["openvino"])
    assert e.value.code == "release-needed"


def test_a_later_release_is_treated_as_the_last_one() -> None:
    (known,), (later,) = resolve(["onnxruntime==1.31"]), resolve(["onnxruntime==1.99"])

    assert (known.later, later.later) == (False, True)
    assert later.row == known.row


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "no-such-runtime", "'' is not a known runtime"),
        ("abacus==1", "no-such-runtime", "known are .*onnxruntime, .*tensorrt"),
        ("tensort==8.6", "no-such-runtime", r"did you mean tensorrt\?"),
        ("onnxruntime==", "release-needed", "names no release"),
        ("onnxruntime==0.0.1", "no-such-release", "the first release known is"),
        ("onnxruntime==new", "no-such-release", "ONNX Runtime has no release 'new'"),
        ("./gone.toml", "bad-target-file", "gone.toml: No such file"),
    ],
)
def test_what_is_not_known_is_refused(text: str, code: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        resolve([text])
    assert error.value.code == code


def test_no_request_is_none() -> None:
    with pytest.raises(UsageError, match="the name of the runtime is missing"):
        resolve([])


def test_several_requests_and_one_that_is_repeated() -> None:
    targets = resolve(["onnxruntime==1.14", "opencv==4.7", "ort==1.14"])

    assert (str(targets), targets.opset) == ("ONNX Runtime 1.14 and OpenCV 4.7", 12)
    assert resolve("opencv==4.7").opset == 12
    assert resolve(["onnxruntime==1.14", "onnxruntime==1.9"]).opset == 15


OWN = """name = "own"
[[release]]
from = "1.0"
opset = 12
[[release]]
from = "2.0"
names = ["22H2"]
opset = 15
[[bundle]]
names = ["own-linux"]
releases = { "6" = "1.0", "7.1" = "2.0" }
"""


def test_files_of_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(OWN, encoding="utf-8")
    Path("simple.toml").write_text('name = "simple"\n[[release]]\nopset = 11', encoding="utf-8")

    assert [resolve([text]).opset for text in ("own.toml==1.5", "./own.toml==2.0", f"{tmp_path}/own.toml==22h2")] == [
        12, 15, 15,
    ]  # fmt: skip
    assert [str(resolve([text])) for text in ("./simple.toml", "simple.toml==3")] == ["simple", "simple 3"]
    with pytest.raises(
        UsageError,
        match=re.escape(
            "the own release is needed\nHint: add it, for example ./own.toml==2.0; known from 1.0"
        ),
    ):
        resolve(["./own.toml"])
    both = resolve(["./simple.toml", "onnxruntime==1.14"])
    assert (both.opset, both.ir_version) == (11, 8)


def test_a_product_stands_for_the_runtime_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx_migrate.standard.targets import wording
    from onnx_migrate.standard.targets.read import parse_table

    table = parse_table(OWN.encode(), "own.toml")
    monkeypatch.setattr(wording, "find", lambda name: (table, table.bundles[0]))

    assert [str(resolve([f"own-linux=={release}"])) for release in ("6", "7.0.1", "7.1", "9")] == [
        "own 1.0", "own 1.0", "own 2.0", "own 2.0",
    ]  # fmt: skip
    assert [resolve([f"own-linux=={release}"]).members[0].later for release in ("7.1", "9")] == [False, True]
    for text, code in (("own-linux", "release-needed"), ("own-linux==5", "no-such-release")):
        with pytest.raises(UsageError, match=r"known are 6, 7\.1") as error:
            resolve([text])
        assert error.value.code == code
