"""RNN, GRU and LSTM below 14: both layouts, with every input and output."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.harness import random_feeds, run
from tests.lowering import check_down

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN, SIZE, BATCH, STEPS = 3, 5, 2, 4


def text(
    operator: str, layout: int | None, *, ways: int = 1, states: bool = False, outputs: str = "all"
) -> str:
    """Return a model with every output that `outputs` asks for: "all", "last" (the states), or "Y" alone."""
    rows = GATES[operator] * HIDDEN
    cell = operator == "LSTM"
    state = f"{BATCH}, {ways}" if layout else f"{ways}, {BATCH}"
    first = f"{BATCH}, {STEPS}" if layout else f"{STEPS}, {BATCH}"
    whole = f"{BATCH}, {STEPS}, {ways}" if layout else f"{STEPS}, {ways}, {BATCH}"
    given = (
        f", float[{state}, {HIDDEN}] h" + (f", float[{state}, {HIDDEN}] c" if cell else "") if states else ""
    )
    names = {"all": ["y", "y_h", *(["y_c"] if cell else [])], "last": ['""', "y_h"], "Y": ["y"]}[outputs]
    declared = [
        f"float[{whole if name == 'y' else state}, {HIDDEN}] {name}" for name in names if name != '""'
    ]
    attributes = "" if layout is None else f", layout = {layout}"
    attributes += ', direction = "bidirectional"' if ways == 2 else ""
    inputs = "x, w, r, b" + (", lens, h" + (", c" if cell else "") if states else "")
    return f"""<ir_version: 8, opset_import: ["": 14]>
        graph (float[{first}, {SIZE}] x, float[{ways}, {rows}, {SIZE}] w, float[{ways}, {rows}, {HIDDEN}] r,
               float[{ways}, {2 * rows}] b{given})
            => ({", ".join(declared)})
        <int32[{BATCH}] lens = {{{STEPS}, {STEPS - 1}}}>
        {{ {", ".join(names)} = {operator} <hidden_size = {HIDDEN}{attributes}> ({inputs}) }}"""


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("layout", [None, 0])
def test_layout_0(operator: str, layout: int | None) -> None:
    check_down(text(operator, layout), 13, 12, 7)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("outputs", ["all", "last", "Y"])
def test_layout_1(operator: str, ways: int, states: bool, outputs: str) -> None:
    """What ONNX Runtime, which has no kernel for layout 1, computes for layout 0 of the same values in the other order."""
    kind = {"ways": ways, "states": states, "outputs": outputs}
    other = parser.parse_model(text(operator, 0, **kind))  # type: ignore[arg-type]
    feeds = random_feeds(other)
    expected = [
        np.transpose(value, (2, 0, 1, 3) if value.ndim == 4 else (1, 0, 2)) for value in run(other, feeds)
    ]
    swapped = {
        name: np.swapaxes(value, 0, 1) if name in ("x", "h", "c") else value for name, value in feeds.items()
    }
    check_down(text(operator, 1, **kind), 13, 11, 7, feeds=swapped, expected=expected)  # type: ignore[arg-type]
