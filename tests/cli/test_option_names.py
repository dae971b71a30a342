"""Former names of options: keywords, flags and configuration keys that still work, and do the same as the current ones."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onnx_migrate
from onnx_migrate.cli.app import app
from onnx_migrate.declared import current_names, declared
from onnx_migrate.options import Options
from tests.cli.running import FAST, Run, opset_of

DECLARED = {item.name: item for item in declared(Options)}
RENAMED = [(former, item) for item in DECLARED.values() for former in item.former]

MODEL = (
    """<ir_version: 4, opset_import: ["": 9]> g (float[1,3] x) => (float[1,3] y) { z = Relu(x) y = Neg(z) }"""
)


@pytest.mark.parametrize(("former", "item"), RENAMED, ids=lambda value: getattr(value, "name", value))
def test_a_former_name_is_no_current_one_and_no_help_shows_it(former: str, item) -> None:  # type: ignore[no-untyped-def]
    assert former not in DECLARED
    assert item.flags[0] == f"--{item.name.replace('_', '-')}"
    flags = {flag for option in app.commands["migrate"].params for flag in option.opts}
    assert not flags & set(item.former_flags)


def test_python_takes_both_names_and_refuses_both_at_once() -> None:
    model = onnx.parser.parse_model(MODEL)
    by_name = [
        onnx_migrate.migrate(model, verify=False, simplify=False, **keywords)  # type: ignore[arg-type]
        for keywords in ({"outputs": "z"}, {"extract_outputs": "z"})
    ]
    assert [[out.name for out in done.structure.graph.output] for done in by_name] == [["z"], ["z"]]
    with pytest.raises(TypeError, match="'fix' is the old name of 'fix_shape': pass only one of them"):
        onnx_migrate.migrate(model, fix="N=1", fix_shape="N=1")  # type: ignore[call-arg]
    assert current_names(Options, {"without": "a", "opset": 3}) == {"skip_pass": "a", "opset": 3}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--fix", "x:1,3,8,8"], ["--fix-shape", "x:1,3,8,8"]),
        (["--fix=x:1,3,8,8"], ["--fix-shape=x:1,3,8,8"]),
        (["--without", "cleanup"], ["--skip-pass", "cleanup"]),
        (["--strict"], ["--require-valid"]),
        (["--prove_in", "onnxruntime"], ["--run-in", "onnxruntime"]),
        (["--standard"], ["--to-onnx-ops"]),
        (["--quantized", "qdq"], ["--quantized-form", "qdq"]),
        (["--keep", "tf-half-pixel-for-nn"], ["--keep-resize-mode", "tf_half_pixel_for_nn"]),
    ],
    ids=str,
)
def test_a_former_flag_does_the_same(cli: Run, folder: Path, old: list[str], new: list[str]) -> None:
    ended = [cli("small.onnx", f"{number}.onnx", *words, *FAST) for number, words in enumerate((old, new))]
    assert [done.code for done in ended] == [0, 0], ended
    assert (folder / "0.onnx").read_bytes() == (folder / "1.onnx").read_bytes()


def test_a_former_flag_behind_dashes_is_a_file(cli: Run) -> None:
    assert "--fix: no such file" in cli("--", "--fix", "out.onnx").err


def test_verify_takes_its_former_flags(cli: Run) -> None:
    done = cli("verify", "small.onnx", "small.onnx", "--map", "x=x", "--in", "onnxruntime")
    assert done.code == 0, done


@pytest.mark.parametrize("key", ["without", "skip-pass", "skip_pass"])
def test_a_configuration_file_takes_both_names(cli: Run, folder: Path, key: str) -> None:
    (folder / "onnx-migrate.toml").write_text(f'{key} = ["polish"]\n', encoding="utf-8")
    assert "polish" in cli("small.onnx", "out.onnx", *FAST).err


def test_a_configuration_file_with_both_names_is_refused(cli: Run, folder: Path) -> None:
    (folder / "onnx-migrate.toml").write_text('fix = "N=1"\nfix-shape = "N=2"\n', encoding="utf-8")
    done = cli("small.onnx", "out.onnx", *FAST)
    assert (done.code, "name the same option; keep only fix-shape" in done.err) == (2, True)


def test_json_has_an_option_under_both_names(cli: Run) -> None:
    out = cli("small.onnx", "out.onnx", "--skip-pass", "cleanup", "--json", *FAST).out
    assert '"skip_pass": [' in out
    assert '"without": [' in out


@pytest.mark.parametrize(
    ("keywords", "opset"),
    [
        ({}, 17),
        ({"opset": "keep"}, 9),
        ({"opset": {"ai.onnx": "keep"}}, 9),
        ({"dynamic_batch": True}, 9),
        ({"dynamic": "x:N,3"}, 9),
        ({"fix_shape": "x:1,3"}, 9),
        ({"static": True}, 17),
        ({"static": True, "fix_shape": "x:1,3"}, 17),
        ({"precision": "fp16"}, 9),
        ({"to_onnx_ops": True}, 9),
        ({"int32": True}, 9),
        ({"extract_outputs": "z"}, 9),
        ({"dynamic_batch": True, "opset": "17+"}, 17),
        ({"to_onnx_ops": True, "opset": 13}, 13),
        ({"resize_form": "sizes"}, 17),
        ({"dynamic_batch": True, "runtime": "onnxruntime==1.14"}, 18),
    ],
)
def test_a_change_other_than_the_opset_keeps_it(keywords: dict[str, object], opset: int) -> None:
    done = onnx_migrate.migrate(onnx.parser.parse_model(MODEL), verify=False, simplify=False, **keywords)  # type: ignore[arg-type]
    assert done.report.after.opset == opset
    note = [note.message for note in done.report.notes if note.code == "opset-kept"]
    kept = opset == 9 and "opset" not in keywords
    assert note == (["the model keeps its opset, 9; --opset N changes it"] if kept else [])


def test_the_command_line_keeps_the_opset_too(cli: Run, folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), folder / "nine.onnx")
    for words, opset in (
        ([], 17),
        (["--dynamic-batch"], 9),
        (["--opset", "keep"], 9),
        (["--dynamic-batch", "--opset", "17+"], 17),
    ):
        assert cli("nine.onnx", "out.onnx", *words, *FAST).code == 0
        assert opset_of(folder / "out.onnx") == opset, words
