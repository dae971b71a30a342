from __future__ import annotations

from onnx_migrate import default_pipeline
from tests.cli.running import Run


def test_passes_are_listed_in_the_order_they_run(cli: Run) -> None:
    ended = cli("passes")

    assert (ended.code, ended.err) == (0, "")
    rows = [line.split(maxsplit=1) for line in ended.out.splitlines()]
    assert [row[0] for row in rows] == list(default_pipeline(dynamic={}).names)
    assert all(row[1].endswith(".") for row in rows)
