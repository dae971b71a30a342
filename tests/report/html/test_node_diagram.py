"""Drawings of changed nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx.helper
from onnx import TensorProto

from onnx_migrate.errors import Where
from onnx_migrate.report import Report
from onnx_migrate.report.html.node_diagram import Box, Drawing, Texts, draw, draw_blocked
from onnx_migrate.report.html.render import model_page
from onnx_migrate.rewrite.change_log import Change
from tests.report.html.pages import DESK, DRAWN, PHONE, needs_browser, opened
from tests.support.browser import Browser

Built = tuple[onnx.NodeProto, int]
"""A node and its version."""


def node(
    operator: str, version: int, inputs: str, outputs: str, domain: str = "", **attributes: Any
) -> Built:
    made = onnx.helper.make_node(operator, inputs.split(","), outputs.split(","), domain=domain, **attributes)
    return made, version


def constant(name: str, kind: int, dims: Sequence[int], values: list[float] | None) -> TensorProto:
    if values is None:
        return TensorProto(name=name, data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    return onnx.helper.make_tensor(name, kind, dims, values)


def change(
    before: Built, after: Built | None, helpers: Sequence[Built] = (), constants: Sequence[TensorProto] = ()
) -> Change:
    return Change(
        "p",
        Where("graph", "n", before[0].op_type),
        before[0].SerializeToString(),
        before[1],
        after[0].SerializeToString() if after else None,
        after[1] if after else 0,
        tuple(helper.op_type for helper, _ in helpers),
        "because",
        opset=13,
        serialised_helpers=tuple(helper.SerializeToString() for helper, _ in helpers),
        serialised_constants=tuple(tensor.SerializeToString() for tensor in constants),
    )


def words(box: Box, texts: Texts) -> dict[str, list[tuple[str, str, str]]]:
    """Return the label, text and mark of each slot and attribute of a box."""
    slots = {"in": box.inputs, "constant": box.constants, "out": box.outputs}
    found = {
        kind: [(slot.label, texts.texts[slot.text], slot.mark) for slot in each]
        for kind, each in slots.items()
    }
    return {
        **found,
        "attribute": [(item.name, texts.texts[item.value], item.mark) for item in box.attributes],
    }


def test_an_attribute_that_becomes_an_input() -> None:
    drawing, texts = draw(
        change(
            node("ReduceSum", 11, "x", "y", axes=[1], keepdims=0),
            node("ReduceSum", 13, "x,axes", "y", keepdims=0),
            constants=[constant("axes", TensorProto.INT64, [1], [1])],
        )
    )

    assert (drawing.before.operator, drawing.before.version) == ("ReduceSum", 11)
    assert words(drawing.before, texts) == {
        "in": [("data", "x", "")],
        "constant": [],
        "attribute": [("axes", "[1]", "removed"), ("keepdims", "0", "")],
        "out": [("reduced", "y", "")],
    }
    ((after,),) = drawing.after
    assert words(after, texts) == {
        "in": [("data", "x", "")],
        "constant": [("axes", "[1]", "new")],
        "attribute": [("keepdims", "0", "")],
        "out": [("reduced", "y", "")],
    }
    assert texts.texts[after.constants[0].title] == "axes: int64[1]"


def test_helpers_are_in_rows_below_the_values_they_read() -> None:
    drawing, texts = draw(
        change(
            node("Softmax", 1, "x", "y", axis=1),
            node("Softmax", 13, "f", "g", axis=-1),
            helpers=[
                node("Flatten", 13, "x", "f"),
                node("Shape", 13, "x", "s"),
                node("Reshape", 13, "g,s", "y"),
            ],
        )
    )

    assert [[box.operator for box in row] for row in drawing.after] == [
        ["Flatten", "Shape"],
        ["Softmax"],
        ["Reshape"],
    ]
    assert [[box.mark for box in row] for row in drawing.after] == [["new", "new"], [""], ["new"]]
    assert words(drawing.after[1][0], texts)["in"] == [("input", "f", "new")]
    assert words(drawing.after[1][0], texts)["out"] == [("output", "g", "inner")]
    assert words(drawing.after[2][0], texts)["out"] == [("reshaped", "y", "")]


def test_a_node_replaced_by_other_nodes() -> None:
    drawing, _ = draw(change(node("Crop", 1, "x", "y"), None, helpers=[node("Slice", 13, "x", "y")]))

    assert drawing.before.mark == "removed"
    assert [[(box.operator, box.mark) for box in row] for row in drawing.after] == [[("Slice", "new")]]


def test_drawings_that_differ_only_in_names_and_values_are_equal() -> None:
    def clip(name: str, low: float, low_name: str) -> Drawing:
        constants = [constant(low_name, TensorProto.FLOAT, [], [low])]
        return draw(
            change(
                node("Clip", 6, name, "y", min=low),
                node("Clip", 13, f"{name},{low_name}", "y"),
                constants=constants,
            )
        )[0]

    assert clip("a", 0.0, "l") == clip("b", -1.0, "m")
    assert hash(clip("a", 0.0, "l")) == hash(clip("b", -1.0, "m"))
    assert (
        draw(change(node("Add", 7, "a,b", "y"), None))[0] != draw(change(node("Add", 7, "a,a", "y"), None))[0]
    )


def test_large_constants_and_omitted_inputs() -> None:
    constants = [constant("w", TensorProto.FLOAT, [64, 3, 7, 7], None)]
    drawing, texts = draw_blocked(change(node("Conv", 1, "x,w,", "y"), None, constants=constants))

    assert words(drawing.before, texts)["in"] == [("X", "x", "")]
    assert words(drawing.before, texts)["constant"] == [("W", "⟨64×3×7×7⟩", "")]
    assert (drawing.before.kind, drawing.before.mark, drawing.after) == ("layer", "blocked", ())


def test_inputs_beyond_the_limit_are_counted() -> None:
    names = ",".join(f"x{index}" for index in range(100))
    drawing, texts = draw_blocked(change(node("Concat", 4, names, "y"), None))

    assert (len(drawing.before.inputs), drawing.before.more) == (12, 88)
    assert {label for label, _, _ in words(drawing.before, texts)["in"]} == {"inputs"}


def test_slots_of_unknown_operators_have_no_labels() -> None:
    drawing, texts = draw_blocked(change(node("Relu", 1, "x", "y", domain="com.acme"), None))

    assert (drawing.before.operator, drawing.before.kind) == ("com.acme.Relu", "other")
    assert words(drawing.before, texts)["in"] == [("", "x", "")]


@needs_browser
def test_before_and_after_are_side_by_side_and_stacked_on_a_phone(
    chromium: Browser, report: Report, tmp_path: Path
) -> None:
    sides = "[...document.querySelector('.pair').querySelectorAll('.side')].map(item => item.getBoundingClientRect())"
    both = f"(() => {{ const [a, b] = {sides}; return [b.left >= a.right, b.top >= a.bottom]; }})()"

    assert opened(chromium, model_page(report), tmp_path, width=DESK).run(both) == [True, False]
    assert opened(chromium, model_page(report), tmp_path, width=PHONE).run(both) == [False, True]


@needs_browser
def test_a_node_is_drawn_with_its_slots(chromium: Browser, many: Report, tmp_path: Path) -> None:
    tab = opened(chromium, model_page(many), tmp_path)

    clip = tab.run(DRAWN % 0)
    assert clip["heading"].endswith("/0")
    assert clip["texts"] == ["v0", "1", "-1", "v1", "v0", "-1", "1", "v1"], "attributes, and then constants"
    assert clip["titles"][3].endswith("_min: float"), "the tooltip names the constant"
    titles = tab.run("[...document.querySelectorAll('.node > b')].map(item => item.textContent.trim())")
    assert titles[:3] == ["Clip 6", "Clip 13", "Softmax 1"]
    assert {"Flatten 13 added", "Shape 15 added", "Reshape 14 added", "Softmax 13"} == set(titles[3:])
    assert tab.run("document.querySelectorAll('.slot.new').length") == 3


@needs_browser
def test_long_names_are_shortened_at_their_start(chromium: Browser, report: Report, tmp_path: Path) -> None:
    name = "/module" * 40 + "/output"
    text = model_page(report).replace(report.changes[0].before.output[0], name)
    tab = opened(chromium, text, tmp_path, width=PHONE)

    box = f"[...document.querySelectorAll('.wires b')].find(item => item.title === {name!r})"
    assert tab.run(f"{box}.scrollWidth > {box}.clientWidth"), "it does not fit"
    assert (
        tab.run(f"getComputedStyle({box}).textOverflow + getComputedStyle({box}).direction") == "ellipsisrtl"
    )
    assert tab.run(f"{box}.textContent") == name, "copying copies the whole name"


def test_a_key_has_one_text_however_often_it_is_asked_for() -> None:
    texts = Texts()

    first = texts.index(("value", "x"), "x", "input")
    again = texts.index(("value", "x"), "another text", "data")
    other = texts.index(("kept", "x"), "x", "axis")

    assert (first, again, other) == (0, 0, 1)
    assert (texts.texts, texts.labels) == (["x", "x"], ["input", "axis"])
