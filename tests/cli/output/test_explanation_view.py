"""What `explain` prints."""

from __future__ import annotations

import pytest

from tests.cli.running import Run


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ("Resize", ["Resize: Resize exists", "\nup\n", "\ndown\n", "  resize-13 ", "11 → 13: adapted, exact"]),
        ("Softplus", ["where a runtime lacks it", "softplus-written-out"]),
        ("tensorrt", ["TensorRT: what its releases take", "9–22", "explain tensorrt==11.5"]),
        ("tensorrt==8.4", ["TensorRT 8.4 (read, not measured)", "up to 17", "functions    not taken", "--for tensorrt==8.4"]),
        ("hailo", ["Hailo", "up to 17", "up to 9"]),
    ],
)  # fmt: skip
def test_operators_and_runtimes(cli: Run, asked: str, lines: list[str]) -> None:
    ended = cli("explain", asked)
    assert (ended.code, ended.err) == (0, "")
    for line in lines:
        assert line in ended.out


def test_control_characters_of_a_text_are_not_printed(cli: Run) -> None:
    text = "No Op registered for Range with domain_version of"
    ended = cli("explain", f"Error in Node:a\x1b]0;x\x07b : {text} 9 Error in Node:a\x07b : {text} 10")
    assert ended.code == 0
    assert "\x1b" not in ended.out + ended.err
    assert "\x07" not in ended.out + ended.err


def test_lines_are_at_most_a_hundred_wide(cli: Run) -> None:
    ended = cli("explain", "Unsupported model IR version: 10, max supported IR version: 9")
    assert max(map(len, ended.out.splitlines())) <= 100
