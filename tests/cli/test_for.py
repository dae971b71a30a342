"""`--for RUNTIME==VERSION`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest

import onnx_migrate
from tests.cli.running import FAST, Run, opset_of


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("onnxruntime==1.14", 18), ("onnxruntime==1.9", 15), ("tensorrt==8.6", 17), ("openvino==2023.1", 17),
        ("opencv==4.8", 19),
    ],
)  # fmt: skip
def test_the_opset_is_the_newest_of_the_release(cli: Run, folder: Path, runtime: str, expected: int) -> None:
    assert cli("small.onnx", "out.onnx", "--for", runtime, *FAST).code == 0
    assert opset_of(folder / "out.onnx") == expected


def test_a_newer_ir_version_is_lowered_or_refused(cli: Run, folder: Path) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.ir_version = 10
    onnx.save(proto, folder / "new.onnx")
    assert cli("new.onnx", "out.onnx", "--for", "onnxruntime==1.14", *FAST).code == 0
    assert onnx.load(folder / "out.onnx").ir_version == 8

    type_ = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT4, [1])
    proto.graph.output.append(onnx.helper.make_value_info("four", type_))
    four = onnx.helper.make_tensor("four", onnx.TensorProto.INT4, [1], [1])
    proto.graph.node.append(onnx.helper.make_node("Constant", [], ["four"], value=four))
    onnx.save(proto, folder / "new.onnx")
    ended = cli("new.onnx", "out.onnx", "--for", "onnxruntime==1.14", *FAST)

    assert ended.code == 1
    assert ended.err.startswith("onnx-migrate: runtime-ir: ")


def test_a_newer_model_comes_down_or_is_kept_with_a_warning_if_the_runtime_tries_it(
    cli: Run, folder: Path
) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.opset_import[0].version = 12
    onnx.save(proto, folder / "small.onnx")

    assert cli("small.onnx", "out.onnx", "--for", "opencv==4.6", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 9
    ended = cli("small.onnx", "out.onnx", "--for", "opencv==4.6", "--no-lower", "--json", *FAST)

    assert ended.code == 0
    assert opset_of(folder / "out.onnx") == 12
    (note,) = [note for note in json.loads(ended.out)["notes"] if note["code"] == "runtime-opset"]
    assert note["severity"] == "warning"
    proto.opset_import[0].version = 15
    onnx.save(proto, folder / "newer.onnx")
    assert cli("newer.onnx", "out.onnx", "--for", "onnxruntime==1.7", "--no-lower", *FAST).err.startswith(
        "onnx-migrate: downgrade: "
    )


def test_a_runtime_that_tries_newer_models_gets_the_nearest_opset(cli: Run, folder: Path) -> None:
    text = '<ir_version: 7, opset_import: ["": 13]> g (float[4] x) => (float[n] y) { z = Unique (x) y = Relu (z) }'
    onnx.save(onnx.parser.parse_model(text), folder / "unique.onnx")

    ended = cli("unique.onnx", "out.onnx", "--for", "opencv==4.6", "--json", *FAST)

    assert ended.code == 0
    assert opset_of(folder / "out.onnx") == 11
    (note,) = [note for note in json.loads(ended.out)["notes"] if note["code"] == "not-lowered"]
    assert "Unique-11" in note["message"]


@pytest.mark.parametrize(
    ("args", "by_scales"),
    [
        (["--for", "opencv==4.8"], False),
        (["--for", "opencv==4.5", "--no-lower"], True),
        (["--for", "opencv==4.5", "--no-lower", "--resize-form", "auto"], False),
        (["--for", "opencv==4.8", "--resize-form", "scales"], True),
    ],
    ids=str,
)
def test_a_resize_has_a_form_that_the_runtime_supports(
    cli: Run, folder: Path, args: list[str], by_scales: bool
) -> None:
    text = """<ir_version: 7, opset_import: ["": 13]>
g (float[1,3,8,8] x) => (float[1,3,16,16] y) <int64[4] n = {1, 3, 16, 16}> { y = Resize <mode = "linear"> (x, , , n) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "sized.onnx")

    assert cli("sized.onnx", "out.onnx", *args, *FAST).code == 0

    (node,) = (node for node in onnx.load(folder / "out.onnx").graph.node if node.op_type == "Resize")
    assert (len(node.input) == 3) == by_scales


def test_the_attribute_axes_is_removed_for_runtimes_without_it(cli: Run, folder: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
g (float[1,3,8,8] x) => (float[1,3,16,16] y) <float[2] s = {2.0, 2.0}> { y = Resize <axes = [2, 3]> (x, , s) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "axes.onnx")

    for runtime, known in (("openvino==2025.4", True), ("openvino==2025.0", False), ("tensorrt==9.0", False)):
        assert cli("axes.onnx", "out.onnx", "--for", runtime, *FAST).code == 0
        (node,) = onnx.load(folder / "out.onnx").graph.node
        assert ("axes" in [attribute.name for attribute in node.attribute]) == known


def test_batch_and_inspect_have_the_option(process: Run, folder: Path) -> None:
    args = ("batch", "small.onnx", "--out-dir", "out", "--for", "onnxruntime==1.14", "--resume", *FAST)
    assert process(*args).code == 0
    assert opset_of(folder / "out" / "small.onnx") == 18
    assert "1 of them by an earlier run" in process(*args).out
    (entry,) = json.loads(process("inspect", "small.onnx", "--for", "tensorrt==9.0", "--json").out)
    assert entry["target"] == 19


def test_the_command_line_takes_precedence_over_the_file(cli: Run, folder: Path) -> None:
    (folder / "onnx-migrate.toml").write_text("for = 'onnxruntime==1.14'\n", encoding="utf-8")
    shutil.copy("small.onnx", "again.onnx")

    assert cli("small.onnx", "out.onnx", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 18
    assert cli("small.onnx", "out.onnx", "--opset", "15", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 15
    assert cli("small.onnx", "out.onnx", "--for", "tensorrt==9.0", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 19


def test_several_runtimes_at_once(cli: Run, folder: Path) -> None:
    args = ("--for", "onnxruntime==1.14", "--for", "tensorrt==8.2", *FAST)

    assert cli("small.onnx", "out.onnx", *args).code == 0
    result = onnx.load(folder / "out.onnx")
    assert (result.opset_import[0].version, result.ir_version <= 8) == (13, True)

    (folder / "onnx-migrate.toml").write_text(
        "for = ['tensorrt==8.2', 'onnxruntime==1.14']\n", encoding="utf-8"
    )
    assert cli("small.onnx", "configured.onnx", *FAST).code == 0
    assert (folder / "configured.onnx").read_bytes() == (folder / "out.onnx").read_bytes()
    assert json.loads(cli("inspect", "small.onnx", *args[:4], "--json").out)[0]["target"] == 13


CHIP = """name = "chip"
title = "My Chip"
{head}
[[release]]
{row}
"""


def chip(path: Path, row: str, head: str = "") -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(CHIP.format(head=head, row=row), encoding="utf-8")


def test_a_file_of_one_s_own_is_relative_to_the_config_file_that_names_it(cli: Run, folder: Path) -> None:
    chip(folder / "etc" / "chip.toml", "opset = 13")
    (folder / "etc" / "settings.toml").write_text("for = 'chip.toml'\n", encoding="utf-8")

    assert cli("small.onnx", "out.onnx", "--config", "etc/settings.toml", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == 13
    assert cli("small.onnx", "out.onnx", "--for", "./etc/chip.toml", *FAST).code == 0


def test_targets_without_a_common_opset_are_named(cli: Run, folder: Path) -> None:
    chip(folder / "chip.toml", "opset = 18\noldest = 16")

    ended = cli("small.onnx", "out.onnx", "--for", "tensorrt==8.2", "--for", "chip.toml")

    assert ended.code == 2
    assert "TensorRT 8.2 takes models up to opset 13, and My Chip from opset 16 on" in ended.err


@pytest.mark.parametrize(
    ("row", "before", "after"),
    [
        ("oldest = 15", 11, 15),
        ("oldest = 9", 11, 11),
        ("", 11, 11),
        ("opset = 13", 11, 13),
        ("opset = 99", 17, None),
    ],
)
def test_a_runtime_without_a_cap_leaves_the_opset(
    cli: Run, folder: Path, row: str, before: int, after: int | None
) -> None:
    chip(folder / "chip.toml", row)
    text = f'<ir_version: 7, opset_import: ["": {before}]> g (float[2] x) => (float[2] y) {{ y = Relu (x) }}'
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")

    assert cli("m.onnx", "out.onnx", "--for", "chip.toml", *FAST).code == 0
    assert opset_of(folder / "out.onnx") == (after or onnx.defs.onnx_opset_version())


def test_a_later_release_is_its_last_row_with_a_warning(cli: Run, folder: Path) -> None:
    ended = cli("small.onnx", "out.onnx", "--for", "tensorrt==99", "--json", *FAST)

    assert ended.code == 0
    (note,) = [note for note in json.loads(ended.out)["notes"] if note["code"] == "later-release"]
    assert note["severity"] == "warning"
    assert note["message"].startswith("TensorRT 99 is newer than ")


def test_what_one_refuses_and_another_tries(cli: Run, folder: Path) -> None:
    """Unique has no older form than opset 11: the runtime that tries gets that, unless the one that refuses takes less."""
    text = '<ir_version: 7, opset_import: ["": 13]> g (float[4] x) => (float[n] y) { z = Unique (x) y = Relu (z) }'
    onnx.save(onnx.parser.parse_model(text), folder / "unique.onnx")
    chip(folder / "tries.toml", "opset = 9", 'newer = "tried"')
    chip(folder / "refuses.toml", "opset = 12")
    args = ("unique.onnx", "out.onnx", "--for", "tries.toml", *FAST)

    assert cli(*args, "--for", "refuses.toml").code == 0
    assert opset_of(folder / "out.onnx") == 11
    (folder / "out.onnx").unlink()
    chip(folder / "refuses.toml", "opset = 10")
    ended = cli(*args, "--for", "refuses.toml")

    assert (ended.code, "supports models only up to opset 10" in ended.err) == (1, True)
    assert not (folder / "out.onnx").exists()


def test_the_opset_of_ml_can_be_named_beside_a_runtime(cli: Run, folder: Path) -> None:
    text = """<ir_version: 7, opset_import: ["": 13, "ai.onnx.ml": 1]>
g (float[2] x) => (float[2] y) { z = ai.onnx.ml.Binarizer <threshold = 0.5> (x) y = Relu (z) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "ml.onnx")

    args = ("ml.onnx", "out.onnx", "--for", "onnxruntime==1.14", *FAST)
    assert cli(*args, "--opset", "ai.onnx.ml=3").code == 0
    found = {item.domain: item.version for item in onnx.load(folder / "out.onnx").opset_import}
    assert found == {"": 18, "ai.onnx.ml": 3}
    assert cli(*args, "--opset", "ai.onnx.ml=3", "--opset", "15").code == 0
    found = {item.domain: item.version for item in onnx.load(folder / "out.onnx").opset_import}
    assert found == {"": 15, "ai.onnx.ml": 3}


def test_the_library_has_all_that_the_command_line_has(cli: Run, folder: Path) -> None:
    assert cli("small.onnx", "out.onnx", "--for", "onnxruntime==1.9", "--for", "opencv==4.5").code == 0

    onnx_migrate.migrate("small.onnx", runtime=["onnxruntime==1.9", "opencv==4.5"]).save("other.onnx")

    assert (folder / "other.onnx").read_bytes() == (folder / "out.onnx").read_bytes()


@pytest.mark.parametrize(
    "args",
    [
        ["--for", "abacus==1"],
        ["--for", "onnxruntime==0.1"],
        ["--for", "onnxruntime==1.14", "--opset", "19"],
        ["--for", "./gone.toml"],
        ["--for", "tensorrt"],
    ],
    ids=str,
)
def test_wrong_usage(cli: Run, folder: Path, args: list[str]) -> None:
    ended = cli("small.onnx", "out.onnx", *args)

    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert cli("explain", ended.err.split(": ")[1]).code == 0
    assert not (folder / "out.onnx").exists()


def test_a_best_effort_is_written_and_exits_with_1(cli: Run, folder: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y, float[1,1] z) { [gelu] a = Celu (x) y = Relu (a) [prod] z = ReduceProd (x) }"""
    onnx.save(onnx.parser.parse_model(text), folder / "partly.onnx")
    names = '["Relu", "Add", "Mul", "Div", "Exp", "Sub", "Max", "Min", "Where", "Less", "Clip", "Elu"]'
    (folder / "chip.toml").write_text(
        f'name = "chip"\noperators = "listed"\n[[release]]\nopset = 17\n[[operator]]\nnames = {names}\n',
        encoding="utf-8",
    )
    args = ("partly.onnx", "out.onnx", "--for", "./chip.toml", *FAST)

    refused = cli(*args)
    assert (refused.code, (folder / "out.onnx").exists()) == (1, False)
    ended = cli(*args, "--best-effort")
    assert ended.code == 1
    assert "warning: unchanged: 'prod' (ReduceProd-13): chip 1 has no ReduceProd" in ended.out.replace(
        "chip has", "chip 1 has"
    )
    found = {node.op_type for node in onnx.load(folder / "out.onnx").graph.node}
    assert "ReduceProd" in found
    assert "Celu" not in found

    again = ("batch", "partly.onnx", "--out-dir", "many", *args[2:], "--best-effort")
    for ended in (cli(*again), cli(*again, "--resume")):
        assert ended.code == 1
        assert "1 not taken in whole (--best-effort)" in ended.out
