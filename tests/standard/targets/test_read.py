"""The files of targets, what is said of one that is wrong, and the tables that come with the package."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.standard.targets import resolve, shipped
from onnx_migrate.standard.targets.read import find, known_names, parse_table, read_table, spellings, tables
from onnx_migrate.standard.targets.releases import plain
from onnx_migrate.standard.targets.rows import (
    FORMS,
    PREDICATES,
    Bundle,
    FaultRow,
    KernelRow,
    Knowledge,
    OperatorSupport,
    ReleaseRow,
    Table,
)
from onnx_migrate.standard.targets.target import Target
from onnx_migrate.standard.toml_rows import keys_of
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "targets.md"


def example(at: int = 0) -> str:
    return re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[at]


def test_the_example_of_the_page_has_every_key(tmp_path: Path) -> None:
    path = tmp_path / "mychip.toml"
    path.write_text(example() + example(1), encoding="utf-8")

    table = read_table(path)
    one, two = resolve([f"{path}==gold"]), resolve([f"{path}==2.2"])

    assert (table.name, table.title, table.listed, table.file) == ("mychip", "MyChip SDK", True, str(path))
    assert table.bundles[0].releases["2024.1"] == "2.0"
    assert (one.opset, one.oldest, one.ir_version, one.resize_form, one.resize_axes, one.members[0].measured) == (
        13, 9, 8, "scales", False, True,
    )  # fmt: skip
    assert one.write == frozenset(FORMS)
    assert (two.opset, two.oldest, two.ir_version, two.resize_form, two.write, two.members[0].measured) == (
        17, None, None, "auto", frozenset(), False,
    )  # fmt: skip
    assert [bool(t.lacks("", "LayerNormalization")) for t in (one, resolve([f"{path}==2.0"]), two)] == [
        True,
        False,
        True,
    ]
    assert two.newest_version("", "Clip") == (12, two.members[0])
    ((_, row),) = two.limits("", "Clip")
    assert row.types == ("float", "float16")
    ((_, row),) = two.limits("", "Resize")
    assert row.attributes["mode"] == ("nearest", "linear")
    assert not two.lacks("com.microsoft", "Gelu")
    assert two.lacks("", "Gelu")
    row = one.members[0].row
    assert (row.types, row.input_types, row.output_types) == (("float", "int64"), ("float",), ("float",))
    assert (row.static, row.rank) == (True, 5)
    ((_, row),) = two.limits("", "MaxPool")
    assert (row.rank, (1, 8) in row.attributes["kernel_shape"], (1, 9) in row.attributes["kernel_shape"]) == (
        4,
        True,
        False,
    )
    assert list(two.constant_inputs("", "Reshape")) == ["shape"]
    assert [fault.names for _, fault in one.faults] == [("AveragePool",)]
    assert two.faults == ()


def test_the_page_has_every_key_that_a_file_can_have() -> None:
    rows = (Table, ReleaseRow, OperatorSupport, FaultRow, KernelRow, Bundle)
    arrays = {"release", "operator", "fault", "kernel", "bundle"}
    keys = {name for row in rows for name in keys_of(row)} - arrays - {"file", "digest"}
    files = example() + example(1) + example(3)

    assert len(keys) > 30
    assert {key for key in keys if not re.search(rf"^{key} =", files, re.M)} == {"lacking"}
    assert "lacking = true" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("shipped", [True, False])
def test_what_is_built_from_a_runtime_has_its_rows_as_what_was_read(shipped: bool, tmp_path: Path) -> None:
    path = tmp_path / "mychip-ort.toml"
    path.write_text(example(3), encoding="utf-8")
    name = "onnxruntime-web" if shipped else str(path)
    for release in ("1.16", "1.20.1", "1.30"):
        own, other = (resolve([f"{one}=={release}"]).members[0] for one in (name, "onnxruntime"))

        assert own.row == replace(other.row, measured=False)
        assert other.measured
        assert own.rows_of("", "DeformConv") == other.rows_of("", "DeformConv")
        assert (own.boxes, own.failing) == (other.boxes, other.failing)
        assert own.table.faults == other.table.faults
        assert own.knowledge("com.microsoft", "GroupQueryAttention") is not Knowledge.MEASURED
    assert "TreeEnsemble" in resolve([f"{name}==1.20.1"]).members[0].row.source
    with pytest.raises(UsageError, match=r"1\.7"):
        resolve([f"{name}==1.7"])


def test_the_rows_of_a_program_are_added_to_the_table() -> None:
    text = b'name = "chip"\n[[release]]\n[[operator]]\nnames = ["Relu", "Softmax"]\nnewest = 6\n'
    rows = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[2].encode()

    table = parse_table(text, "chip.toml", rows)
    target = Target(table, table.releases[0], "4.6", "4.6")

    assert table.digest != parse_table(text, "chip.toml").digest
    assert len(table.operators) == 4
    assert [target.has("", name) for name in ("Relu", "GridSample", "Tan")] == [True, False, True]
    assert [target.newest_version("", name) for name in ("Relu", "Softmax")] == [None, 11]
    known = [target.knowledge("", name) for name in ("Relu", "Conv", "Tan")]
    assert known == [Knowledge.MEASURED, Knowledge.MEASURED, Knowledge.UNKNOWN]


def test_the_rows_of_a_program_are_measured() -> None:
    with pytest.raises(
        UsageError, match=r"chip\.operators\.toml: \[\[operator\]\] 1 must have measured = true"
    ):
        parse_table(b'name = "chip"\n[[release]]\n', "chip.toml", b'[[operator]]\nnames = ["Relu"]')


OPERATOR = '[[operator]]\nnames = ["Relu"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('names = ["Reslu"]', "[[operator]] 2 (Reslu): ai.onnx has no operator 'Reslu' (did you mean Relu?)"),
        ('names = ["LAYERNORMALIZATION"]', "(did you mean LayerNormalization?)"),
        ('names = ["Relu", "Con"]', "[[operator]] 2 (Relu): ai.onnx has no operator 'Con' (did you mean Conv?)"),
        ('names = ["FusedMatMul"]', 'domain = "com.microsoft"'),
        ('names = ["FusedMatMull"]\ndomain = "com.microsoft"', "(did you mean FusedMatMul?)"),
        ('names = ["Scalar"]\ndomain = "ai.onnx.ml"', "ai.onnx.ml has no operator 'Scalar' (did you mean Scaler?)"),
        ('names = ["Conv"]\nattributes = { stride = [[1, 1]] }', "Conv has no attribute 'stride' (did you mean strides?)"),
        ('names = ["Pad"]\nattributes = { mode = ["refelct"] }', "Pad's mode is never 'refelct' (did you mean reflect?)"),
        ('names = ["Softmax"]\nattributes = { axis = ["1"] }', "the values of Softmax's axis are whole numbers, not '1'"),
        ('names = ["Reshape"]\nconstant_inputs = ["shap"]', "Reshape has no input 'shap' (did you mean shape?)"),
        ('names = ["Pad"]\nattributes = { mode = { min = 1 } }', "Pad's mode are texts, which have no range"),
        ('names = ["Conv"]\nattributes = { strides = { mx = 1 } }', "attributes.strides is not a range: {'mx': 1}"),
        ('names = ["Conv"]\nattributes = { strides = [1] }', "the values of Conv's strides are lists, not 1"),
    ],
)  # fmt: skip
def test_names_that_nobody_has_are_errors(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(f'name = "chip"\n[[release]]\n{OPERATOR}[[operator]]\n{text}\n', encoding="utf-8")

    with pytest.raises(UsageError) as error:
        read_table(path)
    assert message in error.value.with_hint

    assert error.value.code == "bad-target-file"
    assert str(path) in error.value.with_hint


@pytest.mark.parametrize(
    "text",
    [
        'names = ["Swish", "Constant", "ATen"]',
        'names = ["Gizmo"]\ndomain = "com.example"\nattributes = { size = [1] }',
    ],
)
def test_names_that_some_runtime_has_are_right(text: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(f'name = "chip"\n[[release]]\n[[operator]]\n{text}\n', encoding="utf-8")

    assert read_table(path).operators


def test_a_fault_names_an_operator_that_there_is(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(
        'name = "chip"\n[[release]]\n[[fault]]\nnames = ["Ad"]\ntext = "adds"\n', encoding="utf-8"
    )

    with pytest.raises(UsageError, match=r"\[\[fault\]\] 1 \(Ad\): ai.onnx has no operator 'Ad'"):
        read_table(path)


def test_files_of_measurements_are_no_runtimes() -> None:
    assert not [name for name in known_names() if "." in name and name != "onnx.js"]


ROW = "[[release]]\nopset = 13\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 1", "not TOML"),
        ("", "the key name is missing"),
        ("name = 'My Chip'\n" + ROW, "name must be of lower case letters"),
        ("name = 'a'", "there is no [[release]]"),
        ("name = 'a'\nbuilt_from = 'onnxruntme'\n" + ROW, "is no runtime that has a table (did you mean onnxruntime?)"),
        ("name = 'a'\nbuilt_from = 'onnxruntime'\n" + ROW, "there is one [[release]], which has the key from and no other"),
        ("name = 'a'\nrelase = 1\n" + ROW, "unknown key 'relase' (did you mean release?)"),
        ("name = 'a'\nnewer = 'maybe'\n" + ROW, "newer must be one of refused, tried, not 'maybe'"),
        ("name = 'a'\noperators = 'all'\n" + ROW, "operators must be one of listed, any, unknown, not 'all'"),
        ("name = 'a'\n" + ROW + ROW, "[[release]] 2: of several rows each needs `from`"),
        (
            "name = 'a'\n[[release]]\nfrom = '1.10'\n[[release]]\nfrom = '1.9'",
            "[[release]] 2: of several rows each needs `from`, and the oldest comes first",
        ),
        ("name = 'a'\n[[release]]\nfrom = 1.2", "[[release]] 1 (from 1.2): from must be a text, not 1.2"),
        ("name = 'a'\n[[release]]\nfrom = 'v2'", "[[release]] 1 (from v2): from must be a release such as"),
        ("name = 'a'\n[[release]]\nopset = '13'", "[[release]] 1: opset must be a whole number above 0, not '13'"),
        ("name = 'a'\n[[release]]\nopset = 9\noldest = 10", "[[release]] 1: opset 9 is older than oldest 10"),
        ("name = 'a'\n[[release]]\nwrite = ['axes']", "[[release]] 1: write has an unknown value 'axes'"),
        ("name = 'a'\n[[release]]\nresize_form = 'roi'", "resize_form must be one of auto, scales, sizes"),
        ("name = 'a'\n" + ROW + "[[operator]]\n", "[[operator]] 1: the key names is missing"),
        (
            "name = 'a'\n" + ROW + "[[operator]]\nnames = ['Add']\n[[operator]]\nnames = ['Clip']\nversion = 3",
            "[[operator]] 2 (Clip): unknown key 'version'",
        ),
        (
            "name = 'a'\n" + ROW + "[[operator]]\nnames = ['Add']\ntypes = ['float']",
            "[[operator]] 1 (Add): types has an unknown value 'float' (did you mean float",
        ),
        (
            "name = 'a'\n" + ROW + "[[operator]]\nnames = ['Add']\nattributes = { axis = 1 }",
            "[[operator]] 1 (Add): attributes.axis must be a list of values or a range, not 1",
        ),
        (
            "name = 'a'\n" + ROW + "[[operator]]\nnames = ['Add']\nlacking = true\nnewest = 3",
            "[[operator]] 1 (Add): a row with lacking says nothing else",
        ),
        (
            "name = 'a'\n" + ROW + "[[fault]]\nnames = ['Add']\ntext = 'adds'\nwhen = 'sometimes'",
            "[[fault]] 1 (Add): when must be one of",
        ),
        ("name = 'a'\n" + ROW + "[[fault]]\nnames = ['Add']", "[[fault]] 1 (Add): the key text is missing"),
        (
            "name = 'a'\n" + ROW + "[[bundle]]\nnames = ['b']\nreleases = { '1' = 2 }",
            "[[bundle]] 1: releases must give a release such as '8.6' for '1', not 2",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_row_and_key(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_table(text.encode(), "chip.toml")
    assert message in error.value.with_hint
    assert error.value.code == "bad-target-file"
    assert error.value.reason.startswith("chip.toml: ")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file") as error:
        read_table(tmp_path / "gone.toml")
    assert error.value.code == "bad-target-file"


def test_an_empty_row_bounds_nothing() -> None:
    row, operator = ReleaseRow(), OperatorSupport(("Add",))

    assert (row.opset, row.oldest, row.ir_version, row.resize_form, row.resize_axes) == (
        None,
        None,
        None,
        "auto",
        True,
    )
    assert (operator.newest, dict(operator.attributes), operator.types, operator.lacking) == (
        None,
        {},
        (),
        False,
    )
    assert len(set(FORMS)) == 28
    assert len(set(PREDICATES)) == len(PREDICATES)


def test_targets_travel_between_processes() -> None:
    targets = resolve(["onnxruntime==1.22", "opencv==4.8"])

    assert pickle.loads(pickle.dumps(targets)) == targets
    assert hash(targets) == hash(resolve(["onnxruntime==1.22", "opencv==4.8"]))


def test_no_name_stands_for_two_runtimes() -> None:
    seen: dict[str, str] = {}
    for table in tables():
        products = [name for bundle in table.bundles for name in bundle.names]
        for name in {
            plain(item) for item in (table.name, table.title, *table.packages, *table.aliases, *products)
        }:
            assert seen.setdefault(name, table.name) == table.name, name


def test_names_are_found_in_any_spelling() -> None:
    for text in ("onnxruntime", "ONNX Runtime", "onnx-runtime", "ort", "ORT"):
        assert find(text) == (shipped("onnxruntime"), None)
    assert find("abacus") is None
    assert set(known_names()) <= set(spellings().values())
