"""Resizes in chains and bodies: what is carried through them, and how the model is traversed."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import ONNX_NEWEST, ORT_NEWEST, model, run
from tests.resize.oracle import output_lengths
from tests.resize.shaped import apply_resize_passes
from tests.resize.test_grid import TARGETS
from tests.steps import operators
from tests.support.skips import Elsewhere, skip_if

F = np.float32


def chains(count: int, seed: int) -> Iterator[tuple[onnx.ModelProto, tuple[int, ...]]]:
    """Yield models of up to four Resizes, of opsets 9 to 18, and the shape of their input."""
    rng = random.Random(seed)
    while count:
        made = _draw(rng)
        if made is not None:
            count -= 1
            yield made


def _draw(rng: random.Random) -> tuple[onnx.ModelProto, tuple[int, ...]] | None:
    opset = rng.choice((9, 10, 10, 11, 13, 18))
    shape = (1, 2, rng.randint(3, 40), rng.randint(3, 40))
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray[Any, Any]] = {"e": np.zeros(0, F)} if opset == 11 else {}
    value, lengths = "x", list(shape)
    for place in range(rng.randint(1, 4)):
        scales = [1.0, 1.0, *(_scale(rng, length, opset) for length in lengths[2:])]
        lengths = output_lengths(lengths, scales)
        if 0 in lengths or max(lengths) > 200:
            return None
        mode = rng.choice(("nearest", "linear", "cubic") if opset >= 11 else ("nearest", "linear"))
        words: dict[str, Any] = {"mode": mode}
        inputs = [value, f"s{place}"]
        if opset >= 11:
            words["coordinate_transformation_mode"] = rng.choice(
                ("half_pixel", "asymmetric", "align_corners")
            )
            inputs.insert(1, "e" if opset == 11 else "")
        weights[f"s{place}"] = np.array(scales, F)
        operator = "Upsample" if opset == 9 else "Resize"
        value = f"y{place}"
        nodes.append(helper.make_node(operator, inputs, [value], **words))
        if rng.random() < 0.4:
            nodes += [
                helper.make_node("Shape", [value], [f"n{place}"]),
                helper.make_node("Cast", [f"n{place}"], [f"f{place}"], to=1),
                helper.make_node("ReduceSum", [f"f{place}"], [f"t{place}"], keepdims=0),
                helper.make_node("Add", [value, f"t{place}"], [f"a{place}"]),
            ]
            value = f"a{place}"
    nodes.append(helper.make_node("Identity", [value], ["y"]))
    declared = rng.choice((shape, ("N", *shape[1:]), ("N", "C", "H", "W")))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, declared)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), shape


def _scale(rng: random.Random, length: int, opset: int) -> float:
    least = length if opset == 9 else max(1, length // 3)
    if rng.random() < 0.5:
        return float(F(rng.randint(least, 2 * length + 1)) / F(length))
    return rng.choice((1.0, 1.5, 2.0, 1.3, 1.04) if opset == 9 else (1.0, 1.5, 2.0, 1.3, 1.04, 0.7))


def check_chains(count: int, seed: int) -> int:
    changed = 0
    rng = random.Random(seed)
    for number, (source, shape) in enumerate(chains(count, seed)):
        batches = (
            (1,) if source.graph.input[0].type.tensor_type.shape.dim[0].HasField("dim_value") else (1, 3)
        )
        opset = source.opset_import[0].version
        x = np.random.default_rng(number).standard_normal((3, *shape[1:])).astype(F)
        # Where no length is known, none is inferred wrong, so the original loads.
        free = onnx.ModelProto.FromString(source.SerializeToString())
        free.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", 1, ("N", "C", "H", "W")))
        expected = [run(free, {"x": x[:batch]})[0] for batch in batches]
        for form in ("auto", "sizes", "scales"):
            target = rng.choice([target for target in TARGETS if target >= opset])
            log = ChangeLog()
            result = Model(onnx.ModelProto.FromString(source.SerializeToString()))
            make_pass("migrate_opset", opset=target).run(result, log)
            make_pass("resize_form", form=form).run(result, log)
            changed += any(change.pass_name == "resize_form" for change in log.changes)
            if any(note.code == "resize-length" for note in log.notes):
                continue  # may not load, and the report says so
            for batch, wanted in zip(batches, expected, strict=True):
                actual = run(result.proto, {"x": x[:batch]})[0]
                np.testing.assert_array_equal(
                    actual, wanted, err_msg=f"{number}: {opset} to {target}, {form}"
                )
    return changed


def test_sample() -> None:
    assert check_chains(60, 1) > 40


@pytest.mark.campaign
def test_many() -> None:
    assert check_chains(3000, 2) > 1500


POLICIES = ("stretch", "not_larger", "not_smaller")
SHAPE = (2, 3, 11, 14)
LAST = -1 if ORT_NEWEST >= 26 else 3
"""The last axis; for negative ones, the results of ONNX Runtime 1.21 vary."""


def node(mode: str, axes: tuple[int, ...], **given: object) -> onnx.ModelProto:
    """Return a Resize-18 of the axes named, or of all with none, by `scales` or `sizes`."""
    words = {key: value for key, value in given.items() if key not in ("scales", "sizes")}
    weights = {
        key: np.array(given[key], kind)
        for key, kind in (("scales", np.float32), ("sizes", np.int64))
        if key in given
    }
    inputs = ["x", "", "scales"] if "scales" in weights else ["x", "", "", "sizes"]
    if axes:
        words["axes"] = list(axes)
    graph = helper.make_graph(
        [helper.make_node("Resize", inputs, ["y"], name="r", mode=mode, **words)],
        "g",
        [helper.make_tensor_value_info("x", 1, SHAPE)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


MODELS = {
    **{
        f"{mode} antialias {scales}": node(mode, (2, 3), antialias=1, scales=scales)
        for mode, scales in product(("linear", "cubic"), ((0.5, 0.6), (0.37, 2.0), (1.3, 0.9)))
    },
    **{
        f"{mode} {policy} {axes} {sizes}": node(mode, axes, keep_aspect_ratio_policy=policy, sizes=sizes)
        for mode, policy, (axes, sizes) in product(
            ("nearest", "linear"), POLICIES, (((2, 3), (5, 9)), ((3, 2), (20, 30)), ((LAST,), (9,)))
        )
    },
    "all axes by policy": node("nearest", (), keep_aspect_ratio_policy="not_larger", sizes=(2, 3, 22, 35)),
    "axes out of order": node("linear", (3, 2), scales=(2.0, 0.5)),
    "cubic, exclude_outside": node("cubic", (2, 3), scales=(0.6, 1.7), exclude_outside=1, cubic_coeff_a=-0.5),
}


@skip_if(ONNX_NEWEST < 19, "needs targets above 18", Elsewhere.NEWEST)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["auto", "scales", "sizes"])
def test_the_numbers_stay_the_same(name: str, form: str) -> None:
    x = {"x": np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)}
    expected = run(MODELS[name], x)[0]
    for to in (18, 19, 21, 26):
        if to <= min(ORT_NEWEST, ONNX_NEWEST):
            result, _ = apply_resize_passes(MODELS[name], to, form=form)
            np.testing.assert_array_equal(run(result, x)[0], expected, err_msg=f"to {to}")


nodes = importlib.import_module("onnx_migrate.passes.resize.traversal")

NESTED = """17 (float[1,1,4,4] x, bool c) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}, int64[1] zero = {0}> {
    [outer] r = Resize (x, , s)
    [gather] i = Gather (r, zero)
    [choose] y = If (c) <
        then_branch = t () => (float[a,b,d,e] p) { [inner] p = Resize (i, , s) },
        else_branch = f () => (float[a,b,d,e] q) { q = Relu (i) }
    >
}"""


def start(text: str) -> tuple[Any, onnx.ModelProto, ChangeLog]:
    carried, log = Model(model(text)), ChangeLog()
    return nodes.ResizeTraversal("step", carried, log, None), carried.proto, log


def test_every_resize_is_visited_and_an_unchanged_one_is_not_logged() -> None:
    traversal, proto, log = start(NESTED)
    before = proto.SerializeToString()
    seen: list[str] = []
    changed = traversal.visit_all(lambda place: seen.append(place.rw.node.name))
    traversal.end()
    assert (changed, seen, log.changes, log.notes) == (False, ["outer", "inner"], [], [])
    assert proto.SerializeToString() == before


def test_a_change_is_logged_and_constants_without_reader_are_removed() -> None:
    traversal, proto, log = start(NESTED)

    def unscale(place: Any) -> None:
        place.rw.set_input(2, "")
        place.rw.set_input(3, place.rw.constant(place.known.value("s").astype("int64"), "sizes"))
        place.rw.note("because")

    assert traversal.visit_all(unscale)
    traversal.end()
    assert [(str(c.where.scope), c.where.node, c.pass_name, c.reason) for c in log.changes] == [
        ("graph", "outer", "step", "because"),
        ("graph/choose:then_branch", "inner", "step", "because"),
    ]
    assert "s" not in {tensor.name for tensor in proto.graph.initializer}
    onnx.checker.check_model(proto)


def test_a_superseded_node_is_removed() -> None:
    traversal, proto, _ = (
        start("""17 (float[1,1,4,4] x) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}, float[4] t = {1., 1., 3., 3.}> {
    m = Resize (x, , t)
    y = Resize (m, , s)
}""")
    )

    def skip(place: Any) -> None:
        if place.rw.node.output[0] == "y":
            place.rw.set_input(0, "x")
            place.rw.supersede("m")

    assert traversal.visit_all(skip)
    traversal.end()
    assert [list(node.output) for node in proto.graph.node] == [["y"]]
    assert [tensor.name for tensor in proto.graph.initializer] == ["s"]


def test_nodes_with_attributes_of_the_call_and_of_older_opsets_are_not_visited() -> None:
    traversal, _, _ = start("""<ir_version: 8, opset_import: ["": 10, "own": 1]>
g (float[1,1,4,4] x) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}> { r = Resize (x, s) y = own.f (r, s) }
<domain: "own", opset_import: ["": 17]> f <m> (v, s) => (w) {
    u = Resize <mode: string = @m> (v, , s)
    w = Resize (u, , s)
}""")
    seen: list[str] = []
    traversal.visit_all(lambda place: seen.append(place.rw.node.output[0]))
    assert seen == ["w"]


def test_a_warning_is_logged_once() -> None:
    traversal, _, log = start(NESTED)
    for _ in range(2):
        traversal.visit_all(lambda place: traversal.warn(place, "look", code="resize-kept"))
    assert [note.subject for note in log.notes] == ["outer", "inner"]


def test_nodes_written_around_a_resize_stay_and_a_removed_one_does_not() -> None:
    traversal, proto, log = (
        start("""17 (float[1,1,4,4] x) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}, float[4] t = {1., 1., 3., 3.}> {
    [kept] m = Resize (x, , s)
    [removed] y = Resize (m, , t)
}""")
    )

    def surround(place: Any) -> None:
        rw = place.rw
        rw.set_input(0, rw.before("Neg", [rw.input(0)]))
        output = rw.output(0)
        rw.after("Abs", [rw.detach_output(0)], [output])

    def replace(place: Any) -> None:
        place.rw.after("Exp", [place.rw.input(0)], [place.rw.output(0)])
        place.rw.remove()

    traversal.visit_all(lambda place: surround(place) if place.rw.node.name == "kept" else replace(place))
    traversal.end()

    assert operators(proto) == ["Neg", "Resize", "Abs", "Exp"]
    assert [tensor.name for tensor in proto.graph.initializer] == ["s"]
    assert [change.emitted for change in log.changes] == [("Neg", "Abs"), ("Exp",)]
    onnx.checker.check_model(proto, full_check=True)
