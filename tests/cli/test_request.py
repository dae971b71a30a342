"""The command in a report does the same again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.running import FAST, Run
from tests.support.skips import Elsewhere, import_or_skip

CHIP = """name = "chip"
[[release]]
opset = {opset}
ir = 8
"""


@pytest.mark.parametrize(
    "args",
    [
        ("--opset", "13", "--dynamic", "x:N,3,H,W", "--no-simplify"),
        ("--for", "onnxruntime", "--for", "tensorrt==8.6", *FAST),
        ("--for", "chip.toml", "--resize-form", "scales", "--save-as-external-data", *FAST),
        ("--static", "--int32", *FAST),
        ("--dynamic-batch", "--ir-version", "8", "--seed", "7", "--no-simplify"),
    ],
    ids=str,
)
def test_the_command_of_a_report_does_the_same_again(cli: Run, folder: Path, args: tuple[str, ...]) -> None:
    Path("chip.toml").write_text(CHIP.format(opset=13), encoding="utf-8")
    first = cli("small.onnx", "out.onnx", *args, "--json")
    assert first.code == 0
    result = (folder / "out.onnx").read_bytes()
    (folder / "out.onnx").unlink()
    command = json.loads(first.out)["request"]["command"]

    assert cli(*shlex.split(command)[1:]).code == 0

    assert (folder / "out.onnx").read_bytes() == result


def test_what_a_config_file_says_is_in_the_command(cli: Run, folder: Path) -> None:
    (folder / "onnx-migrate.toml").write_text(
        'for = ["onnxruntime==1.9", "tensorrt==8.6"]\nverify = false\nsimplify = false\n', encoding="utf-8"
    )

    found = json.loads(cli("small.onnx", "out.onnx", "--json").out)["request"]

    assert found["command"] == (
        "onnx-migrate small.onnx out.onnx --no-verify --no-simplify --for onnxruntime==1.9 --for tensorrt==8.6 --config none"
    )


def test_a_failure_says_what_was_asked_for(cli: Run, folder: Path) -> None:
    found = json.loads(cli("small.onnx", "out.onnx", "--opset", "6", "--json").out)

    assert found["error"]["code"]
    assert found["request"]["options"] == {"opset": "6"}
    assert found["request"]["command"].startswith("onnx-migrate small.onnx OUTPUT --opset 6")


def test_a_page_and_a_text_have_the_request(cli: Run, folder: Path) -> None:
    import_or_skip("jinja2", Elsewhere.INSTALLED)
    ended = cli("small.onnx", "out.onnx", "--for", "tensorrt==8.6", *FAST, "--html", "page.html", "-v")

    command = "onnx-migrate small.onnx out.onnx --no-verify --no-simplify --for tensorrt==8.6"
    page = (folder / "page.html").read_text(encoding="utf-8")
    for text in (command, "TensorRT 8.6", "by its documentation, not tested by us", "opsets up to 17"):
        assert text in ended.out
        assert text in page
    assert "onnxruntime 1." in page


def test_a_batch_names_the_command_of_each_model(process: Run, folder: Path) -> None:
    process(
        "batch",
        "small.onnx",
        "--out-dir",
        "out",
        "--for",
        "tensorrt==8.6",
        *FAST,
        "--json-lines",
        "log.jsonl",
    )
    line = json.loads((folder / "log.jsonl").read_text(encoding="utf-8").splitlines()[0])
    result = (folder / "out" / "small.onnx").read_bytes()
    (folder / "out" / "small.onnx").unlink()

    assert process(*shlex.split(line["request"]["command"])[1:]).code == 0
    assert (folder / "out" / "small.onnx").read_bytes() == result


@pytest.mark.long
def test_a_target_that_changed_is_no_reason_to_skip(process: Run, folder: Path) -> None:
    Path("chip.toml").write_text(CHIP.format(opset=13), encoding="utf-8")
    args = ("batch", "small.onnx", "--out-dir", "out", "--for", "chip.toml", *FAST, "--resume")
    assert process(*args).code == 0
    assert "1 of them by an earlier run" in process(*args).out

    Path("chip.toml").write_text(CHIP.format(opset=12), encoding="utf-8")

    assert "earlier run" not in process(*args).out
    assert "earlier run" not in process(*args, "--for", "tensorrt==8.6").out
