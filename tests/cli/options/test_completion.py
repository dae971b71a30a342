"""Shell completion: the answers of the command, and the result in bash."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import Run
from tests.support.skips import Elsewhere, skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(process: Run, shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        skip("click asks bash for its version", Elsewhere.INSTALLED)

    ended = process(_ONNX_MIGRATE_COMPLETE=f"{shell}_source")

    assert ended.code == 0
    assert "_ONNX_MIGRATE_COMPLETE" in ended.out


COMMANDS = [
    f"plain,{name}"
    for name in ("batch", "diff", "explain", "inspect", "migrate", "passes", "reduce", "verify")
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("onnx-migrate ", COMMANDS),
        ("onnx-migrate sma", ["file,sma"]),
        ("onnx-migrate ba", ["file,ba", "plain,batch"]),
        ("onnx-migrate batch sma", ["file,sma"]),
        ("onnx-migrate small.onnx ou", ["file,ou"]),
        ("onnx-migrate small.onnx out.onnx --simp", ["plain,--simplify"]),
        ("onnx-migrate small.onnx --simplify re", ["plain,require"]),
        ("onnx-migrate small.onnx --skip-pass sim", ["plain,simplify"]),
        ("onnx-migrate --dynamic-batch items --for onnxrun", ["plain,onnxruntime", "plain,onnxruntime-web"]),
        ("onnx-migrate small.onnx --for rk3588s", ["plain,rk3588s"]),
        ("onnx-migrate small.onnx --for ./my", ["file,./my"]),
        ("onnx-migrate inspect --for tensorrt==8.", ["plain,tensorrt==8.4", "plain,tensorrt==8.5"]),
        (
            "onnx-migrate explain softmax-1",
            [f"plain,softmax-1{end}" for end in ("1", "1-down", "3", "3-down")],
        ),
        ("onnx-migrate explain unsupported-model", ["plain,unsupported-model-ir-version"]),
        ("onnx-migrate explain no-such-fi", ["plain,no-such-file"]),
    ],
)
def test_values_are_completed(process: Run, words: str, expected: list[str]) -> None:
    ended = process(
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split(" ")) - 1),
        _ONNX_MIGRATE_COMPLETE="bash_complete",
    )

    assert (ended.out.splitlines(), ended.err) == (expected, "")


@pytest.mark.long
def test_bash_completes(folder: Path, command: list[str], environment: dict[str, str]) -> None:
    """Type words and Tab in a shell, where a function instead of the command prints its completed arguments."""
    if shutil.which("bash") is None:
        skip("bash is not installed", Elsewhere.INSTALLED)
    program = Path(command[1])
    program.write_text(f"#!{command[0]}\n" + program.read_text(encoding="utf-8"), encoding="utf-8")
    program.chmod(0o755)
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        ["bash", "--norc", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**environment, "PATH": f"{program.parent}{os.pathsep}{environment['PATH']}", "TERM": "dumb", "PS1": ""},
    )  # fmt: skip
    os.close(theirs)

    def completed_by_bash(line: str) -> str:
        os.write(ours, line.encode() + b"\n")
        shown = b""
        while b"]]" not in shown:
            assert select.select([ours], [], [], 30)[0], shown
            shown += os.read(ours, 4096)
        return shown.rpartition(b"[[")[2].partition(b"]]")[0].decode()

    try:
        os.write(ours, b'eval "$(_ONNX_MIGRATE_COMPLETE=bash_source onnx-migrate)"\n')
        assert (
            completed_by_bash("onnx-migrate() { printf '%s[%s]%s' '[' \"$*\" ']'; }; onnx-migrate ready")
            == "ready"
        )
        for typed, completed in {
            "ba\t": "batch",
            "batch sma\t": "batch small.onnx",
            "sma\tou\t": "small.onnx ou",
            "sma\t--no-ver\t--for tens\t": "small.onnx --no-verify --for tensorrt",
            "explain not-o\t": "explain not-onnx",
        }.items():
            assert completed_by_bash(f"onnx-migrate {typed}") == completed
    finally:
        child.kill()
        child.wait()
        os.close(ours)
