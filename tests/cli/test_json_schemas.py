"""The published JSON Schemas: up to date, and what commands print is as they say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.running import Run
from tests.support.paths import FIXTURES
from tests.support.skips import Elsewhere, import_or_skip
from tools.pages.json_schemas import FOLDER, SCHEMAS, text

jsonschema = import_or_skip("jsonschema", Elsewhere.INSTALLED)


@pytest.fixture(autouse=True)
def models(folder: Path) -> None:
    for name in (
        "espcn_opset9",
        "conv_relu_upsample_opset11",
        "control_flow_opset11",
        "frozen_transformer_opset14",
        "unet_opset9",
    ):
        shutil.copy(FIXTURES / f"{name}.onnx", folder / f"{name.partition('_opset')[0]}.onnx")
    (folder / "small.onnx").unlink()


def check(name: str, printed: str) -> list[Any]:
    """Check each JSON value that was printed against a schema, and return them."""
    validator = jsonschema.Draft202012Validator(json.loads(text(name)))
    try:
        values = [json.loads(printed)]
    except ValueError:
        values = [json.loads(line) for line in printed.splitlines()]
    for value in values:
        for error in validator.iter_errors(value):
            found = jsonschema.exceptions.best_match([error], key=lambda item: len(item.absolute_path))
            raise AssertionError(f"{list(found.absolute_path)}: {found.message}")
    return values


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_published_file_is_up_to_date(name: str) -> None:
    schema = json.loads(text(name))
    jsonschema.Draft202012Validator.check_schema(schema)
    written = (FOLDER / schema["$id"]).read_text(encoding="utf-8")
    assert written == text(name), "run python -m tools.pages.json_schemas"


@pytest.mark.parametrize(
    ("args", "outcome"),
    [
        (("conv_relu_upsample.onnx", "o.onnx", "--opset", "17", "--dynamic", "x:N,3,H,W"), "migrated"),
        (("espcn.onnx", "o.onnx", "--for", "tensorrt==8.5"), "migrated"),
        (("espcn.onnx", "--check", "--no-verify", "--diff"), "migrated"),
        (("espcn.onnx", "o.onnx", "--ir-version", "5"), "migrated"),
        (("control_flow.onnx", "o.onnx", "--opset", "9", "--no-simplify"), "migrated"),
        (("frozen_transformer.onnx", "o.onnx", "--dynamic", "input_ids:N,T"), "refused"),
        (("espcn.onnx", "o.onnx", "--rtol", "0", "--atol", "0", "--pass", "broken:act"), "failed"),
        (("missing.onnx", "o.onnx"), "failed"),
    ],
    ids=["dynamic", "for", "check", "header", "lowered", "refused", "differs", "missing"],
)
def test_a_report(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], outcome: str
) -> None:
    (folder / "broken.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(folder)
    (value,) = check("report", cli(*args, "--json").out)
    assert value["outcome"] == outcome
    assert outcome == "failed" or value["request"]["command"].startswith("onnx-migrate ")
    if "--dynamic" in args and outcome == "migrated":  # else nothing of them would be checked
        assert all(
            value[name]
            for name in ("operators", "passes", "changes", "notes", "dims", "verification", "dynamic")
        )
        assert all(value[name]["inputs"] and value[name]["outputs"] for name in ("before", "after"))


BROKEN = """
import onnx, numpy as np
def act(model: onnx.ModelProto) -> onnx.ModelProto:
    for node in model.graph.node:
        if node.op_type == "Conv":
            node.op_type, node.domain = "Conv", ""
            weight = next(item for item in model.graph.initializer if item.name == node.input[1])
            weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight) * np.float32(1.5), weight.name))
            return model
    return model
"""


def test_lines_and_journal_of_a_batch(cli: Run, folder: Path) -> None:
    (folder / "bad.onnx").write_text("hello")
    arguments = (
        "batch",
        ".",
        "--out-dir",
        "out",
        "--json-lines",
        "lines.jsonl",
        "--jobs",
        "1",
        "--no-simplify",
    )
    cli(*arguments)
    first = check("batch", Path("lines.jsonl").read_text())
    cli(*arguments, "--resume")
    again = check("batch", Path("lines.jsonl").read_text())
    records = check("journal", Path("out/.onnx-migrate.jsonl").read_text())

    assert [value["kind"] for value in first].count("model") == 6
    assert sum(value.get("cached") is True for value in again) == len(records) == 5


def test_an_inspection(cli: Run, folder: Path) -> None:
    for more in ((), ("--for", "tensorrt==8.5"), ("--for", "all")):
        (values,) = check(
            "inspection", cli("inspect", "espcn.onnx", "unet.onnx", "missing.onnx", "--json", *more).out
        )
        assert [value.get("outcome") for value in values] == [None, None, "failed"]


def test_a_verdict(cli: Run, folder: Path) -> None:
    assert cli("espcn.onnx", "new.onnx").code == 0
    for other, kind in (("new.onnx", "verified"), ("unet.onnx", "differs")):
        (value,) = check("verdict", cli("verify", "espcn.onnx", other, "--json").out)
        assert value["kind"] == kind
    check("verdict", cli("verify", "espcn.onnx", "missing.onnx", "--json").out)


def test_a_reduction(cli: Run, folder: Path) -> None:
    for command, nodes in (("exit 3 # {}", 1), ("true {}", None)):
        (value,) = check("reduction", cli("reduce", "espcn.onnx", "--check", command, "--json").out)
        assert value.get("nodes") == nodes


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("runtimes",),
        ("Resize",),
        ("LayerNormalization",),
        ("resize-13",),
        ("needs-rank",),
        ("tensorrt",),
        ("tensorrt==8.6",),
        ("opencv==4.8",),
        ("No Op registered for Range with domain_version of 10",),
        ("unet.onnx", "No importer registered for op: Upsample"),
        ("espcn.onnx", "Unsupported model IR version: 10, max supported IR version: 9"),
        ("missing.onnx", "No importer registered for op: Upsample"),
        ("tensorrt==0.1",),
        ("what is this",),
    ],
    ids=" ".join,
)
def test_an_explanation(cli: Run, folder: Path, args: tuple[str, ...]) -> None:
    check("explanation", cli("explain", *args, "--json").out)


def test_a_schema_refuses_what_is_not_printed() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(text("report")))
    assert not validator.is_valid({"schema_version": 1, "model": "a.onnx"})
    assert not validator.is_valid(np.arange(2).tolist())
