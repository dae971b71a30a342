"""Small detectors for tests whose grids, and constants beside coordinates, are in branches, loops and functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.support.feature_maps import Array, Size, cells, detector

SIZE = (64, 96)
OTHERS = ((32, 160), (96, 64))
OPSET = 17


def points_of(size: Size) -> Array:
    """Return the points of a grid in pixels, x before y: [1, cells, 2]."""
    parts = [np.stack(((x + 0.5) * s, (y + 0.5) * s), 1) for s, y, x in cells(size, (8, 16))]
    return np.concatenate(parts)[None].astype(np.float32)


def width_and_height(size: Size) -> Array:
    """Return the size of an image in the order of the columns of `points_of`."""
    return np.array(size[::-1], np.float32)


def constant_node(name: str, array: Array) -> onnx.NodeProto:
    """Return a Constant."""
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


class DetectorWithBodies:
    """A detector whose nodes behind the feature maps are in bodies."""

    def __init__(self) -> None:
        self.model = detector(SIZE, np.zeros(1, np.float32))
        del self.model.graph.output[:], self.model.graph.value_info[:]
        self.model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [None] * 3))
        self.model.opset_import.append(helper.make_opsetid("my", 1))
        self._count = 0

    def add(self, *nodes: onnx.NodeProto) -> None:
        """Add nodes to the graph."""
        self.model.graph.node.extend(nodes)

    def compute(self, operator: str, value: str, constant: Array, place: str) -> str:
        """Add a node of a value and a constant in the body that `place` names, the outermost first; return its output."""
        name = self._fresh()
        nodes = [
            constant_node(f"{name}_k", constant),
            helper.make_node(operator, [value, f"{name}_k"], [name]),
        ]
        kind = TensorProto.INT64 if constant.dtype == np.int64 else TensorProto.FLOAT
        for body in reversed(place.split()):
            if body != "graph":
                name, nodes = self._fresh(), self.inside(body, nodes, value, kind)
                nodes[-1].output[0] = name
        self.add(*nodes)
        return name

    def function(self, name: str, nodes: Sequence[onnx.NodeProto]) -> None:
        """Add a function of a value, the feature maps and the image; its nodes read "y"."""
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("my", 1)]
        inputs, outputs = ["y", "f8", "f16", "x"], [nodes[-1].output[0]]
        self.model.functions.append(helper.make_function("my", name, inputs, outputs, nodes, opsets))

    def call(self, name: str, value: str, output: str) -> None:
        """Add a call of a function to the graph."""
        self.add(call_of(name, value, output))

    def _fresh(self) -> str:
        self._count += 1
        return f"value{self._count}"

    def inside(self, body: str, nodes: list[onnx.NodeProto], value: str, kind: int) -> list[onnx.NodeProto]:
        """Return nodes that compute in a body what these nodes compute of a value."""
        name, last = self._fresh(), nodes[-1].output[0]
        rank = 3 if kind == TensorProto.FLOAT else 2
        output = helper.make_tensor_value_info(last, kind, [None] * rank)
        if body == "function":
            opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("my", 1)]
            inputs = [value, "f8", "f16", "x"]
            self.model.functions.append(helper.make_function("my", name, inputs, [last], nodes, opsets))
            return [call_of(name, value, "")]
        if body == "branch":
            other = helper.make_tensor_value_info(f"{name}_other", kind, [None] * rank)
            same = helper.make_node("Identity", [value], [f"{name}_other"])
            return [
                helper.make_node("ReduceMin", ["x"], [f"{name}_least"], keepdims=0),
                helper.make_node("Cast", [f"{name}_least"], [f"{name}_bright"], to=TensorProto.BOOL),
                helper.make_node("Not", [f"{name}_bright"], [f"{name}_dark"]),
                helper.make_node(
                    "If",
                    [f"{name}_dark"],
                    [""],
                    then_branch=helper.make_graph(nodes, "then", [], [output]),
                    else_branch=helper.make_graph([same], "else", [], [other]),
                ),
            ]
        went_on = helper.make_node("Identity", [f"{name}_goes"], [f"{name}_goes_on"])
        inputs = [
            helper.make_tensor_value_info(f"{name}_round", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{name}_goes", TensorProto.BOOL, []),
        ]
        goes_on = helper.make_tensor_value_info(f"{name}_goes_on", TensorProto.BOOL, [])
        loop = helper.make_graph([went_on, *nodes], "loop", inputs, [goes_on, output])
        return [
            constant_node(f"{name}_rounds", np.array(1, np.int64)),
            constant_node(f"{name}_axis", np.array([0], np.int64)),
            helper.make_node("Loop", [f"{name}_rounds", ""], [f"{name}_stack"], body=loop),
            helper.make_node("Squeeze", [f"{name}_stack", f"{name}_axis"], [""]),
        ]

    def opened(self, result: str) -> tuple[onnx.ModelProto, DimPlan]:
        """Make height and width dynamic, with this value as the output z."""
        self.add(helper.make_node("Identity", [result], ["z"]))
        return opened_with_plan(self.model)


def call_of(name: str, value: str, output: str) -> onnx.NodeProto:
    """Return a call of a function."""
    return helper.make_node(name, [value, "f8", "f16", "x"], [output], domain="my")


def opened_with_plan(source: onnx.ModelProto) -> tuple[onnx.ModelProto, DimPlan]:
    """Return a model with height and width made dynamic, and the plan."""
    log = ChangeLog()
    result = make_pass("dynamic_dims", dynamic="x:1,1,H,W").run(Model(source), log)
    onnx.checker.check_model(result.proto)
    plan = log.fact(DimPlan, "", "")
    assert plan is not None
    return result.proto, plan
