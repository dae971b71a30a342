"""A shell command as the check: few nodes remain, with the same failure, and a command that shows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_migrate
from onnx_migrate import UsageError
from tests.harness import model

HERE: dict[str, Any] = {"isolated": False}

CHAIN = """17 (float[N,8] x) => (float[N,8] y, float[N,8] z) <float[8] w = {1.,2.,3.,4.,5.,6.,7.,8.}> {
  a = Relu (x) b = Mul (a, w) c = Sigmoid (b) d = Mod <fmod = 1> (c, w) e = Neg (d) f = Add (e, a) g = Tanh (f)
  y = Abs (g) z = Exp (b)
}"""

HAS_MOD = "if grep -q Mod {}; then echo 'Error: Mod is not supported'; exit 3; fi"


def reduced(proto: onnx.ModelProto, check: str = "", **options: Any) -> onnx_migrate.Reduction:
    return onnx_migrate.reduce(proto, check=check, **HERE, **options)


def long_chain() -> onnx.ModelProto:
    """Return 200 nodes, of which one is a Mod."""
    lines = [f"v{place + 1} = Neg (v{place})" for place in range(200)]
    lines[70] = "v71 = Mod <fmod = 1> (v70, w)"
    return model(
        f"17 (float[4] v0) => (float[4] v200) <float[4] w = {{1.,2.,3.,4.}}> {{ {' '.join(lines)} }}"
    )


def operators(reduction: onnx_migrate.Reduction) -> list[str]:
    onnx.checker.check_model(reduction.model, full_check=True)
    return [node.op_type for node in reduction.model.graph.node]


def test_one_node_remains_with_small_inputs_and_no_notes() -> None:
    proto = model(CHAIN)
    proto.producer_name = "secret exporter"
    proto.graph.node[3].doc_string = "/home/somebody/net.py"
    result = reduced(proto, HAS_MOD)

    assert operators(result) == ["Mod"]
    assert result.report.nodes_before == 9
    assert str(result.report.failure) == "exit code 3"
    assert [dim.dim_value for dim in result.model.graph.input[0].type.tensor_type.shape.dim] == [1, 1]
    assert b"secret" not in result.model.SerializeToString()
    assert b"somebody" not in result.model.SerializeToString()


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_failure_of_two_nodes_keeps_both(jobs: int) -> None:
    check = "grep -q Sigmoid {} && grep -q Tanh {} && exit 1; exit 0"

    assert sorted(operators(reduced(model(CHAIN), check, jobs=jobs))) == ["Sigmoid", "Tanh"]


def test_the_message_names_the_node_so_that_few_runs_are_needed() -> None:
    result = reduced(long_chain(), HAS_MOD)

    assert operators(result) == ["Mod"]
    assert result.report.runs < 12


def test_a_search_without_hints_takes_a_logarithm_of_runs() -> None:
    result = reduced(long_chain(), "grep -q Mod {} && exit 3; exit 0")

    assert operators(result) == ["Mod"]
    assert result.report.runs < 30


def test_the_same_failure_is_kept() -> None:
    """A single Exp fails with another exit code, and with another message."""
    other = "grep -q Mod {} && exit 3; grep -q Exp {} && exit 4; exit 0"
    told = (
        "grep -q Mod {} && echo 'Error: bad rounding mode' && exit 1;"
        " grep -q Exp {} && echo 'Error: no more pens' && exit 1; exit 0"
    )

    assert operators(reduced(model(CHAIN), other)) == ["Mod"]
    assert operators(reduced(model(CHAIN), told)) == ["Mod"]
    assert operators(reduced(model(CHAIN), "grep -q Exp {} && exit 4; exit 3", any_failure=True)) != [
        "Exp",
        "Mod",
    ]


def test_only_the_exit_code_or_signal_that_is_asked_for_counts() -> None:
    check = "grep -q Tanh {} && exit 5; exit 1"
    killed = "grep -q Tanh {} && kill -SEGV $$; exit 1"

    assert operators(reduced(model(CHAIN), check, check_exit=5)) == ["Tanh"]
    assert operators(reduced(model(CHAIN), killed, check_exit="SIGSEGV")) == ["Tanh"]
    assert str(reduced(model(CHAIN), killed, check_exit="SIGSEGV").report.failure) == "ended by SIGSEGV"


def test_the_output_must_contain_the_message() -> None:
    check = "grep -q Tanh {} && echo ugly word; echo; exit 1"

    assert operators(reduced(model(CHAIN), check, message="ugly")) == ["Tanh"]
    with pytest.raises(UsageError, match="does not contain the text 'fair'"):
        reduced(model(CHAIN), check, message="fair")


def test_a_model_that_passes_is_an_error() -> None:
    with pytest.raises(UsageError, match="passes the check") as caught:
        reduced(model(CHAIN), "true {}")
    assert caught.value.code == "check-passes"


def test_a_flaky_check_is_an_error(tmp_path: Path) -> None:
    count = tmp_path / "count"
    with pytest.raises(UsageError, match="first exit code 1, then it passes") as caught:
        reduced(model(CHAIN), f": {{}}; if [ -e {count} ]; then exit 0; fi; touch {count}; exit 1")
    assert caught.value.code == "flaky-check"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "no check"),
        ({"check": "true"}, "has no {}"),
        ({"check": "true {}", "run_in": "onnxruntime"}, "not both"),
        ({"check_exit": 3, "message": "x"}, "needs a command"),
    ],
    ids=["none", "no place", "two", "exit alone"],
)
def test_a_check_must_be_one(options: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        onnx_migrate.reduce(model(CHAIN), **HERE, **options)


def test_a_check_that_hangs_is_a_failure_of_its_own() -> None:
    result = reduced(model(CHAIN), "grep -q Mod {} && sleep 9; exit 0", check_timeout=0.15)

    assert operators(result) == ["Mod"]
    assert str(result.report.failure) == "not done in time"


@pytest.mark.parametrize(
    ("text", "is_smallest"),
    [
        ("17 (float[2,4] x) => (float[2,4] y) { y = Tanh (x) }", False),
        ("17 (float[N,4] x) => (float[N,4] y) { y = Tanh (x) }", False),
        (
            "17 (float[4] x) => (float[4] y) { c = Constant <value = float[4] {1., 2., 3., 4.}> () y = Add (x, c) }",
            False,
        ),
        ("17 (float[1] x) => (float[1] y) { y = Tanh (x) }", True),
        (
            "17 (float[1] x) => (float[1] y) { c = Constant <value = float[1] {1.}> () y = Add (x, c) }",
            True,
        ),
    ],
    ids=["fixed", "dynamic", "constant", "smallest", "smallest with a constant"],
)
def test_a_note_says_that_no_smaller_model_fails(text: str, is_smallest: bool) -> None:
    """A model of one node becomes smaller by its inputs."""
    result = reduced(model(text), "grep -q -e Tanh -e Add {} && exit 3; exit 0")

    assert result.report.nodes == 1
    sizes = [np.size(value) for value in result.inputs.values()]
    assert ("no smaller model shows the failure" in result.report.notes) is is_smallest, sizes


def test_the_time_limit_gives_the_smallest_model_so_far() -> None:
    result = reduced(model(CHAIN), "sleep 0.1; grep -q Mod {} && exit 3; exit 0", time_limit=0.45)

    assert not result.report.finished
    assert result.report.nodes >= 1
    assert "the time limit ended the search" in str(result)


def test_inputs_of_the_command_are_values_of_one_run(tmp_path: Path) -> None:
    """The check needs the recorded values: the sum of the node's input must be that of the original."""
    proto = model("17 (float[4] x) => (float[4] y) { a = Add (x, x) b = Relu (a) c = Neg (b) y = Tanh (c) }")
    script = tmp_path / "check.py"
    script.write_text(
        "import sys, zipfile\ndata = zipfile.ZipFile(sys.argv[2])\nname = data.namelist()[0]\n"
        "values = memoryview(data.read(name)[-16:]).cast('f').tolist()\nname = name.removesuffix('.npy')\n"
        "assert b'Tanh' not in open(sys.argv[1], 'rb').read() or (name, values[0]) not in [('x', 4), ('c', -8)], 'too low'\n"
    )
    feed = {"x": np.array([4, 1, 0, 0], np.float32)}
    result = reduced(proto, f"{sys.executable} -IS {script} {{}} {{inputs}}", input_data=feed)
    written = result.save(tmp_path / "small.onnx")

    assert operators(result) == ["Tanh"]
    assert written == [str(tmp_path / "small.onnx"), str(tmp_path / "small.npz")]
    assert result.inputs["c"].tolist() == [-8, -2, 0, 0]
    assert (
        subprocess.run(result.command(tmp_path / "small.onnx"), shell=True, capture_output=True).returncode
        == 1
    )
