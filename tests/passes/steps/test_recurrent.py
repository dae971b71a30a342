"""RNN, GRU and LSTM: output_sequence and activations up, layouts up and down."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import model, random_feeds, run, same
from tests.steps import check, check_down, lift

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
    return f"""14 (float[{first}, {SIZE}] x, float[{ways}, {rows}, {SIZE}] w, float[{ways}, {rows}, {HIDDEN}] r,
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
    other = model(text(operator, 0, **kind))  # type: ignore[arg-type]
    feeds = random_feeds(other)
    expected = [
        np.transpose(value, (2, 0, 1, 3) if value.ndim == 4 else (1, 0, 2)) for value in run(other, feeds)
    ]
    swapped = {
        name: np.swapaxes(value, 0, 1) if name in ("x", "h", "c") else value for name, value in feeds.items()
    }
    check_down(text(operator, 1, **kind), 13, 11, 7, feeds=swapped, expected=expected)  # type: ignore[arg-type]


UP_HIDDEN = 3


def text_up(operator: str, opset: int, attributes: str = "", *, ways: int = 1, given: str = "y, y_h") -> str:
    rows = GATES[operator] * UP_HIDDEN
    shapes = {"y": f"float[4, {ways}, 2, {UP_HIDDEN}] y", "y_h": f"float[{ways}, 2, {UP_HIDDEN}] y_h"}
    declared = ", ".join(shapes[name] for name in shapes if name in given.replace('"', "").split(", "))
    return f"""{opset} (float[4, 2, 5] x, float[{ways}, {rows}, 5] w, float[{ways}, {rows}, {UP_HIDDEN}] r,
               float[{ways}, {2 * rows}] b)
            => ({declared})
        {{ {given} = {operator} <hidden_size = {UP_HIDDEN}{attributes}> (x, w, r, b) }}"""


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("attributes", ["", ", clip = 0.5", ', direction = "reverse"'])
def test_from_7(operator: str, attributes: str) -> None:
    check(text_up(operator, 7, attributes), to=14)


@pytest.mark.parametrize("operator", GATES)
def test_both_ways(operator: str) -> None:
    check(text_up(operator, 7, ', direction = "bidirectional"', ways=2), to=14)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("RNN", ', activations = ["Relu"]'),
        ("RNN", ', activations = ["LeakyRelu"], activation_alpha = [0.1]'),
        ("GRU", ", linear_before_reset = 1"),
        ("LSTM", ', activations = ["HardSigmoid", "Tanh", "Relu"], activation_alpha = [0.2]'),
        ("LSTM", ", input_forget = 1"),
    ],
)
def test_attributes(operator: str, attributes: str) -> None:
    check(text_up(operator, 7, attributes), to=14)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("given", ['"", y_h', "y, y_h"])
def test_layout_1_of_14(operator: str, given: str) -> None:
    """The inputs of layout 0 are reused, so that the axes of batch and sequence swap their meaning."""
    source = model(text_up(operator, 14, ", layout = 1", given=given))
    for value in source.graph.output:
        value.type.tensor_type.ClearField("shape")
    check(source, to=22)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("written", ["", ", output_sequence = 0", ", output_sequence = 1"])
@pytest.mark.parametrize("given", ['"", y_h', "y, y_h"])
def test_output_sequence(operator: str, written: str, given: str) -> None:
    """No runtime runs version 1: the numbers are those of version 7, which has no such attribute."""
    expected = model(text_up(operator, 7, given=given))
    feeds = random_feeds(expected)
    for opset in (1, 3):
        for target in (7, 26):
            result, _ = lift(text_up(operator, opset, written, given=given), target)
            same(run(expected, feeds), run(result, feeds), f"{opset} to {target}")


@pytest.mark.parametrize("opset", [1, 7])
def test_activations_in_lower_case(opset: int) -> None:
    """As PyTorch's first exporters wrote them; ONNX Runtime supports the standard's spelling only."""
    spelled = text_up("RNN", 7, ', activations = ["Relu"]')
    expected = run(model(spelled), random_feeds(model(spelled)))

    result = check(text_up("RNN", opset, ', activations = ["relu"]'), to=14, expected=expected)

    (activations,) = (entry for entry in result.graph.node[0].attribute if entry.name == "activations")
    assert activations.strings == [b"Relu"]
