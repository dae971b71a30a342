"""Shape below 15: every start and end, those out of range included."""

from __future__ import annotations

import pytest

from tests.lowering import check_down, lower


@pytest.mark.parametrize("start", [None, 0, 1, -2, -9, 9])
@pytest.mark.parametrize("end", [None, 0, 2, -1, -9, 9])
def test_bounds(start: int | None, end: int | None) -> None:
    given = [f"{name} = {value}" for name, value in (("start", start), ("end", end)) if value is not None]
    attributes = f"<{', '.join(given)}>" if given else ""
    source = f"""<ir_version: 8, opset_import: ["": 15]> graph (float[2, 3, 4] x) => (int64[] y)
        {{ y = Shape {attributes} (x) }}"""
    check_down(source, 14, specials=False)
    check_down(source, 10, 9, 7, variants=("plain", "symbolic", "if"), specials=False)


def test_all_lengths_need_no_slice() -> None:
    source = """<ir_version: 8, opset_import: ["": 15]> graph (float[2, N] x) => (int64[] y) { y = Shape <start = 0> (x) }"""
    assert [node.op_type for node in lower(source, 14)[0].graph.node] == ["Shape"]
