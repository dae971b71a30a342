"""How boxes follow from the forms that were run, and the cuts of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from benchmarks import form_tables
from benchmarks.form_boxes import Sample, boxes, failing_boxes, narrowed, of_kernels, widened
from benchmarks.form_samples import add_models, alike, learned, samples, wanted
from benchmarks.model_cuts import Cut, cuts, read_whole
from onnx_migrate.standard.targets import holds, parse_forms
from onnx_migrate.standard.targets.measured_forms import shipped_forms
from tests.campaigns.runtimes.sample import write_io
from tests.harness import model
from tests.support.skips import Elsewhere, skip_if

TEXT = """17 (float[2,3] x) => (float[2,3] y)
  <float[3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[1] at = {0}, int64[1] rest = {-1}> {
  a = MatMul (x, w) s = Shape (x) f = Gather (s, at) t = Concat <axis = 0> (f, rest) r = Reshape (a, t)
  b = Relu (r) y = Exp (b) }"""


def sample(right: bool, **facts: str) -> Sample:
    return Sample(facts, right)


def known(given: Iterable[Sample], **facts: str) -> bool:
    return any(holds(box, facts) for box in boxes(given))


def test_what_was_right_is_known_and_what_is_new_is_not() -> None:
    given = [sample(True, mode="a", rank="3"), sample(True, mode="b", rank="4")]

    assert known(given, mode="a", rank="4")  # each fact was right
    assert not known(given, mode="c", rank="4")
    assert not known(given, mode="a", rank="4", more="1")
    assert not boxes([sample(False, mode="a")])


def test_the_fact_that_tells_right_from_wrong_splits() -> None:
    right = [sample(True, mode=mode, n=n) for mode in "ab" for n in "12"]

    given = [*right, sample(False, mode="c", n="1"), sample(False, mode="b", n="3")]
    assert all(known(given, **one.facts) for one in right)
    assert not known(given, mode="c", n="1")
    assert not known(given, mode="b", n="3")


def test_a_fact_of_many_right_values_does_not_count_where_the_operator_never_fails() -> None:
    given = [sample(True, perm=perm, types="float") for perm in "abcd"]

    assert known(given, perm="e", types="float")
    assert not known(given, perm="e", types="int8")  # types always count
    assert not known([*given, sample(False, perm="a", types="bool")], perm="e", types="float")
    assert not known(given[:3], perm="e", types="float")


def test_what_cannot_be_told_apart_is_not_known() -> None:
    given = [sample(True, mode="a"), sample(False, mode="a"), sample(True, mode="b")]

    assert not known(given, mode="a")
    assert known(given, mode="b")


def test_a_size_is_known_below_what_fails_and_only_as_measured_elsewhere() -> None:
    given = [
        sample(True, mode="a", size="1"), sample(True, mode="a", size="2"), sample(False, mode="a", size="4"),
        sample(True, mode="b", size="1"),
    ]  # fmt: skip

    assert known(given, mode="a", size="2")
    assert not known(given, mode="a", size="4")
    assert not known(given, mode="a", size="3")
    assert not known(given, mode="b", size="4")


def test_size_and_place_do_not_count_where_nothing_fails() -> None:
    assert known([sample(True, mode="a", size="1", after="Conv")], mode="a", size="9", after="Relu")


def test_a_node_that_is_wrong_after_another_is_not_known_there() -> None:
    given = [sample(True, kind="x", size="1", after=""), sample(False, kind="x", size="1", after="Equal")]

    assert known(given, kind="x", size="1", after="")
    assert not known(given, kind="x", size="1", after="Equal")


@skip_if(onnx.defs.onnx_opset_version() < 22, "onnx is older", Elsewhere.NEWEST)
def test_versions_that_differ_in_types_alone_are_read_alike_unless_one_fails() -> None:
    assert alike("Conv")["11"] == {"1", "11", "22"}
    assert alike("Softmax")["13"] == {"13"}  # its default axis is another

    given = [sample(True, version="11", mode="a"), sample(False, version="22", mode="a")]
    (box,) = widened(boxes(given), given, alike("Conv"))
    assert box["version"] == {"1", "11"}


def test_a_runtime_of_kernels_reads_stated_defaults_and_other_sources_and_lengths_alike() -> None:
    right = [
        sample(True, inputs=f"x,{kind}", dims=dims, mode="~a")
        for kind, dims in (("x", "1n"), ("c", "nn"), ("c", "1n"))
    ]
    wide = of_kernels(boxes(right), failed=False)
    for facts in ({"inputs": "x,s"}, {"inputs": "x,i"}, {"dims": "?n"}, {"mode": "a"}):
        assert any(holds(box, {**right[0].facts, **facts}) for box in wide), facts
        assert not any(holds(box, {**right[0].facts, **facts}) for box in boxes(right)), facts
    for facts in ({"inputs": "s,x"}, {"inputs": "-,x"}, {"mode": "b"}):
        assert not any(holds(box, {**right[0].facts, **facts}) for box in wide), facts
    apart = of_kernels(boxes([*right, sample(False, inputs="x,x", dims="n?", mode="~a")]), failed=True)
    assert not any(holds(box, {**right[0].facts, "dims": "n?"}) for box in apart)
    alone = of_kernels(boxes(right[1:2]), failed=False)
    assert not any(holds(box, {**right[1].facts, "inputs": "x,s"}) for box in alone)
    assert not any(holds(box, {**right[1].facts, "dims": "?n"}) for box in alone)


def test_boxes_of_what_failed_hold_nothing_that_was_right() -> None:
    given = [
        sample(True, mode="a", rank="4"),
        sample(True, mode="b", rank="4"),
        sample(False, mode="a", rank="3"),
    ]
    found = failing_boxes(given)

    assert [[holds(box, one.facts) for box in found] for one in given] == [[False], [False], [True]]


def test_what_fails_later_leaves_its_box() -> None:
    given = boxes([sample(True, mode=mode, rank=rank) for mode in "ab" for rank in "345"])
    later = [sample(False, mode="a", rank="5"), sample(True, mode="a", rank="3")]
    found = narrowed(given, later)

    def inside(**facts: str) -> bool:
        return any(holds(box, facts) for box in found)

    assert not inside(mode="a", rank="5")
    assert inside(mode="a", rank="3")
    assert narrowed(given, later[1:]) == given


def test_a_node_that_is_wrong_where_the_model_returns_it_is_known_elsewhere() -> None:
    given = [
        sample(True, kind="x", size="1", after=""),
        sample(False, kind="x", size="1", after="", last="yes"),
    ]

    assert known(given, kind="x", size="1", after="Conv")
    assert not known(given, kind="x", size="1", after="", last="yes")
    assert [holds(box, given[1].facts) for box in failing_boxes(given)] == [True]
    assert not any(holds(box, given[0].facts) for box in failing_boxes(given))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    proto = model(TEXT)
    feeds = {"x": np.array([[1, -2, 3], [0.5, 0, -1]], np.float32)}
    expected = ort.InferenceSession(proto.SerializeToString()).run(None, feeds)
    (tmp_path / "given" / "io").mkdir(parents=True)
    onnx.save(proto, tmp_path / "given" / "net.onnx")
    write_io(tmp_path / "given", "net", feeds, expected, ["y"])
    return tmp_path


def run(cut: Cut) -> bool:
    found = ort.InferenceSession(cut.model.SerializeToString()).run(None, dict(cut.feeds))
    return all(map(np.allclose, found, cut.expected))


def test_a_cut_has_a_node_and_what_computes_its_shapes(folder: Path) -> None:
    found = dict(cuts(folder / "given/net.onnx", folder / "given/io/net.npz", Counter()))

    operators = {
        name.partition("-")[0]: [node.op_type for node in cut.model.graph.node] for name, cut in found.items()
    }
    assert operators == {
        "MatMul": ["MatMul"], "Reshape": ["Shape", "Gather", "Concat", "Reshape"], "Relu": ["Relu"], "Exp": ["Exp"],
    }  # fmt: skip
    assert all(map(run, found.values()))


def test_a_cut_goes_as_deep_as_asked(folder: Path) -> None:
    whole = read_whole(folder / "given/net.onnx", folder / "given/io/net.npz")
    assert whole is not None
    end = len(whole.proto.graph.node) - 1

    assert [[n.op_type for n in whole.cut(end, depth).model.graph.node] for depth in (0, 1)] == [
        ["Exp"],
        ["Relu", "Exp"],
    ]
    assert whole.cut(end, 99).feeds.keys() == {"x"}
    assert run(whole.cut(end, 99))


def test_a_model_that_fails_though_its_nodes_are_right_leaves_the_first_wrong_one_unknown(
    folder: Path,
) -> None:
    add_models(folder / "given", folder)
    names = wanted(folder)
    kept = {
        name: (digest, "wrong" if name.startswith("whole") else "right", "") for name, digest in names.items()
    }

    def ends(part: Path, asked: Iterable[str]) -> Mapping[str, str]:
        """A release that computes Relu after Reshape wrongly."""
        found = [node.op_type for node in onnx.load(part / "part.onnx").graph.node]
        return dict.fromkeys(asked, "wrong" if {"Reshape", "Relu"} <= set(found) else "right")

    found = learned(samples([], kept, folder), kept, folder, ends)
    assert found.keys() == {"Shape", "Gather", "Concat", "Reshape", "MatMul", "Relu", "Exp"}
    (box,) = found["Relu"]
    assert box["after"] == {""}
    assert "after" not in found["Exp"][0]


def test_a_node_that_an_error_names_is_the_wrong_one(folder: Path) -> None:
    path = folder / "given/net.onnx"
    proto = onnx.load(path)
    for at, node in enumerate(proto.graph.node):
        node.name = f"node_{at}"
    onnx.save(proto, path)
    add_models(folder / "given", folder)
    why = 'Translating node #5 "node_5" Relu Caused by: no reason'
    kept = {name: (digest, "right", "") for name, digest in wanted(folder).items()}
    kept["whole/net"] = (kept["whole/net"][0], "fails", why)

    def ends(part: Path, asked: Iterable[str]) -> Mapping[str, str]:
        raise AssertionError

    found = learned(samples([], kept, folder), kept, folder, ends)
    assert [name for name, own in found.items() if "after" in own[0]] == ["Relu"]


@pytest.mark.parametrize("name", ["opencv", "mnn"])
def test_the_file_of_a_runtime_says_what_was_read_of_it(name: str) -> None:
    found = shipped_forms(name)
    assert found is not None
    assert parse_forms(form_tables._text(found.releases, found.boxes, found.pairs)) == found


def test_the_pairs_of_what_was_right_are_added_to_those_of_before() -> None:
    given = {
        "Add": [sample(True, behind="0Conv,1Relu"), sample(False, behind="0Exp")],
        "Relu": [sample(True, behind="")],
    }
    assert form_tables._pairs(given, {"Add": {"0Mul"}}) == {"Add": {"0Conv", "1Relu", "0Mul"}, "Relu": set()}
