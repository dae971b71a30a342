"""What continuous integration reads: JUnit, GitHub's annotations, summary and outputs; lists from stdin, one JSON object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx
import onnx.parser
import pytest

from onnx_migrate.batching import Outcome, Summary
from onnx_migrate.cli.output.ci import finish_all, followers
from tests.cli.running import Run

OUTCOMES = (
    Outcome("b.onnx", None, "migrated", verification="verified", seconds=1.25),
    Outcome("a.onnx", None, "unchanged", verification="unverified", doubt="out of\nmemory"),
    Outcome("dir/c,1.onnx", None, "refused", "no-adapter", "node 'x\x01': 50% of\nit <b>"),
    Outcome("d.onnx", None, "invalid", "bad-node", "broken"),
    Outcome("e.onnx", "e.out", "migrated", verification="verified", left=2),
)


def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, check: bool = False) -> tuple[str, str]:
    """Return the summary of the job and the outputs of the step of these outcomes, with a JUnit report in junit.xml."""
    for name in ("summary", "output"):
        variable = {"summary": "GITHUB_STEP_SUMMARY", "output": "GITHUB_OUTPUT"}[name]
        monkeypatch.setenv(variable, str(tmp_path / name))
    to_tell = followers(str(tmp_path / "junit.xml"), "github", check=check)
    totals = Summary(models=len(OUTCOMES), seconds=2.5)
    for outcome in OUTCOMES:
        totals.add(outcome)
        for follower in to_tell:
            follower.add(outcome)
    finish_all(to_tell, totals.as_dict())
    return (tmp_path / "summary").read_text(), (tmp_path / "output").read_text()


FORBIDDEN = [*range(9), 11, 12, *range(14, 32), 0xD800, 0xDFFF, 0xFFFE, 0xFFFF]
"""The characters that XML 1.0 does not have (its production `Char`), of surrogates the first and the last."""


def test_a_junit_report_of_any_name_is_xml(tmp_path: Path) -> None:
    (follower,) = followers(str(tmp_path / "junit.xml"), "", check=False)
    for code in FORBIDDEN:
        follower.add(Outcome(f"{chr(code)}.onnx", None, "refused", "no-adapter", f"node '{chr(code)}'"))
    follower.finish(Summary(models=len(FORBIDDEN), seconds=1.0).as_dict())

    root = ElementTree.parse(tmp_path / "junit.xml").getroot()

    assert len(root.findall("testsuite/testcase")) == len(FORBIDDEN)


@pytest.mark.parametrize("check", [False, True])
def test_a_junit_report_has_a_case_for_each_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: bool
) -> None:
    told(tmp_path, monkeypatch, check=check)

    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    found = [
        (case.get("name"), child.tag, child.get("type"))
        for case in cases
        for child in case
        if child.tag != "system-out"
    ]
    changed = [("b.onnx", "failure", "would-change")] if check else []
    assert found == [
        ("a.onnx", "skipped", None),
        *changed,
        ("d.onnx", "error", "bad-node"),
        ("dir/c,1.onnx", "failure", "no-adapter"),
        ("e.onnx", "failure", "not-fitted"),
    ]
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert counts == {
        "tests": "5",
        "failures": str(2 + check),
        "errors": "1",
        "skipped": "1",
        "time": "2.500",
    }
    skipped = cases[0].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "unverified: the result is not verified: out of memory"
    failure = cases[3].find("failure")
    assert failure is not None
    assert failure.get("message") == "node 'x\\x01': 50% of it <b>"


def test_github_shows_each_trouble_at_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, outputs = told(tmp_path, monkeypatch)

    assert capsys.readouterr().err.splitlines() == [
        "::warning file=a.onnx,title=onnx-migrate%3A unverified::a.onnx: the result is not verified: out of memory",
        "::error file=dir/c%2C1.onnx,title=onnx-migrate%3A no-adapter::dir/c,1.onnx: node 'x\\x01': 50%25 of it <b>",
        "::error file=d.onnx,title=onnx-migrate%3A bad-node::d.onnx: broken",
        "::error file=e.onnx,title=onnx-migrate%3A not-fitted::e.onnx: 2 things that --best-effort left unchanged",
    ]
    assert summary.startswith(
        "### onnx-migrate: 5 models\n\n2 migrated, 1 unverified, 1 refused, 1 invalid, 2 verified"
    )
    assert "| dir/c,1.onnx | refused | no-adapter: node 'x\\x01': 50% of it &lt;b&gt; |\n" in summary
    assert dict(line.split("=") for line in outputs.splitlines()) == {
        "models": "5", "migrated": "2", "unchanged": "1", "refused": "1", "invalid": "1", "failed": "0",
        "verified": "2", "unverified": "1", "timed-out": "0",
    }  # fmt: skip


def test_a_check_says_that_models_would_be_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, outputs = told(tmp_path, monkeypatch, check=True)

    assert "\n2 would be migrated, 1 unverified" in summary
    assert "| b.onnx | would be migrated | would-change: a migration would change the model |" in summary
    assert "migrated=2\n" in outputs


@pytest.mark.parametrize(
    ("annotations", "inside", "expected"),
    [("auto", "true", 1), ("auto", "", 0), ("github", "", 1), ("off", "true", 0)],
)
def test_annotations_are_github_s_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, annotations: str, inside: str, expected: int
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", inside)
    assert len(followers(None, annotations, check=False)) == expected


QUICK = ("--no-simplify", "--no-verify")


def test_a_batch_of_a_list_prints_one_object(
    folder: Path, cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed = tmp_path / "list"
    listed.write_text("small.onnx\n\nnone.onnx\n")
    with listed.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        done = cli("batch", "-", "--check", "--json", "--junit", "junit.xml", *QUICK)

    whole: dict[str, Any] = json.loads(done.out)
    assert done.code == 1
    assert {model["model"]: model["outcome"] for model in whole["models"]} == {
        "small.onnx": "migrated",
        "none.onnx": "failed",
    }
    assert (whole["kind"], whole["totals"]["models"]) == ("batch", 2)
    (failure,) = ElementTree.parse(folder / "junit.xml").getroot().findall(".//failure")
    assert "a migration would change the model: opset 11 → " in str(failure.get("message"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("batch", "-", "--check"), "stdin lists no models"),
        (("batch", "small.onnx", "--check", "--json", "--json-lines", "-"), "choose one"),
        (("batch", "small.onnx", "--check", "--junit", "small.onnx"), "is not a JUnit report"),
        (("small.onnx", "out.onnx", "--junit", "out.onnx"), "are the same file"),
        (("small.onnx", "out.onnx", "--input-shape", "x:1"), "--fix-shape INPUT:SIZES sets a shape"),
        (("small.onnx", "out.onnx", "--fp16"), "--precision fp16"),
        (("small.onnx", "out.onnx", "--override-input-shape", "x:1"), "--fix-shape INPUT:SIZES"),
        (("small.onnx", "out.onnx", "--no-large-tensor"), "--no-simplify"),
        (("small.onnx", "out.onnx", "--fold-constants"), "happens automatically"),
        (("small.onnx", "out.onnx", "--op-block-list", "Softmax"), "--keep-fp32"),
        (("small.onnx", "out.onnx", "--test-input-shape", "x:1"), "--input-data"),
        (("batch", "small.onnx", "--rename", "x"), "onnx-migrate renames nothing"),
    ],
)
def test_wrong_usage_is_told(
    cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        done = cli(*arguments)
    assert done.code in (1, 2)
    assert said.replace("are the same file", "out.onnx") in done.err


def test_a_single_migration_has_them_too(
    folder: Path, cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (folder / "bad.onnx").write_bytes(b"no model")
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    options = ("--junit", "junit.xml", "--annotations", "github", *QUICK)
    assert cli("small.onnx", "out.onnx", *options).code == 0
    assert ElementTree.parse(folder / "junit.xml").getroot().get("failures") == "0"
    assert cli("small.onnx", "--check", *options).code == 1
    assert ElementTree.parse(folder / "junit.xml").getroot().get("failures") == "1"

    refused = cli("bad.onnx", "out.onnx", *options)

    assert refused.code == 4
    assert "::error file=bad.onnx,title=onnx-migrate%3A " in refused.err
    assert ElementTree.parse(folder / "junit.xml").getroot().get("errors") == "1"
    assert (tmp_path / "output").read_text().count("models=1\n") == 3


def test_several_passes_are_left_out_at_once(cli: Run) -> None:
    done = cli("small.onnx", "out.onnx", "--json", "--skip-pass", "cleanup,declared_shapes", *QUICK)
    assert not {"cleanup", "declared_shapes"} & set(json.loads(done.out)["passes"])
    assert cli("small.onnx", "out.onnx", "--skip-pass", "cleanup,nothing", *QUICK).code == 2


@pytest.mark.parametrize(("allow", "tag", "level"), [(False, "error", "error"), (True, "skipped", "warning")])
def test_a_model_that_hangs_is_an_error_unless_unverified_results_are_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], allow: bool, tag: str, level: str
) -> None:
    hung = Outcome("h.onnx", "o.onnx", "migrated", verification="unverified", doubt="not done", late=True)
    junit, github = followers(str(tmp_path / "j.xml"), "github", check=False, allow_unverified=allow)
    totals = Summary(models=1)
    totals.add(hung)
    for follower in (junit, github):
        follower.add(hung)
    junit.finish(totals.as_dict())

    (found,) = ElementTree.parse(tmp_path / "j.xml").getroot().findall(f".//{tag}")
    assert str(found.get("message")).endswith("the result is written, but not verified: not done")
    assert capsys.readouterr().err == (
        f"::{level} file=h.onnx,title=onnx-migrate%3A timed-out::h.onnx: the result is written, but not verified: not done\n"
    )


UNRUNNABLE = """<ir_version: 6, opset_import: ["": 11]>
g (float[2] x) => (float[1] y) <int64[1] far = {9}> { a = Relu(x)  y = Gather(a, far) }"""


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("out.onnx",), 0),
        (("out.onnx", "--junit", "j.xml"), 3),
        (("out.onnx", "--annotations", "github"), 3),
        (("out.onnx", "--junit", "j.xml", "--allow-unverified"), 0),
    ],
)
def test_a_single_unverified_result_fails_in_the_modes_for_ci(
    folder: Path, cli: Run, options: tuple[str, ...], code: int
) -> None:
    onnx.save(onnx.parser.parse_model(UNRUNNABLE), folder / "odd.onnx")
    assert cli("odd.onnx", *options, "--no-simplify").code == code
    assert (folder / "out.onnx").exists()


def test_annotations_stand_in_for_the_lines_of_a_batch(folder: Path, cli: Run) -> None:
    (folder / "bad.onnx").write_bytes(b"no model")
    done = cli("batch", "bad.onnx", "--check", "--annotations", "github", *QUICK)
    assert [line for line in done.err.splitlines() if "bad.onnx" in line] == [done.err.splitlines()[0]]
    assert done.err.startswith("::error file=bad.onnx")
