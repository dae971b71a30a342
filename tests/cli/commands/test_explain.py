"""`onnx-migrate explain [MODEL] TEXT`: what it answers, and how that is printed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from onnx_migrate.report.codes import CODES
from tests.cli.running import Run


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_explained(cli: Run, code: str) -> None:
    ended = cli("explain", code)

    assert (ended.code, ended.err) == (0, "")
    head, _, text = ended.out.partition("\n\n")
    assert head == code
    assert " ".join(text.split()) == " ".join(CODES[code].split())


@pytest.mark.parametrize("code", ["resize-11", "Softmax-13", "relu-14"])
def test_steps_are_explained(cli: Run, code: str) -> None:
    ended = cli("explain", code)

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.lower().startswith(code.partition("-")[0].lower() + " ")
    assert f"→ {code.partition('-')[2]}: " in ended.out


def test_an_unknown_step_lists_the_known_steps_of_its_operator(cli: Run) -> None:
    ended = cli("explain", "resize-12")

    assert ended.code == 1
    assert "resize-11 or resize-13" in ended.err


PASTED = "No Op registered for Range with domain_version of 10"


@pytest.mark.parametrize(
    "words",
    [
        (PASTED,),
        tuple(PASTED.split()),
        (f"[E:onnxruntime:, -1 x] {PASTED} --foo",),
        (f"one line, longer than a name of a file may be: {'x' * 300} {PASTED}",),
        (f"{'x' * 300}", PASTED),
    ],
)
def test_an_error_text_in_one_word_or_in_many(cli: Run, words: tuple[str, ...]) -> None:
    ended = cli("explain", *words)

    assert (ended.code, ended.err) == (0, "")
    assert "Range exists since opset 11" in ended.out
    assert "onnx-migrate model.onnx out.onnx --opset 11" in ended.out


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_log_from_standard_input_and_from_a_file(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = f"Traceback (most recent call last):\n  File x\n{PASTED}\n".encode("utf-16")
    (tmp_path / "log.txt").write_bytes(log)

    feed(monkeypatch, log)
    piped, read = cli("explain", "-"), cli("explain", str(tmp_path / "log.txt"))

    assert piped.code == read.code == 0
    assert piped.out == read.out
    assert "--opset 11" in piped.out


def test_what_is_not_known_ends_with_1_and_the_nearest(cli: Run) -> None:
    ended = cli("explain", "max supported IR version of the model is unsupported")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("onnx-migrate: unknown-text: ")
    assert "onnx-migrate explain unsupported-model-ir-version" in ended.err


def test_json(cli: Run) -> None:
    known, unknown = cli("explain", PASTED, "--json"), cli("explain", "--json", "reszie")

    assert known.code == 0
    assert json.loads(known.out)["errors"][0]["values"]["op_since"] == "11"
    assert unknown.code == 1
    assert json.loads(unknown.out)["near"]["names"] == ["Resize"]


def test_nothing_lists_all_that_is_known(cli: Run) -> None:
    ended, listed = cli("explain"), cli("explain", "--json")

    assert ended.code == 0
    for code in CODES:
        assert f"  {code} " in ended.out
    assert "unsupported-model-ir-version" in ended.out
    assert {group["title"] for group in json.loads(listed.out)["groups"]} >= {"Refusals", "ONNX Runtime"}


def test_runtimes_are_listed_by_a_word(cli: Run) -> None:
    listed = cli("explain", "runtimes").out.partition("\nRuntimes\n")[2]
    assert "\n  tensorrt " in listed
    assert "needs-rank" not in listed
    assert cli("explain").out.endswith(listed)


def test_an_empty_text_is_wrong_usage(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b" ")
    assert cli("explain", "").code == 2
    assert cli("explain", "-").code == 2


UPSAMPLE = "Op registered for Upsample is deprecated in domain_version of 11"


@pytest.fixture
def upsample(folder: Path) -> str:
    text = """<ir_version: 6, opset_import: ["": 11]>
    g (float[1,3,4,4] x) => (float[1,3,8,8] y) <float[4] s = {1,1,2,2}> { [up] y = Upsample(x, s) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "up.onnx")
    return "up.onnx"


def test_a_model_before_or_after_the_text_is_asked(cli: Run, upsample: str) -> None:
    before, after = cli("explain", upsample, UPSAMPLE), cli("explain", *UPSAMPLE.split(), upsample)

    assert before == after
    assert before.code == 0
    assert "up.onnx: would raise this: it has 1 node of Upsample, deprecated at opset 11" in before.out
    assert "'up' (Upsample-10)" in before.out
    assert "onnx-migrate up.onnx out.onnx --opset 11 reaches opset 11; 1 node to change" in before.out


def test_the_command_that_is_given_mends_the_model(cli: Run, upsample: str) -> None:
    found = json.loads(cli("explain", upsample, UPSAMPLE, "--json").out)
    error = found["errors"][0]
    words = error["remedies"][0]["command"].split()

    assert error["model"]["raises"] is True
    assert error["model"]["places"][0]["node"] == "up"
    assert words[0] == "onnx-migrate"
    assert cli(*words[1:], "--no-simplify").code == 0
    again = json.loads(cli("explain", "out.onnx", UPSAMPLE, "--json").out)
    assert again["errors"][0]["model"]["raises"] is False


def test_a_model_that_is_not_there_or_no_model(cli: Run, folder: Path) -> None:
    (folder / "text.onnx").write_text("text")

    assert cli("explain", "none.onnx", UPSAMPLE).err.startswith("onnx-migrate: no-such-file: none.onnx")
    broken = cli("explain", "text.onnx", UPSAMPLE)
    assert broken.code == 4
    assert broken.err.startswith("onnx-migrate: not-onnx: text.onnx")


def test_a_model_without_a_text_is_wrong_usage(cli: Run) -> None:
    ended = cli("explain", "small.onnx")

    assert ended.code == 2
    assert "onnx-migrate inspect small.onnx" in ended.err


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ("Resize", ["Resize: Resize exists", "\nup\n", "\ndown\n", "  resize-13 ", "11 → 13: adapted, exact"]),
        ("Softplus", ["where a runtime lacks it", "softplus-written-out"]),
        ("tensorrt", ["TensorRT: what its releases take", "9–22", "explain tensorrt==11.5"]),
        ("tensorrt==8.4", ["TensorRT 8.4 (by its documentation, not tested by us)",
                           "up to 17", "functions    no: ", "--for tensorrt==8.4"]),
        ("hailo", ["Hailo", "up to 17", "up to 9"]),
    ],
)  # fmt: skip
def test_operators_and_runtimes(cli: Run, asked: str, lines: list[str]) -> None:
    ended = cli("explain", asked)
    assert (ended.code, ended.err) == (0, "")
    for line in lines:
        assert line in ended.out


def test_control_characters_of_a_text_are_not_printed(cli: Run) -> None:
    text = "No Op registered for Range with domain_version of"
    ended = cli("explain", f"Error in Node:a\x1b]0;x\x07b : {text} 9 Error in Node:a\x07b : {text} 10")
    assert ended.code == 0
    assert "\x1b" not in ended.out + ended.err
    assert "\x07" not in ended.out + ended.err


def test_lines_are_at_most_a_hundred_wide(cli: Run) -> None:
    ended = cli("explain", "Unsupported model IR version: 10, max supported IR version: 9")
    assert max(map(len, ended.out.splitlines())) <= 100
