"""`onnx-migrate inspect MODEL...`."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from tests.cli.running import Ended, Run, large, snapshot


def shown(ended: Ended) -> dict[str, Any]:
    (entry,) = json.loads(ended.out)
    return dict(entry)


def test_one_model_is_shown_in_full(process: Run, folder: Path) -> None:
    before = snapshot(folder)

    ended = process("inspect", "small.onnx")

    assert (ended.code, ended.err) == (0, "")
    for line in (
        "opset 11, IR 6, 2 nodes",
        "  x: float[1, 3, 8, 8]",
        "  y: float[1, 3, 16, 16]",
        "Resize    11           1",
        "to opset 17: 1 node changed",
        "only tf_crop_and_resize",
        f"reachable: opset 7 to {onnx.defs.onnx_opset_version()}",
    ):
        assert line in ended.out
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("opset", "runtime"), [("18", ()), *((opset, ("--for", "onnxruntime==1.14")) for opset in ("13", "17"))]
)
def test_the_plan_is_what_the_migration_does(
    cli: Run, folder: Path, opset: str, runtime: tuple[str, ...]
) -> None:
    asked = ("--opset", opset, *runtime)
    plan = shown(cli("inspect", "small.onnx", "--json", *asked))
    done = json.loads(cli("small.onnx", "out.onnx", *asked, "--no-simplify", "--no-verify", "--json").out)
    assert plan["changes"] == done["changes"] != []
    assert plan["notes"] == done["notes"]
    assert (plan["target"], plan["refusal"]) == (int(opset), None)
    assert plan["target"] == done["after"]["opset"]


def test_refusals_have_a_reason_and_the_reachable_opsets(cli: Run, folder: Path) -> None:
    text = (
        '<ir_version: 6, opset_import: ["": 8]> g (float[4] x) => (float[4] y) { t = Relu (x) y = Scan (t) }'
    )
    proto = onnx.parser.parse_model(text)
    proto.graph.node[1].op_type, proto.graph.node[1].name = "NeverWas", "odd"
    onnx.save(proto, folder / "odd.onnx")

    entry = shown(cli("inspect", "odd.onnx", "--json"))

    assert entry["changes"] is None
    assert entry["refusal"]["code"] == "unknown-operator"
    assert [(error["code"], error["where"]["node"]) for error in entry["refusals"]] == [
        ("unknown-operator", "odd")
    ]
    assert entry["reachable"] == []
    assert "refused, unknown-operator" in cli("inspect", "odd.onnx").out


def test_several_models_are_shown_in_one_line_each(cli: Run, folder: Path) -> None:
    onnx.save(large(), folder / "large.onnx")

    ended = cli("inspect", "small.onnx", "large.onnx")

    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()] == ["model", "small.onnx", "large.onnx"]
    assert "operators" in cli("inspect", "small.onnx", "large.onnx", "-v").out


def test_each_row_shows_its_target(cli: Run, folder: Path) -> None:
    assert cli("small.onnx", "new.onnx", "--opset", "19", "--no-verify", "--no-simplify").code == 0

    head, new, small = cli("inspect", "new.onnx", "small.onnx").out.splitlines()
    assert (head.rstrip().endswith("to 17+"), new.split()[-3:], "17: 1 node changed" in small) == (
        True, ["19:", "nothing", "changes"], True,
    )  # fmt: skip
    head, new, small = cli("inspect", "new.onnx", "small.onnx", "--opset", "19").out.splitlines()
    assert (head.rstrip().endswith("to 19"), "  1 node changed" in small) == (True, True)


def test_limits_of_a_runtime_are_shown(cli: Run, folder: Path) -> None:
    """As in the migration: a refusal, and warnings."""
    proto = onnx.load("small.onnx")
    proto.ir_version = 10
    type_ = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT4, [1])
    proto.graph.output.append(onnx.helper.make_value_info("four", type_))
    four = onnx.helper.make_tensor("four", onnx.TensorProto.INT4, [1], [1])
    proto.graph.node.append(onnx.helper.make_node("Constant", [], ["four"], value=four))
    onnx.save(proto, "new.onnx")
    text = (
        '<ir_version: 9, opset_import: ["": 20]> g (string[2] x) => (string[2] y) { y = StringConcat (x, x) }'
    )
    onnx.save(onnx.parser.parse_model(text), "late.onnx")

    entry = shown(cli("inspect", "new.onnx", "--for", "onnxruntime==1.14", "--json"))
    assert (entry["changes"], entry["refusal"]["code"]) == (None, "runtime-ir")
    entry = shown(cli("inspect", "late.onnx", "--for", "openvino==2024.4", "--json"))
    warned = [note["code"] for note in entry["notes"] if note["severity"] == "warning"]
    assert warned == ["not-lowered", "runtime-opset", "operators-not-known"]
    assert (
        "  warning: the model stays at its opset 20, but "
        in cli("inspect", "late.onnx", "--for", "openvino==2024.4").out
    )
    table = cli("inspect", "late.onnx", "new.onnx", "--for", "openvino==2024.4").out
    assert "20: nothing changes, 3 warnings" in " ".join(table.split())


@pytest.mark.parametrize(
    "args",
    [
        ["--for", "nonsense"],
        ["--for", "onnxruntime==1.14", "--opset", "19"],
        ["--for", "all", "--opset", "13"],
    ],
    ids=str,
)
def test_wrong_usage(cli: Run, folder: Path, args: list[str]) -> None:
    assert cli("inspect", "small.onnx", *args).code == 2


def test_a_file_that_is_no_model_does_not_hide_others(cli: Run, folder: Path) -> None:
    (folder / "text.onnx").write_text("hello", encoding="utf-8")

    ended = cli("inspect", "text.onnx", "small.onnx", "--json")

    assert ended.code == 4
    assert ended.err.startswith("onnx-migrate: not-onnx: text.onnx")
    first, second = json.loads(ended.out)
    assert first["error"]["code"] == "not-onnx"
    assert second["opset"] == 11


def test_missing_weights_are_a_problem_and_no_error(cli: Run, folder: Path) -> None:
    onnx.save(large(), folder / "large.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (folder / "w.bin").unlink()

    ended = cli("inspect", "large.onnx", "--json")

    entry = shown(ended)
    assert (ended.code, entry["external_files"]) == (0, ["w.bin"])
    assert "w.bin" in entry["problems"][0]
    assert entry["weight_bytes"] >= 20000


def test_an_unknown_opset_is_wrong_usage(cli: Run, folder: Path) -> None:
    ended = cli("inspect", "small.onnx", "--opset", "999")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("onnx-migrate: no-such-opset")


@pytest.mark.parametrize("kind", ["one file", "external"])
def test_weights_are_not_read(cli: Run, folder: Path, kind: str) -> None:
    """A sparse file of 8 GB stands for the weights: reading it would take seconds."""
    size = 8 << 30 if kind == "external" else 1 << 30
    proto = large()
    weight = onnx.TensorProto(name="huge", data_type=onnx.TensorProto.UINT8, dims=[size])
    if kind == "external":
        weight.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "huge.bin"), ("offset", "0"), ("length", str(size))):
            weight.external_data.add(key=key, value=value)
        with (folder / "huge.bin").open("wb") as file:
            file.truncate(size)
        proto.graph.initializer.append(weight)
        (folder / "huge.onnx").write_bytes(proto.SerializeToString())
    else:
        from onnx_migrate.files.wire.protobuf import header

        tensor = weight.SerializeToString() + header(9, size)
        graph = proto.graph.SerializeToString() + header(5, len(tensor) + size) + tensor
        proto.ClearField("graph")
        with (folder / "huge.onnx").open("wb") as file:
            file.write(proto.SerializeToString() + header(7, len(graph) + size) + graph)
            file.truncate(file.tell() + size)
    start = time.process_time()

    entry = shown(cli("inspect", "huge.onnx", "--json"))

    assert entry["weight_bytes"] > size
    assert time.process_time() - start < 1.5


def test_a_model_that_is_not_valid_is_shown_and_the_exit_code_says_so(cli: Run, folder: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 13]> g (float[4] x, int64[4] i) => (float[4] y) { y = Add(x, i) }'
    )
    onnx.save(onnx.parser.parse_model(text), folder / "mixed.onnx")

    ended = cli("inspect", "small.onnx", "mixed.onnx", "--json")

    good, bad = json.loads(ended.out)
    assert (ended.code, good["refusal"], bad["refusal"]["code"], bad["nodes"]) == (
        4,
        None,
        "type-mismatch",
        1,
    )
    assert ended.err.startswith("onnx-migrate: type-mismatch: mixed.onnx: 'y' (Add")


def test_whether_a_model_runs_in_a_runtime(cli: Run, folder: Path) -> None:
    ended = cli("inspect", "small.onnx", "--for", "onnxruntime==1.14")
    assert "for ONNX Runtime 1.14: runs unchanged (tested by us)" in ended.out

    ended = cli("inspect", "small.onnx", "--for", "tensorrt==6", "--for", "onnxruntime==1.14", "--json")
    assert ended.code == 0
    first, second = shown(ended)["advice"]
    assert (first["runtime"]["title"], first["standing"]) == ("TensorRT", "after migration")
    assert (second["standing"], second["objections"]) == ("as it is", [])
    assert any("opset 11: TensorRT 6" in item["reason"] for item in first["objections"])


def test_all_runtimes_at_once(cli: Run, folder: Path) -> None:
    ended = cli("inspect", "small.onnx", "--for", "all", "--json")

    found = {item["runtime"]["name"]: item for item in shown(ended)["advice"]}
    assert ended.code == 0
    assert {"onnxruntime", "tensorrt", "opencv", "rknn", "windowsml"} <= found.keys()
    assert found["onnxruntime"]["standing"] == "as it is"
    assert found["onnxruntime"]["releases"][-1]["standing"] == "as it is"
    assert not found["tensorrt"]["runtime"]["measured"]

    lines = cli("inspect", "small.onnx", "--for", "all", "-v").out.splitlines()
    (row,) = (line for line in lines if line.startswith("ONNX Runtime  "))
    assert "unchanged" in row
    assert "documentation" in row

    lines = cli("inspect", "small.onnx", "--for", "all").out.splitlines()
    (group,) = (line for line in lines if line.startswith("runs unchanged in "))
    assert "ONNX Runtime 1" in group
    assert len(lines) <= 15
    named = sum(len(line.split(", ")) for line in lines[3:-1])
    assert named == len(found), "every runtime is in one line"


def test_the_answer_no_is_no_error(cli: Run, folder: Path) -> None:
    (folder / "chip.toml").write_text(
        'name = "chip"\noperators = "listed"\n[[release]]\nopset = 11\n[[operator]]\nnames = ["Conv"]\n',
        encoding="utf-8",
    )
    ended = cli("inspect", "small.onnx", "--for", "./chip.toml")

    assert ended.code == 0
    assert "for chip: does not run (by its documentation, not tested by us)" in ended.out


def test_a_row_of_a_table_stays_one_line_in_a_pipe(
    process: Run, folder: Path, environment: dict[str, str]
) -> None:
    del environment["COLUMNS"]
    long = folder / f"{'m' * 150}.onnx"
    shutil.copy(folder / "small.onnx", long)

    lines = process("inspect", long.name, "small.onnx").out.splitlines()

    assert [line.split()[0] for line in lines] == ["model", long.name, "small.onnx"]


def test_modules_with_steps_for_a_custom_domain(process: Run, folder: Path) -> None:
    (folder / "gizmo_steps.py").write_text(
        "from onnx_migrate.plugins import compatible, declare_operator\n"
        "declare_operator('Gizmo', 1, 2, domain='com.example')\n"
        "compatible('Gizmo', 2, domain='com.example', reason='Only documentation changed.')\n"
    )
    text = """<ir_version: 8, opset_import: ["": 17, "com.example": 1]>
    g (float[2] x) => (float[2] y) { y = com.example.Gizmo (x) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "gizmo.onnx")

    ended = process("inspect", "gizmo.onnx", "--opset", "com.example=2", "--adapters", "gizmo_steps")

    assert (ended.code, ended.err) == (0, "")
    assert "com.example 1 became 2" in ended.out
    assert "reachable: com.example opset 1 to 2" in ended.out
    assert "gizmo_steps" in process("inspect", "gizmo.onnx", "--adapters", "none.gizmo_steps").err


@pytest.mark.campaign
def test_a_model_that_takes_too_long_is_one_line(process: Run, folder: Path) -> None:
    names = ["x", *(f"v{index}" for index in range(200_000))]
    nodes = [onnx.NodeProto(op_type="Relu", input=[a], output=[b]) for a, b in itertools.pairwise(names)]
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [2]) for name in (names[0], names[-1]))
    graph = onnx.helper.make_graph(nodes, "g", [x], [y])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)]), "long.onnx")

    ended = process("inspect", "long.onnx", "--timeout", "0.1")  # a stage has three seconds at least

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "onnx-migrate: timed-out: long.onnx: the stage 'inspect' was not done after 3 s (--timeout allows more seconds)\n"
    )


def test_the_page_has_the_report_and_the_graph_with_the_planned_changes(cli: Run, folder: Path) -> None:
    ended = cli("inspect", "small.onnx", "--html", "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")

    assert ended.code == 0
    assert "reachable: opset" in page
    assert "The whole graph" in page
    assert 'class="tensor is"' in page, "the Resize"
    assert "Nodes that a migration changes" in page


def test_the_page_is_of_one_model(cli: Run, folder: Path) -> None:
    assert cli("inspect", "small.onnx", "small.onnx", "--html", "page.html").code == 2
    assert cli("inspect", "small.onnx", "--open").code == 2
    assert not (folder / "page.html").exists()
