"""RNN, GRU and LSTM, from the versions with output_sequence to the newest."""

from __future__ import annotations

import pytest
from onnx import parser

from tests.harness import check, lift, random_feeds, run, same

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN = 3


def text(operator: str, opset: int, attributes: str = "", *, ways: int = 1, given: str = "y, y_h") -> str:
    rows = GATES[operator] * HIDDEN
    shapes = {"y": f"float[4, {ways}, 2, {HIDDEN}] y", "y_h": f"float[{ways}, 2, {HIDDEN}] y_h"}
    declared = ", ".join(shapes[name] for name in shapes if name in given.replace('"', "").split(", "))
    return f"""<ir_version: 4, opset_import: ["": {opset}]>
        graph (float[4, 2, 5] x, float[{ways}, {rows}, 5] w, float[{ways}, {rows}, {HIDDEN}] r,
               float[{ways}, {2 * rows}] b)
            => ({declared})
        {{ {given} = {operator} <hidden_size = {HIDDEN}{attributes}> (x, w, r, b) }}"""


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("attributes", ["", ", clip = 0.5", ', direction = "reverse"'])
def test_from_7(operator: str, attributes: str) -> None:
    check(text(operator, 7, attributes), to=14)


@pytest.mark.parametrize("operator", GATES)
def test_both_ways(operator: str) -> None:
    check(text(operator, 7, ', direction = "bidirectional"', ways=2), to=14)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("RNN", ', activations = ["Relu"]'),
        ("RNN", ', activations = ["LeakyRelu"], activation_alpha = [0.1]'),
        ("GRU", ", linear_before_reset = 1"),
        (
            "LSTM",
            ', activations = ["HardSigmoid", "Tanh", "Relu"], activation_alpha = [0.2]',
        ),
        ("LSTM", ", input_forget = 1"),
    ],
)
def test_attributes(operator: str, attributes: str) -> None:
    check(text(operator, 7, attributes), to=14)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("given", ['"", y_h', "y, y_h"])
def test_layout_1_of_14(operator: str, given: str) -> None:
    """The inputs of layout 0 are reused, so that the axes of batch and sequence swap their meaning."""
    source = parser.parse_model(text(operator, 14, ", layout = 1", given=given))
    for value in source.graph.output:
        value.type.tensor_type.ClearField("shape")
    check(source, to=22)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("written", ["", ", output_sequence = 0", ", output_sequence = 1"])
@pytest.mark.parametrize("given", ['"", y_h', "y, y_h"])
def test_output_sequence(operator: str, written: str, given: str) -> None:
    """No runtime runs version 1: the numbers are those of version 7, which has no such attribute."""
    expected = parser.parse_model(text(operator, 7, given=given))
    feeds = random_feeds(expected)
    for opset in (1, 3):
        for target in (7, 26):
            result, _ = lift(parser.parse_model(text(operator, opset, written, given=given)), target)
            same(run(expected, feeds), run(result, feeds), f"{opset} to {target}")


@pytest.mark.parametrize("opset", [1, 7])
def test_activations_in_lower_case(opset: int) -> None:
    """As PyTorch's first exporters wrote them; ONNX Runtime supports the standard's spelling only."""
    spelled = text("RNN", 7, ', activations = ["Relu"]')
    expected = run(parser.parse_model(spelled), random_feeds(parser.parse_model(spelled)))

    result = check(text("RNN", opset, ', activations = ["relu"]'), to=14, expected=expected)

    (activations,) = (entry for entry in result.graph.node[0].attribute if entry.name == "activations")
    assert activations.strings == [b"Relu"]
