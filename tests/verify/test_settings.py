"""Settings: libraries of custom operators, what a listener hears of the runs, and what is said of a child that ended early."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest

from onnx_migrate import UsageError, compare, migrate, process
from onnx_migrate.process.child import call
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify.evaluators.interface import Evaluator
from onnx_migrate.verify.run_count import begin_run, expect_runs, run_each, start_count
from onnx_migrate.verify.settings import interruption, libraries_of
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, import_or_skip, skip
from tests.support.small_model import small
from tests.verify.harness import RELU, net, prove, runnable, verdict

COMPILER = shutil.which("cc") or shutil.which("gcc")

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *RegisterCustomOps(void *options, const void *api) {
    FILE *file = fopen(getenv("LOADED_BY"), "a");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    return NULL;
}
"""
"""Registers nothing, and tells which process loaded it."""

INVERSE = """<ir_version: 8, opset_import: ["": 12, "ai.onnx.contrib": 1]>
g (float[3,3] x) => (float[3,3] y) { a = ai.onnx.contrib.Inverse (x)  y = Softmax <axis = 1> (a) }"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        skip("there is no C compiler", Elsewhere.INSTALLED)
    folder = tmp_path_factory.mktemp("library")
    (folder / "ops.c").write_text(SOURCE, encoding="utf-8")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", folder / "libops.so", folder / "ops.c"], check=True)
    return folder / "libops.so"


@pytest.fixture
def loaded_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADED_BY", str(tmp_path / "pids"))
    return tmp_path / "pids"


def processes(path: Path) -> set[int]:
    return set(map(int, path.read_text().split())) if path.exists() else set()


@pytest.mark.parametrize("call", ["migrate", "compare"])
def test_it_is_loaded_where_the_models_run_and_not_here(library: Path, loaded_by: Path, call: str) -> None:
    if call == "migrate":
        report = migrate(small(), ort_library=library, simplify=False).report
        assert report.verified
        assert report.as_dict()["request"]["command"].endswith(f"--ort-library {library} --no-simplify")
    else:
        assert compare(small(), small(), ort_library=[str(library)]).verified

    assert processes(loaded_by)
    assert os.getpid() not in processes(loaded_by)


def test_without_a_verification_it_is_not_loaded(library: Path, loaded_by: Path) -> None:
    migrate(small(), ort_library=library, simplify=False, verify=False)
    assert not processes(loaded_by)


def test_the_command_line_takes_it_and_a_file_found_by_search_only_with_trust(
    tmp_path: Path, library: Path, loaded_by: Path
) -> None:
    def cli(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "onnx_migrate", *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    onnx.save(small(), tmp_path / "small.onnx")
    assert cli("small.onnx", "out.onnx", "--no-simplify", "--ort-library", library).returncode == 0
    assert processes(loaded_by)
    loaded_by.unlink()
    assert cli("verify", "small.onnx", "out.onnx", "--ort-library", library).returncode == 0
    assert processes(loaded_by)
    loaded_by.unlink()
    (tmp_path / "lib.so").write_bytes(library.read_bytes())
    (tmp_path / "onnx-migrate.toml").write_text('ort-library = "lib.so"\n', encoding="utf-8")

    refused = cli("small.onnx", "out2.onnx", "--no-simplify")
    assert (refused.returncode, "names code to run (ort-library = " in refused.stderr) == (2, True)
    assert not processes(loaded_by)
    trusted = ("--no-simplify", "--trust-config")
    assert cli("batch", "small.onnx", "--out-dir", "many", *trusted).returncode == 0
    assert processes(loaded_by)


@pytest.mark.parametrize("isolated", [True, False])
def test_what_is_no_library_is_misuse(tmp_path: Path, isolated: bool) -> None:
    (tmp_path / "text.so").write_text("hello", encoding="utf-8")
    for path, words in (("none.so", "there is no such library"), ("text.so", "cannot load it as a library")):
        with pytest.raises(UsageError, match=words) as caught:
            migrate(small(), ort_library=tmp_path / path, simplify=False, isolated=isolated)
        assert caught.value.code == "ort-library"
        assert str(tmp_path / path) in caught.value.with_hint


def test_paths_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.so").touch()
    monkeypatch.chdir(tmp_path)
    assert libraries_of(["a.so", Path("a.so")]) == (str(tmp_path / "a.so"),) * 2
    assert libraries_of(()) == ()


def test_models_with_custom_operators_are_verified() -> None:
    extensions = import_or_skip("onnxruntime_extensions", Elsewhere.INSTALLED)
    model = onnx.parser.parse_model(INVERSE)

    assert not migrate(model, opset=17).report.verified
    report = migrate(model, opset=17, ort_library=extensions.get_library_path()).report

    assert report.verified
    assert report.verification is not None
    assert report.verification.grade == "bit-identical"


TIMED_OUT = process.TimedOut(2.5, stage="original: running")
NO_MEMORY = process.OutOfMemory(2**31, stage="result: loading")
CRASHED = process.Crashed("SIGSEGV")
RAISED = process.Raised("KeyError", "'x'", stage="result: loading")


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (
            TIMED_OUT,
            "timed out after 2.5 s, in the step 'original: running'; not tried: --timeout allows more time",
        ),
        (
            NO_MEMORY,
            "out of memory (limit 2.0 GB), in the step 'result: loading'; not tried: --memory-limit allows more memory",
        ),
        (CRASHED, "the process crashed (SIGSEGV), in the step 'start'"),
        (
            RAISED,
            "KeyError: 'x', in the step 'result: loading'; that is a fault of onnx-migrate: please report it",
        ),
    ],
)
def test_the_message_names_the_step_and_the_option_that_helps(ending, text):
    assert interruption(ending) == text


class Echo(Evaluator):
    """Returns what it is given."""

    def run(self, inputs):
        return dict(inputs)


def heard(function) -> list[str]:
    texts: list[str] = []
    call(function, (), texts.append)
    return texts


def test_a_run_has_a_place_and_a_number_out_of_those_that_are_expected():
    def work():
        start_count(per_input=2)
        begin_run("input 1")
        expect_runs(1, inputs=1)
        assert list(run_each(Echo(), [{"x": 1}, {"x": 2}])) == [{"x": 1}, {"x": 2}]
        begin_run("inner values")
        begin_run("inner values")
        start_count()
        begin_run("input 1")

    assert heard(work) == [
        "input 1, run 1",
        "input 1 of 2, run 2 of 4",
        "input 2 of 2, run 3 of 4",
        "inner values, run 4 of 4",
        "inner values, run 5",
        "input 1, run 1",
    ]


def test_without_a_listener_nothing_is_said():
    assert list(run_each(Echo(), [{"x": 1}, {"x": 2}], only=[1])) == [{"x": 2}]


CHANGED = RELU.replace("y = Relu (x)", "a = Relu (x) y = Identity (a)")


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize(("result", "exact"), [(RELU, None), (RELU, RELU), (CHANGED, RELU)])
def test_the_runs_of_a_verification_are_as_many_as_were_expected(result, exact, isolated):
    texts: list[str] = []
    exact = exact and runnable(exact)
    found = verdict(runnable(RELU), runnable(result), exact=exact, isolated=isolated, listen=texts.append)
    assert isinstance(found, Verdict)
    count = len(texts)
    assert texts[-1] == f"input 2 of 2, run {count} of {count}"
    totals = [int(total) for text in texts for total in re.findall(r"run \d+ of (\d+)", text)]
    assert set(totals) == {count}, "the total does not change on the way"


def test_a_proof_at_other_sizes_says_at_which():
    texts: list[str] = []
    prove(net(RELU), {"N": 1}, listen=texts.append)
    assert texts[0] == "sizes N=1, run 1"
    assert any(text.startswith("sizes N=2, run ") for text in texts)
