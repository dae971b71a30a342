"""`onnx-migrate MODEL OUTPUT`: its results and its output when it succeeds."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.cli.running import FAST, Ended, Run, first_dims, large, leftovers, opset_of, snapshot
from tests.support.paths import ROOT


def test_a_model_is_migrated_made_dynamic_and_verified(process: Run, folder: Path) -> None:
    ended = process("small.onnx", "out.onnx", "--opset", "17", "--dynamic", "x:N,3,H,W")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("verified: bit-identical\n  small.onnx → out.onnx\n  opset 11 → 17")
    for line in (
        "Resize-11 → Resize-13",
        "input x: [1, 3, 8, 8] → [N, 3, H, W]",
        "verified: bit-identical",
    ):
        assert line in ended.out
    assert "\x1b" not in ended.out, "colours only for a terminal"
    onnx.checker.check_model("out.onnx", full_check=True)
    assert opset_of(folder / "out.onnx") == 17
    assert first_dims(folder / "out.onnx") == ["N", 3, "H", "W"]
    assert not leftovers(folder)


@pytest.mark.parametrize(
    "args",
    [
        ["small.onnx", "out.onnx"],
        ["migrate", "small.onnx", "out.onnx"],
        ["small.onnx", "-o", "out.onnx"],
        ["-o", "out.onnx", "small.onnx"],
        ["--output", "out.onnx", "small.onnx"],
        ["--opset", "17", "small.onnx", "out.onnx"],
        ["small.onnx", "out.onnx", "--target-opset", "17"],
    ],
    ids=" ".join,
)
def test_the_output_and_opset_may_be_given_in_several_ways(cli: Run, folder: Path, args: list[str]) -> None:
    assert cli(*args, *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 17


@pytest.mark.parametrize("opset", ["11", "13", "17", "latest"])
def test_opsets(cli: Run, folder: Path, opset: str) -> None:
    assert cli("small.onnx", "out.onnx", "--opset", opset, *FAST).code == 0
    onnx.checker.check_model("out.onnx", full_check=True)
    assert opset_of(folder / "out.onnx") == (
        onnx.defs.onnx_opset_version() if opset == "latest" else int(opset)
    )


def test_in_place(cli: Run, folder: Path) -> None:
    ended = cli("small.onnx", "--in-place", *FAST)

    assert (ended.code, ended.err) == (0, "")
    assert opset_of(folder / "small.onnx") == 17
    assert list(snapshot(folder)) == ["small.onnx"]


def test_an_output_is_replaced(cli: Run, folder: Path) -> None:
    (folder / "out.onnx").write_bytes(b"what was there")

    assert cli("small.onnx", "out.onnx", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 17


def test_external_data_when_asked(cli: Run, folder: Path) -> None:
    onnx.save(large(), folder / "large.onnx")

    assert cli("large.onnx", "out.onnx", "--save-as-external-data", *FAST).code == 0
    assert (folder / "out.onnx.data").stat().st_size >= 20000
    assert (folder / "out.onnx").stat().st_size < 5000
    assert opset_of(folder / "out.onnx") == 17


@pytest.mark.parametrize("args", [FAST, ("--no-simplify",)], ids=["fast", "verified"])
def test_quiet_prints_nothing(process: Run, folder: Path, args: tuple[str, ...]) -> None:
    assert process("small.onnx", "out.onnx", "--quiet", *args) == Ended(0, "", "")
    assert opset_of(folder / "out.onnx") == 17


def test_verbose_shows_every_node(cli: Run, folder: Path) -> None:
    lines = "\n".join(f"    v{i + 1} = Softmax (v{i})" for i in range(9))
    text = (
        f'<ir_version: 6, opset_import: ["": 11]>\ng (float[2,3,4] v0) => (float[2,3,4] v9) {{\n{lines}\n}}'
    )
    proto = onnx.parser.parse_model(text)
    for index, node in enumerate(proto.graph.node):
        node.name = f"softmax_{index}"
    onnx.save(proto, folder / "many.onnx")

    short = cli("many.onnx", "out.onnx", *FAST).out
    whole = cli("many.onnx", "out.onnx", "--verbose", *FAST).out

    assert "softmax_8" not in short
    assert "Softmax-13 ×9" in short
    assert all(f"softmax_{index}" in whole for index in range(9))


def test_a_check_says_first_whether_the_model_would_change(cli: Run) -> None:
    ended = cli("small.onnx", "--check", *FAST)
    assert (ended.code, ended.out.splitlines()[0]) == (1, "the model would change")
    assert cli("small.onnx", "out.onnx", *FAST).code == 0
    ended = cli("out.onnx", "--check", *FAST)
    assert (ended.code, ended.out.splitlines()[0]) == (0, "the model would not change")


def test_the_report_as_json(process: Run) -> None:
    ended = process(
        "small.onnx", "out.onnx", "--json", "--no-simplify", "--dynamic", "x:N,3,H,W", "--opset", "17"
    )

    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (report["schema_version"], report["outcome"], report["output"]) == (1, "migrated", "out.onnx")
    assert (report["before"]["opset"], report["after"]["opset"]) == (11, 17)
    resize = next(change for change in report["changes"] if change["before"]["operator"] == "Resize")
    assert (resize["before"]["version"], resize["after"]["version"]) == (11, 13)
    assert report["verification"]["kind"] == "verified"
    assert {item["output"] for item in report["verification"]["comparisons"]} == {"y"}
    assert set(report["seconds"]) >= {"load", "migrate_opset", "verify"}


def test_the_report_shows_that_roi_is_dropped(cli: Run) -> None:
    ended = cli(ROOT / "fixtures" / "conv_relu_upsample_opset11.onnx", "out.onnx", "--json", *FAST)

    report = json.loads(ended.out)
    (change,) = [change for change in report["changes"] if change["before"]["operator"] == "Resize"]
    assert change["before"]["inputs"][1] != ""
    assert change["after"]["inputs"][1] == ""
    assert "roi" in change["reason"]


def test_an_error_as_json(cli: Run) -> None:
    ended = cli("missing.onnx", "out.onnx", "--json")

    assert ended.code == 4
    error = json.loads(ended.out)
    assert (error["schema_version"], error["outcome"]) == (1, "failed")
    assert (error["error"]["code"], error["error"]["kind"]) == ("no-such-file", "LoadError")
    assert ended.err.count("\n") == 1


def test_an_error_in_json_names_the_node(cli: Run, folder: Path) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.graph.node[0].op_type, proto.graph.node[0].name = "NeverWas", "odd"
    onnx.save(proto, folder / "odd.onnx")

    error = json.loads(cli("odd.onnx", "out.onnx", "--json").out)

    assert error["outcome"] == "refused"
    assert (error["error"]["node"], error["error"]["operator"]) == ("odd", "NeverWas")


def test_operators_of_other_domains_pass_through(process: Run, folder: Path) -> None:
    text = """<ir_version: 6, opset_import: ["": 11, "com.acme": 2]>
    g (float[2,3] x) => (float[2,3] y) { a = com.acme.Gizmo <size = 3> (x)  y = Softmax <axis = 1> (a) }"""
    proto = onnx.parser.parse_model(text)
    onnx.save(proto, folder / "custom.onnx")

    ended = process("custom.onnx", "out.onnx", "--no-simplify")

    assert ended.code == 0
    assert ended.err.startswith("onnx-migrate: unverified: custom.onnx: the original does not load")
    assert ended.err.count("\n") == 1
    assert "unverified" in ended.out
    result = onnx.load(folder / "out.onnx")
    assert result.graph.node[0] == proto.graph.node[0]
    assert {item.domain: item.version for item in result.opset_import} == {"": 17, "com.acme": 2}


def test_input_data_is_used(cli: Run, folder: Path) -> None:
    np.savez(folder / "data.npz", x=np.ones((1, 3, 8, 8), np.float32))

    ended = cli("small.onnx", "out.onnx", "--no-simplify", "--input-data", "data.npz", "--json")

    assert ended.code == 0
    feeds = [feed["name"] for feed in json.loads(ended.out)["verification"]["feeds"]]
    assert feeds == ["data.npz"]


def test_without_leaves_a_pass_out(cli: Run) -> None:
    ended = cli(
        "small.onnx", "out.onnx", "--skip-pass", "cleanup", "--skip-pass", "simplify", "--no-verify", "--json"
    )

    passes = json.loads(ended.out)["passes"]
    assert "migrate_opset" in passes
    assert not {"cleanup", "simplify"} & set(passes)


def test_keep_initializers_as_inputs(cli: Run, folder: Path) -> None:
    proto = onnx.load(folder / "small.onnx")
    for tensor in proto.graph.initializer:
        listed = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        proto.graph.input.append(listed)
    onnx.save(proto, folder / "listed.onnx")

    def inputs(*args: str) -> list[str]:
        assert cli("listed.onnx", "out.onnx", *args, *FAST).code == 0
        return [value.name for value in onnx.load(folder / "out.onnx").graph.input]

    assert inputs() == ["x"]
    assert inputs("--keep-initializers-as-inputs") == ["x", *(item.name for item in proto.graph.initializer)]


def test_a_simplifier_that_exceeds_its_limit_is_reported(process: Run, folder: Path) -> None:
    ended = process("small.onnx", "out.onnx", "--timeout", "0.01", "--json")

    assert ended.code == 0
    report = json.loads(ended.out)
    assert [note["severity"] for note in report["notes"] if note["code"] == "left-out"] == ["warning"]
    assert report["verification"]["kind"] == "unverified"
    assert opset_of(folder / "out.onnx") == 17


def test_resize_intent_reports_that_the_numbers_change(cli: Run) -> None:
    fixture = str(ROOT / "fixtures" / "resize_bilinear_opset10.onnx")
    ended = cli(fixture, "out.onnx", "--resize-intent", "--no-simplify")
    assert ended.code == 0
    assert "(equal under an assumption): PyTorch's linear interpolation is half_pixel" in ended.out
    assert "resize intent: other numbers, as you asked" in ended.out


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--opset", "17", "--opset", "ai.onnx.ml=3"], {"": 17, "ai.onnx.ml": 3}),
        (["--opset", "17,ai.onnx.ml=3"], {"": 17, "ai.onnx.ml": 3}),
        (["--opset", "ai.onnx.ml=3"], {"": 11, "ai.onnx.ml": 3}),
        (["--opset", "13", "--opset", "15"], {"": 15, "ai.onnx.ml": 1}),
        ([], {"": 17, "ai.onnx.ml": 1}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_ai_onnx_ml_changes_only_if_given(
    cli: Run, folder: Path, args: list[str], expected: dict[str, int]
) -> None:
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 11, "ai.onnx.ml": 1]>
g (int64[N] x) => (string[N] y) { t = Abs (x)  y = ai.onnx.ml.LabelEncoder <classes_strings = ["a"]> (t) }""")
    onnx.save(source, folder / "ml.onnx")

    assert cli("ml.onnx", "out.onnx", *args, *FAST).code == 0

    result = onnx.load(folder / "out.onnx")
    assert {entry.domain: entry.version for entry in result.opset_import} == expected


@pytest.mark.parametrize(
    "options",
    [
        ("small.onnx", "out.onnx", "--diff", "--depfile", "out.d"),
        ("small.onnx", "--check", "--diff"),
        ("small.onnx", "--in-place", "--diff"),
    ],
)
def test_a_command_reads_its_model_once(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    loading = importlib.import_module("onnx_migrate.files.loading")
    read, from_path = [], loading.from_path

    def counted(path: Path, *arguments: Any) -> Any:
        read.append(path.name)
        return from_path(path, *arguments)

    monkeypatch.setattr(loading, "from_path", counted)
    (folder / "out.onnx").write_bytes(b"what an earlier run wrote")

    assert cli(*options, *FAST).code == ("--check" in options)

    assert read == ["small.onnx"]


@pytest.fixture
def unverifiable(folder: Path) -> str:
    """A model that loads, and that runs on no input."""
    text = """<ir_version: 6, opset_import: ["": 11]>
    g (float[2] x) => (float[1] y) <int64[1] far = {9}> { a = Relu(x)  b = Identity(a)  y = Gather(b, far) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "odd.onnx")
    return "odd.onnx"


@pytest.mark.parametrize("options", [("--quiet",), ("--json",), ("--dry-run",), ()], ids=str)
def test_every_output_says_that_a_result_is_unverified(
    cli: Run, unverifiable: str, options: tuple[str, ...]
) -> None:
    target = () if "--dry-run" in options else ("out.onnx",)
    ended = cli(unverifiable, *target, *options)
    assert ended.code == 0
    assert ended.err.count("onnx-migrate: unverified: odd.onnx: the original does not run") == 1
    if "--json" in options:
        assert json.loads(ended.out)["verification"]["kind"] == "unverified"
    elif "--quiet" in options:
        assert (ended.out, ended.err.count("\n")) == ("", 1)


def test_with_require_an_unverified_result_is_not_written(cli: Run, folder: Path, unverifiable: str) -> None:
    ended = cli(unverifiable, "out.onnx", "--verify=require", "--quiet")
    assert ended.code == 3
    assert ended.err.startswith(
        "onnx-migrate: unverified: odd.onnx: the numbers could not be compared: the original"
    )
    assert not (folder / "out.onnx").exists()
    assert cli("small.onnx", "out.onnx", "--verify=require", "--quiet").code == 0


@pytest.mark.long
def test_a_result_is_proved_in_another_runtime_before_it_is_written(
    cli: Run, folder: Path, faulty: object
) -> None:
    ended = cli("small.onnx", "out.onnx", "--run-in", "faulty", "--run-in", "faulty==2.3")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("  Faulty 2.3.4: the result is right") == 2
    proto = onnx.load(folder / "small.onnx")
    proto.doc_string = "REFUSE"
    onnx.save(proto, folder / "small.onnx")
    ended = cli("small.onnx", "new.onnx", "--run-in", "faulty", "--json")
    assert ended.code == 3
    assert json.loads(ended.out)["proved_in"][0]["outcome"] == "refused"
    assert "onnx-migrate: runtime-fails: small.onnx: in Faulty 2.3.4, neither" in ended.err
    assert not (folder / "new.onnx").exists()


def test_a_runtime_that_is_not_there_ends_the_command_at_once(cli: Run) -> None:
    ended = cli("no-such-model.onnx", "out.onnx", "--run-in", "nowhere")
    assert ended.code == 2
    assert "nothing can be run in 'nowhere' here" in ended.err


def test_external_data_counts(cli: Run, folder: Path) -> None:
    onnx.save(large(), folder / "a.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    both = sum((folder / name).stat().st_size for name in ("a.onnx", "w.bin"))

    report = json.loads(cli("a.onnx", "out.onnx", "--save-as-external-data", "--json", *FAST).out)

    written = sum((folder / name).stat().st_size for name in ("out.onnx", "out.onnx.data"))
    assert report["file_bytes"] == {"before": both, "after": written}


def test_the_report_has_the_sizes_of_what_was_written(cli: Run, folder: Path) -> None:
    size = (folder / "small.onnx").stat().st_size

    report = json.loads(cli("small.onnx", "out.onnx", "--json", *FAST).out)

    assert report["file_bytes"] == {"before": size, "after": (folder / "out.onnx").stat().st_size}
    assert json.loads(cli("small.onnx", "--dry-run", "--json", *FAST).out)["file_bytes"] is None
    assert f"file {size:,} B → " in cli("small.onnx", "--in-place", *FAST).out


def test_json_names_the_pass_and_the_node_that_break_the_numbers(cli: Run, folder: Path) -> None:
    (folder / "own_pass_that_breaks.py").write_text(
        "import onnx\ndef doubles(model: onnx.ModelProto):\n    model.graph.node[0].input[0] = 'twice'\n"
        "    model.graph.node.insert(0, onnx.helper.make_node('Add', ['x', 'x'], ['twice']))\n"
    )

    ended = cli("small.onnx", "o.onnx", "--pass", "own_pass_that_breaks:doubles", "--json")

    assert ended.code == 3
    first = json.loads(ended.out)["first_difference"]
    assert (first["passes"], first["node"], first["operator"]) == (["doubles"], "c", "Conv")


FUSED = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x) => (float[2] y) <float[2] v = {1, 2}, float[2] w = {3, 4}> { k = Mul (v, w) y = Add (x, k) }"""


@pytest.mark.parametrize(
    ("asked", "code"),
    [((), 0), (("--simplify", "auto"), 1), (("--opset", "17"), 1), (("--for", "onnxruntime==1.14"), 1)],
)
def test_a_check_with_nothing_asked_is_not_about_what_onnxsim_would_fuse(
    cli: Run, folder: Path, asked: tuple[str, ...], code: int
) -> None:
    onnx.save(onnx.parser.parse_model(FUSED), "fused.onnx")

    assert cli("fused.onnx", "--check", "--verify=off", *asked).code == code
    if code == 0:
        assert cli("batch", "fused.onnx", "--check", "--verify=off", "--jobs", "1").code == 0
