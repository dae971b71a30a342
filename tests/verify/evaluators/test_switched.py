"""One session with switches computes the same bits as each of the results that it stands for."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from onnx_migrate import files
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.graphs import all_nodes, nested_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import STRICT, UNOPTIMIZED, open_model
from onnx_migrate.verify.evaluators.switched import switched
from tests.harness import model, random_feeds

W = "float[4,4] w = {" + ", ".join(f"{value:.4f}" for value in np.linspace(-1, 1, 16)) + "}"

# Products alone, as others join what is kept beside them where that saves a Cast.
CHAIN = f"""17 (float[4,4] x) => (float[4,4] y) <{W}> {{
    a = MatMul (x, w)  b = MatMul (a, a)  c = MatMul (b, w)  d = MatMul (c, b)  e = MatMul (d, w)  y = MatMul (e, w) }}"""

LOOP = f"""17 (float[4,4] x, int64 n) => (float[4,4] y) <{W}> {{
    a = MatMul (x, w)  go = Constant<value = bool {{1}}> ()
    y = Loop (n, go, a) <body = g (int64 i, bool c, float[4,4] s) => (bool k, float[4,4] t) {{
        k = Identity (c)  p = MatMul (s, w)  q = Mul (p, a)  t = Tanh (q) }}> }}"""


def _strictly(proto: onnx.ModelProto, kept: list[str]) -> Runnable:
    result = make_pass("precision", kind="fp16", keep=tuple(kept)).run(
        Model(onnx.ModelProto.FromString(proto.SerializeToString())), ChangeLog()
    )
    return Runnable(structure=files.inline(result).SerializeToString())


@pytest.mark.parametrize(
    ("source", "groups"),
    [
        pytest.param(CHAIN, [[("a", ())], [("b", ()), ("c", ())], [("d", ()), ("e", ())]], id="main graph"),
        pytest.param(
            CHAIN, [[("a", ()), ("c", ()), ("d", ())], [("b", ()), ("y", ())]], id="groups that alternate"
        ),
        pytest.param(LOOP, [[("a", ())], [("p", (2, "body", 0)), ("q", (2, "body", 0))]], id="in a loop"),
    ],
)
def test_switches_stand_for_what_is_kept(
    source: str, groups: list[list[tuple[str, tuple[int | str, ...]]]]
) -> None:
    named = model(source)
    for node in all_nodes(named):
        node.name = node.output[0]
    original = Runnable(structure=named.SerializeToString())
    places = [[(key, name) for name, key in group] for group in groups]
    narrow = _strictly(named, [])
    runnable, switches = switched(original, narrow, TensorProto.FLOAT16, places)
    one = open_model(runnable, UNOPTIMIZED)
    feeds = random_feeds(named)
    if "n" in feeds:
        feeds["n"] = np.array(3)

    outputs = set()
    for kept in product([False, True], repeat=len(groups)):
        flags = {switch: np.array(flag) for switch, flag in zip(switches, kept, strict=True)}
        names = [name for group, flag in zip(groups, kept, strict=True) if flag for name, _ in group]
        expected = open_model(_strictly(named, names), STRICT).run(feeds)["y"]
        given = one.run({**feeds, **flags})["y"].astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(given, expected.astype(np.float16).astype(np.float32))
        outputs.add(expected.tobytes())
    assert len(outputs) > 1  # the switches matter


@pytest.mark.parametrize(
    ("groups", "ifs"),
    [
        pytest.param(["abcdey"], 1, id="one"),
        pytest.param(["abc", "dey"], 2, id="two in a row"),
        pytest.param(["acd", "bey"], 4, id="alternating: a, b, c and d, e and y"),
    ],
)
def test_a_group_is_one_if_where_its_nodes_stand_together(groups: list[str], ifs: int) -> None:
    original = Runnable(structure=model(CHAIN).SerializeToString())
    narrow = _strictly(model(CHAIN), [])
    runnable, _ = switched(
        original, narrow, TensorProto.FLOAT16, [[((), name) for name in group] for group in groups]
    )

    assert [node.op_type for node in runnable.model.graph.node].count("If") == ifs


SEQUENCE = f"""12 (float[4,4] x) => (float[4,4] y) <{W}, int64 at = {{1}}> {{ a = MatMul (x, w)  b = MatMul (a, a)
    one = SequenceConstruct (b, b)  d = SequenceAt (one, at)  e = MatMul (d, w)  y = MatMul (e, w) }}"""


@pytest.mark.parametrize(
    ("source", "groups"),
    [
        pytest.param(
            LOOP.replace("Loop (n, go, a)", "Loop (n, go, x)"),
            [[((), "a")], [((2, "body", 0), "p"), ((2, "body", 0), "q")]],
            id="by the body of a Loop alone",
        ),
        pytest.param(
            SEQUENCE,
            [[((), name) for name in ("a", "b", "one")], [((), name) for name in "de"]],
            id="by a sequence, which no branch of opset 12 gives out",
        ),
    ],
)
def test_what_waits_for_its_group_is_written_before_it_is_read(
    source: str, groups: list[list[tuple[tuple[int | str, ...], str]]]
) -> None:
    named = model(source)
    original = Runnable(structure=named.SerializeToString())
    runnable, _ = switched(original, _strictly(named, []), TensorProto.FLOAT16, groups)
    made = {value.name for value in (*runnable.model.graph.input, *runnable.model.graph.initializer)}
    for node in runnable.model.graph.node:
        bodies = [part.g for part in node.attribute if node.op_type == "Loop"]
        read = {name for body in bodies for other in nested_nodes(body.node) for name in other.input}
        assert made.issuperset({*node.input, *(read & {"a", "w"})})
        made.update(node.output)
    open_model(runnable, UNOPTIMIZED)
