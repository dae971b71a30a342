"""Models that grow when they are inlined, inferred or evaluated."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tests.campaigns.hostile.building import function, graph, model, node, value
from tests.campaigns.hostile.case import hostile

__all__ = ["doubling"]


def doubling(levels: int, calls: int = 2, opset: int = 13) -> list[onnx.FunctionProto]:
    """Return functions of which each calls the next one several times, one after the other."""
    functions = []
    for level in range(levels):
        names = ["a", *(f"v{index}" for index in range(calls - 1)), "b"]
        if level == levels - 1:
            body = [node("Relu", ["a"], ["b"])]
        else:
            body = [
                node(f"F{level + 1}", [before], [after], "f") for before, after in itertools.pairwise(names)
            ]
        functions.append(function(f"F{level}", body, opset=opset))
    return functions


@hostile(1, code="too-large")
def functions_that_call_twice() -> ModelProto:
    """2^29 nodes when inlined."""
    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(30))


@hostile(1, code="too-large")
def functions_that_call_ten_times() -> ModelProto:
    """10^11 nodes when inlined, by 12 functions."""
    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(12, 10))


@hostile(1, code="too-large")
def functions_that_call_twice_from_branches() -> ModelProto:
    """The calls are in both branches of an If."""
    functions = []
    for level in range(30):
        call = "Relu" if level == 29 else f"F{level + 1}"
        domain = "" if level == 29 else "f"
        branches = {
            f"{which}_branch": graph([node(call, ["a"], [which], domain)], [], [value(which)])
            for which in ("then", "else")
        }
        functions.append(
            function(
                f"F{level}",
                [
                    node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True))),
                    node("If", ["c"], ["b"], **branches),
                ],
            )
        )
    return model([node("F0", ["x"], ["y"], "f")], functions=functions)


@hostile(0)
def functions_that_no_node_calls() -> ModelProto:
    """The main graph calls none of them."""
    return model([node("Relu", ["x"], ["y"])], functions=doubling(40))


@hostile(1, code="too-large")
def functions_that_call_twice_at_the_target() -> ModelProto:
    """At opset 21, where nothing is lifted."""
    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(34, opset=21), opset=21)


@hostile(0, 1, slow=True)
def thousand_functions_in_a_chain() -> ModelProto:
    """Each calls the next one once."""
    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(1000, 1))


@hostile(1, slow=True)
def hundred_thousand_functions_in_a_chain() -> ModelProto:
    """Each calls the next one once: a stack of 100,000 calls."""
    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(100_000, 1))


@hostile(0, slow=True)
def hundred_thousand_functions_side_by_side() -> ModelProto:
    """All are called by the main graph, by one node each."""
    functions = [function(f"F{index}", [node("Relu", ["a"], ["b"])]) for index in range(100_000)]
    nodes = [node(f"F{index}", ["x"], [f"v{index}"], "f") for index in range(100_000)]
    return model([*nodes, node("Relu", ["x"], ["y"])], functions=functions)


@hostile(4, code="recursive-function")
def function_that_calls_itself() -> ModelProto:
    return model([node("F", ["x"], ["y"], "f")], functions=[function("F", [node("F", ["a"], ["b"], "f")])])


@hostile(4, code="recursive-function")
def functions_in_a_ring_through_branches() -> ModelProto:
    """F calls G in a branch, and G calls F in the body of a Loop."""
    branches = {
        f"{which}_branch": graph([node("G", ["a"], [which], "f")], [], [value(which)])
        for which in ("then", "else")
    }
    true = numpy_helper.from_array(np.array(True))
    f = function("F", [node("Constant", [], ["c"], value=true), node("If", ["c"], ["b"], **branches)])
    body = graph(
        [node("F", ["s"], ["t"], "f"), node("Identity", ["k"], ["l"])],
        [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s")],
        [value("l", (), TensorProto.BOOL), value("t")],
    )
    two = numpy_helper.from_array(np.array(2))
    g = function(
        "G", [node("Constant", [], ["m"], value=two), node("Loop", ["m", "", "a"], ["b"], body=body)]
    )
    return model([node("F", ["x"], ["y"], "f")], functions=[f, g])


def _concats(count: int, first: list[NodeProto], name: str) -> list[NodeProto]:
    nodes = list(first)
    for index in range(count):
        nodes.append(node("Concat", [name, name], [f"d{index}"], axis=0))
        name = f"d{index}"
    return nodes


@hostile(0, 1)
def doubled_shapes() -> ModelProto:
    """A vector of 2^40 shape values, by forty Concats."""
    nodes = _concats(40, [node("Shape", ["x"], ["s"])], "s")
    return model([*nodes, node("ConstantOfShape", ["d39"], ["k"]), node("Relu", ["x"], ["y"])])


@hostile(0, 1)
def doubled_tensors() -> ModelProto:
    """A tensor of 2^40 elements, by forty Concats."""
    return model(_concats(40, [], "x"), outputs=[value("d39", None)])


@hostile(0, 1)
def doubled_shapes_in_a_function() -> ModelProto:
    """The same where each call of a function doubles."""
    twice = function("Twice", [node("Concat", ["a", "a"], ["b"], axis=0)])
    nodes, name = [node("Shape", ["x"], ["s"])], "s"
    for index in range(40):
        nodes.append(node("Twice", [name], [f"d{index}"], "f"))
        name = f"d{index}"
    nodes.append(node("Reshape", ["x", name], ["y"]))
    return model(nodes, functions=[twice], outputs=[value("y", None)])


@hostile(0, 1)
def doubled_shapes_in_a_branch() -> ModelProto:
    """The same in the branch of an If."""
    nodes = _concats(40, [node("Shape", ["x"], ["s"])], "s")
    inner = graph([*nodes, node("ConstantOfShape", ["d39"], ["t"])], [], [value("t", None)])
    other = graph([node("Relu", ["x"], ["e"])], [], [value("e")])
    return model(
        [node("If", ["c"], ["y"], then_branch=inner, else_branch=other)],
        inputs=[value("x"), value("c", (), TensorProto.BOOL)],
        outputs=[value("y", None)],
    )


@hostile(0, 1)
def doubled_shapes_of_a_constant() -> ModelProto:
    """A Constant of 60,000 numbers, concatenated twelve times with itself at 200 nodes."""
    constant = numpy_helper.from_array(np.ones(60_000, np.int64))
    nodes = [node("Constant", [], ["s"], value=constant)]
    nodes += [node("Concat", ["s"] * 100, [f"d{index}"], axis=0) for index in range(200)]
    nodes.append(node("Relu", ["x"], ["y"]))
    return model(
        nodes, outputs=[value("y"), *(value(f"d{index}", None, TensorProto.INT64) for index in range(200))]
    )


@hostile(0, 1)
def shapes_of_many_axes() -> ModelProto:
    """A shape of 60,000 axes, that 3,000 nodes hand on."""
    shape = numpy_helper.from_array(np.ones(60_000, np.int64), "s")
    nodes, name = [node("Reshape", ["x", "s"], ["v"])], "v"
    for index in range(3_000):
        nodes.append(node("Relu", [name], [f"r{index}"]))
        name = f"r{index}"
    return model(nodes, inputs=[value("x", (1,))], outputs=[value(name, None)], initializers=[shape])


@hostile(0, 1, slow=True)
def unsqueezed_again_and_again() -> ModelProto:
    """5,000 Unsqueezes, each of which adds an axis."""
    axes = numpy_helper.from_array(np.array([0]), "axes")
    nodes, name = [], "x"
    for index in range(5_000):
        nodes.append(node("Unsqueeze", [name, "axes"], [f"u{index}"]))
        name = f"u{index}"
    return model(nodes, outputs=[value(name, None)], initializers=[axes])


@hostile(0, 1)
def tiled_again_and_again() -> ModelProto:
    """A tensor of 2^63 elements, by 63 Tiles."""
    nodes, name = [], "x"
    for index in range(63):
        nodes.append(node("Tile", [name, "two"], [f"t{index}"]))
        name = f"t{index}"
    two = numpy_helper.from_array(np.array([2]), "two")
    return model(nodes, outputs=[value(name, None)], initializers=[two])


@hostile(0, 1, 3)
def squared_numbers() -> ModelProto:
    """A size that is squared forty times, and read as a shape; ONNX Runtime 1.32 loads the original and not the result."""
    nodes, name = [node("Shape", ["x"], ["s"])], "s"
    for index in range(40):
        nodes.append(node("Mul", [name, name], [f"m{index}"]))
        name = f"m{index}"
    nodes.append(node("ConstantOfShape", [name], ["y"]))
    return model(nodes, outputs=[value("y", None)])


@hostile(0, 1)
def einsum_of_many_letters() -> ModelProto:
    """An equation of a million characters."""
    return model([node("Einsum", ["x", "x"], ["y"], equation="a," * 500_000 + "a->a")])


@hostile(0, 1, slow=True)
def scatter_elements_for_an_importer() -> ModelProto:
    """10,000 nodes, each of which becomes several for a target that lacks it."""
    nodes, name = [], "x"
    for index in range(10_000):
        nodes.append(node("LayerNormalization", [name, "w"], [f"n{index}"], axis=-1))
        name = f"n{index}"
    w = numpy_helper.from_array(np.ones(2, np.float32), "w")
    return model(
        nodes, inputs=[value("x", (1, 2))], outputs=[value(name, (1, 2))], initializers=[w], opset=17
    )


@hostile(0, 1, 4)
def declared_symbols_of_a_megabyte() -> ModelProto:
    """Names of dims of a megabyte each, at 30 values."""
    name = "N" * 1_000_000
    nodes, before = [], "x"
    for index in range(30):
        nodes.append(node("Relu", [before], [f"v{index}"]))
        before = f"v{index}"
    return model(nodes, inputs=[value("x", (name,))], outputs=[value(before, (name,))])


def _constant(name: str, array: object) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


@hostile(0, 1)
def loop_of_a_million_million_turns() -> ModelProto:
    """Each turn is a node, without a condition."""
    body = graph(
        [node("Add", ["s", "s"], ["t"])],
        [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s")],
        [value("k", (), TensorProto.BOOL), value("t")],
    )
    body.node.extend([node("Identity", ["k"], ["l"])])
    body.output[0].name = "l"
    return model([node("Loop", ["m", "", "x"], ["y"], body=body)], initializers=[_constant("m", 10**12)])


@hostile(0, 1)
def loops_in_loops() -> ModelProto:
    """Twelve Loops of ten turns, one in the other: 10^12 turns."""
    inner = graph(
        [node("Add", ["s12", "s12"], ["t12"]), node("Identity", ["k12"], ["l12"])],
        [value("i12", (), TensorProto.INT64), value("k12", (), TensorProto.BOOL), value("s12")],
        [value("l12", (), TensorProto.BOOL), value("t12")],
    )
    for level in range(11, 0, -1):
        inner = graph(
            [
                node("Loop", ["m", "", f"s{level}"], [f"t{level}"], body=inner),
                node("Identity", [f"k{level}"], [f"l{level}"]),
            ],
            [
                value(f"i{level}", (), TensorProto.INT64),
                value(f"k{level}", (), TensorProto.BOOL),
                value(f"s{level}"),
            ],
            [value(f"l{level}", (), TensorProto.BOOL), value(f"t{level}")],
        )
    return model([node("Loop", ["m", "", "x"], ["y"], body=inner)], initializers=[_constant("m", 10)])


@hostile(0, 1, slow=True)
def loop_that_the_caller_counts() -> ModelProto:
    """The number of turns is an input, and each turn appends to the output."""
    body = graph(
        [node("Identity", ["k"], ["l"]), node("Identity", ["s"], ["t"]), node("Identity", ["s"], ["o"])],
        [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s", (1000,))],
        [value("l", (), TensorProto.BOOL), value("t", (1000,)), value("o", (1000,))],
    )
    return model(
        [node("Mul", ["n", "big"], ["m"]), node("Loop", ["m", "", "x"], ["e", "y"], body=body)],
        inputs=[value("x", (1000,)), value("n", (), TensorProto.INT64)],
        outputs=[value("y", None)],
        initializers=[_constant("big", 10**9)],
    )


@hostile(0, 1)
def loop_without_an_end() -> ModelProto:
    """Neither a number of turns nor a condition that becomes false."""
    body = graph(
        [node("Identity", ["k"], ["l"]), node("Add", ["s", "s"], ["t"])],
        [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s")],
        [value("l", (), TensorProto.BOOL), value("t")],
    )
    return model([node("Loop", ["", "c", "x"], ["y"], body=body)], initializers=[_constant("c", True)])


@hostile(0, 1)
def scan_of_a_billion_rows() -> ModelProto:
    """The rows come from an Expand."""
    body = graph([node("Add", ["s", "r"], ["t"])], [value("s", ()), value("r", ())], [value("t", ())])
    return model(
        [
            node("ReduceSum", ["x"], ["z"], keepdims=0),
            node("Expand", ["z", "n"], ["rows"]),
            node("Scan", ["z", "rows"], ["y"], body=body, num_scan_inputs=1),
        ],
        outputs=[value("y", ())],
        initializers=[_constant("n", [10**9])],
    )
