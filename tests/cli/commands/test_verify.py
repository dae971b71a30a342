"""`onnx-migrate verify A B`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.running import FAST, Run
from tests.support.skips import Elsewhere, import_or_skip


def spoilt(folder: Path, factor: float, name: str = "other.onnx") -> str:
    proto = onnx.load(folder / "small.onnx")
    weight = proto.graph.initializer[0]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(factor), weight.name))
    onnx.save(proto, folder / name)
    return name


def test_a_migrated_model_computes_the_same(process: Run, folder: Path) -> None:
    assert process("small.onnx", "out.onnx", *FAST).code == 0

    ended = process("verify", "small.onnx", "out.onnx", "-v")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(
        "verified: bit-identical\n  out.onnx compared with small.onnx\n  run with onnxruntime"
    )
    assert "y  float32 1×3×16×16  bit-identical" in ended.out


def test_one_changed_weight_is_found(cli: Run, folder: Path) -> None:
    ended = cli("verify", "small.onnx", spoilt(folder, 1.01))

    assert (ended.code, ended.err) == (3, "")
    assert ended.out.startswith("differs: ")
    assert "output 'y'" in ended.out or "  y  float32" in ended.out


def test_rounding_may_differ_unless_exact_is_given(cli: Run, folder: Path) -> None:
    other = spoilt(folder, 1 + 2**-23)

    assert cli("verify", "small.onnx", other).code == 0
    assert cli("verify", "small.onnx", other, "--exact").code == 3


def test_the_tolerance_decides(cli: Run, folder: Path) -> None:
    other = spoilt(folder, 1.01)

    allowed = cli("verify", "small.onnx", other, "--rtol", "0.1")
    assert allowed.code == 0
    assert "verified: within the limit that you gave (largest difference" in allowed.out
    assert cli("verify", "small.onnx", other, "--rtol", "0.1", "--atol", "0.1").code == 0
    assert cli("verify", "small.onnx", other, "--rtol", "0.001").code == 3


def test_the_user_s_inputs_decide(cli: Run, folder: Path) -> None:
    np.savez(folder / "zeros.npz", x=np.zeros((1, 3, 8, 8), np.float32))
    other = spoilt(folder, 2.0)

    assert cli("verify", "small.onnx", other, "--input-data", "zeros.npz").code == 0
    assert cli("verify", "small.onnx", other, "--input-data", "none.npz").code == 2


def test_a_folder_of_photographs_is_the_input_in_one_command(cli: Run, folder: Path) -> None:
    image = import_or_skip("PIL.Image", Elsewhere.INSTALLED)
    (folder / "photos").mkdir()
    for at in range(3):
        image.new("RGB", (20 + at, 30), (10, 20, 30)).save(folder / "photos" / f"{at}.jpg")
    other = spoilt(folder, 1.01)
    options = ("--input-data", "photos", "--mean", "0.485,0.456,0.406", "--std", "1/4", "--max-inputs", "2")

    ended = cli("verify", "small.onnx", other, *options, "--atol", "y:9")
    assert (ended.code, ended.err) == (0, "")
    assert "  over 2 sets of inputs:\n    y: cosine 1.0" in ended.out
    assert "is (pixel / 255 - (0.485, 0.456, 0.406)) / 0.25" in ended.out
    assert "2 of 3 images were used" in ended.out
    message = json.loads(cli("verify", "small.onnx", other, *options, "--json").out)
    assert [item["output"] for item in message["metrics"]] == ["y"]


def test_a_limit_is_for_an_output_that_exists(cli: Run, folder: Path) -> None:
    ended = cli("verify", "small.onnx", "small.onnx", "--atol", "yy:1e-3")
    assert ended.code == 2
    assert "the model has no output 'yy'" in ended.err
    assert "did you mean y? the outputs are y" in ended.err
    assert cli("verify", "small.onnx", "small.onnx", "--atol", "y:x").code == 2


def test_a_configuration_file_has_the_same_options(cli: Run, folder: Path) -> None:
    (folder / "inputs.py").write_text(
        "import numpy as np\ndef load_data():\n    yield {'x': np.ones((1, 3, 8, 8), np.float32)}\n"
    )
    text = "input-data = ['inputs.py']\natol = {y = 0.5}\nmax-inputs = 4\nsimplify = false\n"
    (folder / "onnx-migrate.toml").write_text(text)
    ended = cli("small.onnx", "out.onnx", "--json")
    assert (ended.code, ended.err) == (0, "")
    message = json.loads(ended.out)
    assert [feed["name"].endswith("inputs.py 0") for feed in message["verification"]["feeds"]] == [True]
    assert message["request"]["options"]["atol"] == "y:0.5"
    assert "--atol y:0.5" in message["request"]["command"]


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_json(cli: Run, folder: Path, factor: float) -> None:
    ended = cli("verify", "small.onnx", spoilt(folder, factor), "--json", "--seed", "7")
    message = json.loads(ended.out)

    assert message["kind"] == ("verified" if factor == 1 else "differs")
    assert (message["original"], message["other"], message["schema_version"]) == (
        "small.onnx",
        "other.onnx",
        1,
    )
    assert {feed["seed"] for feed in message["feeds"]} & {7}
    assert message["comparisons"][0]["identical"] is (factor == 1)


def test_quiet_prints_nothing_and_sets_the_exit_code(cli: Run, folder: Path) -> None:
    spoilt(folder, 1.5)
    ended = cli("verify", "small.onnx", "other.onnx", "--quiet")
    assert (ended.code, ended.out, ended.err) == (3, "", "")


def test_another_interface_differs(cli: Run, folder: Path) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.graph.output[0].name = proto.graph.node[-1].output[0] = "z"
    onnx.save(proto, folder / "other.onnx")

    ended = cli("verify", "small.onnx", "other.onnx")

    assert ended.code == 3
    assert "outputs were y and became z" in ended.out


def test_models_that_do_not_run_are_unverified(cli: Run, folder: Path) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.graph.node[0].domain = "com.acme"
    proto.opset_import.append(onnx.helper.make_opsetid("com.acme", 1))
    onnx.save(proto, folder / "custom.onnx")

    ended = cli("verify", "custom.onnx", "custom.onnx")

    assert ended.code == 1
    assert "unverified: the original does not load" in ended.out


@pytest.mark.parametrize("broken", ["first", "second"])
def test_the_file_that_is_no_model_is_named(cli: Run, folder: Path, broken: str) -> None:
    (folder / "text.onnx").write_text("hello", encoding="utf-8")
    pair = ("text.onnx", "small.onnx") if broken == "first" else ("small.onnx", "text.onnx")

    ended = cli("verify", *pair)

    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith("onnx-migrate: not-onnx: text.onnx is not an ONNX model")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("order", [("small.onnx", "bad.onnx"), ("bad.onnx", "small.onnx")])
def test_a_model_that_is_not_valid_is_named(cli: Run, folder: Path, order: tuple[str, str]) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.graph.node[0].input[0] = "nowhere"
    onnx.save(proto, folder / "bad.onnx")

    ended = cli("verify", *order)

    assert ended.code == 4
    assert ended.err.startswith("onnx-migrate: undefined-name: bad.onnx: ")
    entry = json.loads(cli("verify", *order, "--json").out)
    assert (entry["model"], entry["outcome"], entry["error"]["code"]) == (
        "bad.onnx",
        "invalid",
        "undefined-name",
    )


@pytest.mark.long
def test_other_runtimes_have_lines(cli: Run, folder: Path, faulty: object) -> None:
    ended = cli("verify", "small.onnx", "small.onnx", "--in", "faulty")
    assert (ended.code, ended.err) == (0, "")
    assert "\nrun in other runtimes\n  Faulty 2.3.4: the result is right, as the original is" in ended.out
    proto = onnx.load(folder / "small.onnx")
    proto.doc_string = "OFF=1"
    onnx.save(proto, folder / "off.onnx")
    ended = cli("verify", "small.onnx", "off.onnx", "--in", "faulty", "--json")
    assert ended.code == 3
    assert json.loads(ended.out)["proved_in"][0]["outcome"] == "worse"


def test_a_runtime_that_is_not_there_is_wrong_usage(cli: Run) -> None:
    ended = cli("verify", "small.onnx", "small.onnx", "--in", "nowhere")
    assert ended.code == 2
    assert "nothing can be run in 'nowhere' here" in ended.err


def test_the_first_value_that_differs_is_named_and_drawn(cli: Run, folder: Path) -> None:
    text = '<ir_version: 8, opset_import: ["":17]> g (float[2,3] x) => (float[2,3] y) { [act] a = Sigmoid(x) y = Neg(a) }'
    onnx.save(onnx.parser.parse_model(text), folder / "one.onnx")
    other = text.replace("(float[2,3] x)", "(float[2,3] pixels)").replace(
        "[act] a = Sigmoid(x)", "[other] b = Tanh(pixels)"
    )
    onnx.save(onnx.parser.parse_model(other.replace("Neg(a)", "Neg(b)")), folder / "two.onnx")
    ended = cli("verify", "one.onnx", "two.onnx", "--match-name", "x=pixels", "--html", "page.html")

    assert ended.code == 3
    assert "the models first differ at Sigmoid 'act' (in the second model: Tanh 'other')" in ended.out
    assert "why: Sigmoid in the original, Tanh in the second model" in ended.out
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert {"Sigmoid", "Tanh", "pixels"} <= set(re.findall(r"\w+", page))
    assert cli("verify", "one.onnx", "two.onnx", "--match-name", "x").code == 2
    assert cli("verify", "one.onnx", "two.onnx", "--match-name", "x=q").code == 2


def test_the_errors_of_all_values_are_a_table(cli: Run, folder: Path) -> None:
    header = '<ir_version: 8, opset_import: ["":17]> g (float[2,3] x) => (float[2,3] y)'
    text = header + " { [n0] a = Sin(x) [n1] b = Exp(a) [n2] y = Neg(b) }"
    onnx.save(onnx.parser.parse_model(text), folder / "one.onnx")
    onnx.save(onnx.parser.parse_model(text.replace("Exp", "Tanh")), folder / "two.onnx")
    ended = cli("verify", "one.onnx", "two.onnx", "--all-values", "values.csv")
    rows = [line.split(",") for line in (folder / "values.csv").read_text().splitlines()]

    assert ended.code == 3
    assert rows[0] == ["value", "other_value", "node", "operator", "shape", "error"]
    assert [row[:5] for row in rows[1:]] == [
        ["a", "a", "n0", "Sin", "2x3"], ["b", "b", "n1", "Exp", "2x3"], ["y", "y", "n2", "Neg", "2x3"],
    ]  # fmt: skip
    assert [float(row[5]) > 0.01 for row in rows[1:]] == [False, True, True]
    assert "the largest errors of 3 inner tensors" in ended.out
    (folder / "text.csv").write_text("my own notes")
    assert cli("verify", "one.onnx", "two.onnx", "--all-values", "text.csv").code == 1
    assert (folder / "text.csv").read_text() == "my own notes"
